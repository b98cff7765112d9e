"""What the Python loader of examples/bindings/kernels must do on a GPU beyond correct results: `check.py FOLDER OTHER`, where OTHER is the loader of another version.
Prints a JSON list for each check: what, whether it held (none: could not be asked), and what was found."""

import importlib.util
import json
import sys
import threading
import time
from pathlib import Path

import torch


def say(what, held, found=""):
    print(json.dumps([what, held, str(found)]), flush=True)


def check(what):
    def of(function):
        try:
            held, found = function()
        except Exception as error:
            held, found = False, f"{type(error).__name__}: {error}"
        say(what, held, found)

    return of


def by_python(folder, name):
    variant = Path(folder) / "build/torch-cuda"
    spec = importlib.util.spec_from_file_location(name, variant / "__init__.py", submodule_search_locations=[str(variant)])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def error(call, kind):
    try:
        call()
    except kind as raised:
        return True, f"{type(raised).__name__}: {raised}"
    except Exception as raised:
        return False, f"{type(raised).__name__}: {raised}"
    return False, "nothing was raised"


def worst(found, expected):
    return (found.double() - expected).abs().max().item()


def normed(x, w):
    return x.double() * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + 1e-6) * w.double()


loaders = by_python(sys.argv[1], "loaders")
x, w = torch.randn(37, 4096, device="cuda"), torch.randn(4096, device="cuda")
a, b = torch.randn(32, 2000, device="cuda"), torch.randn(2000, 40, device="cuda")
h, g = torch.randn(200, 328, device="cuda", dtype=torch.float16), torch.randn(328, 136, device="cuda", dtype=torch.float16)


@check("a CUDA graph captures the first calls, with their modules, workspaces and tensor maps")
def _():
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, c, t = loaders.rms_norm(x, w), loaders.ops.split_k(a, b), loaders.matmul(h, g)
    for source in (x, a, h):
        source.copy_(torch.randn_like(source))
    graph.replay()
    torch.cuda.synchronize()
    found = [worst(y, normed(x, w)), worst(c, a.double() @ b.double()), worst(t, h.double() @ g.double())]
    return found[0] < 1e-5 and found[1] < 1e-3 and found[2] < 2e-3, found


@check("calls go to the current stream")
def _():
    stream, slow = torch.cuda.Stream(), torch.zeros(64 << 20, device="cuda")
    with torch.cuda.stream(stream):
        for _ in range(50):
            slow.add_(1)
        late = x + slow[0]
        y = loaders.rms_norm(late, w)
    stream.synchronize()
    found = worst(y, normed(late, w))
    return found < 1e-5, found


@check("torch.compile takes a model with the operators whole, with static and dynamic shapes")
def _():
    class Model(torch.nn.Module):
        def forward(self, x, w, h, g):
            return loaders.rms_norm(torch.relu(x) + 1, w) * 2, loaders.ops.matmul(h, g) + 1

    model, found = Model(), []
    compiled = torch.compile(model, fullgraph=True)
    for rows in (37, 5, 11):
        with torch.no_grad():
            arguments = (x[:rows].contiguous(), w, h[: rows * 2].contiguous(), g)
            for one, other in zip(model(*arguments), compiled(*arguments)):
                found.append((one - other).abs().max().item())
    return max(found) < 1e-4, found


@check("torch.library.opcheck accepts the operators")
def _():
    names = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    for operator, arguments in ((loaders.ops.rms_norm, (x, w, None)), (loaders.ops.matmul, (h, g)), (loaders.ops.split_k, (a, b))):
        torch.library.opcheck(operator, arguments, test_utils=names)
    return True, ", ".join(names)


@check("an input that requires grad is refused, by a call, an operator and torch.compile")
def _():
    grad = x.clone().requires_grad_()
    calls = [lambda: loaders.rms_norm(grad, w), lambda: loaders.ops.rms_norm(grad, w)]
    found = [error(call, loaders.NeedsGrad) for call in calls]
    compiled = torch.compile(lambda x, w: loaders.rms_norm(x, w), fullgraph=True)
    try:
        compiled(grad, w)
        found.append((False, "torch.compile raised nothing"))
    except Exception as raised:
        found.append(("requires grad" in str(raised), type(raised).__name__))
    with torch.no_grad():
        loaders.rms_norm(grad, w)
    return all(held for held, _ in found), [text for _, text in found]


@check("wrong devices, dtypes, shapes, strides and alignments are named before any launch")
def _():
    found = [
        error(lambda: loaders.rms_norm(x.cpu(), w.cpu()), loaders.WrongDevice),
        error(lambda: loaders.ops.rms_norm(x.cpu(), w.cpu()), loaders.WrongDevice),
        error(lambda: loaders.rms_norm(x.half(), w), loaders.WrongDType),
        error(lambda: loaders.rms_norm(x, w[:-1]), loaders.WrongShape),
        error(lambda: loaders.matmul(h[:, :327].contiguous(), g[:327]), loaders.WrongShape),
        error(lambda: loaders.rms_norm(x.t().contiguous().t(), w), loaders.WrongStride),
        error(lambda: loaders.rms_norm(x.view(-1)[1 : 1 + 4096].view(1, 4096), w), loaders.WrongAlignment),
        error(lambda: loaders.rms_norm(x, w, eps="small"), loaders.WrongValue),
        error(lambda: loaders.rms_norm(x[:0], w), loaders.WrongShape),
    ]
    return all(held for held, _ in found), [text for held, text in found if not held] or f"{len(found)} errors"


@check("`out` is written, and checked")
def _():
    y = torch.empty_like(x)
    same = loaders.rms_norm(x, w, out=y)
    found = error(lambda: loaders.rms_norm(x, w, out=y[1:]), loaders.WrongShape)
    return worst(y, normed(x, w)) < 1e-5 and same is y and found[0], found[1]


@check("threads share plans")
def _():
    wrong = []

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            mine = torch.randn(37, 4096, device="cuda", generator=torch.Generator("cuda").manual_seed(seed))
            for _ in range(200):
                y = loaders.rms_norm(mine, w)
            torch.cuda.current_stream().synchronize()
            if worst(y, normed(mine, w)) > 1e-5:
                wrong.append(seed)

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return not wrong, wrong or "8 threads"


@check("two versions coexist")
def _():
    other = by_python(sys.argv[2], "other")
    apart = other.ROOT != loaders.ROOT and str(other.ops) != str(loaders.ops)
    both = worst(other.ops.rms_norm(x, w), normed(x, w)), worst(loaders.ops.rms_norm(x, w), normed(x, w))
    again = by_python(sys.argv[1], "again")
    both += (worst(again.ops.rms_norm(x, w), normed(x, w)),)
    return apart and max(both) < 1e-5, both


@check("`kernels` loads the folder, and its digest is that of its files")
def _():
    try:
        import kernels
    except ImportError:
        return None, "`kernels` is not installed"
    loaded = kernels.get_local_kernel(Path(sys.argv[1]))
    found = worst(loaded.rms_norm(x, w), normed(x, w))
    try:
        from kernels._rust import Digest, DigestAlgorithm, Metadata
    except ImportError as absent:
        return found < 1e-5, f"digest not asked: {absent}"
    variant = Path(sys.argv[1]) / "build/torch-cuda"
    Metadata.read_from_file(variant / "metadata.json").digest.validate(Digest.hash_variant(DigestAlgorithm.SHA256, variant))
    return found < 1e-5, f"worst error {found:.1e}, {kernels.__name__} {loaded.__name__}"


@check("arrays of another library come through DLPack")
def _():
    try:
        import cupy
    except ImportError:
        return None, "cupy is not installed"
    cx, cw, ca, cb = (cupy.asarray(each.cpu().numpy()) for each in (x, w, a, b))
    cy, cc = cupy.empty_like(cx), cupy.empty((32, 40), dtype=cupy.float32)
    loaders.rms_norm(cx, cw, out=cy)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    loaders.split_k(ca, cb, out=cc, stream=stream.ptr)
    cupy.cuda.Device().synchronize()
    found = worst(torch.from_numpy(cy.get()).cuda(), normed(x, w)), worst(torch.from_numpy(cc.get()).cuda(), a.double() @ b.double())
    return found[0] < 1e-5 and found[1] < 1e-3, found


def micros(call, times=250):
    """The host time of a call, the best mean of forty times 250: more than about a thousand launches fill the driver's queue, and then the host waits for the device."""
    best = float("inf")
    for _ in range(40):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, (time.perf_counter() - start) / times * 1e6)
    torch.cuda.synchronize()
    return round(best, 2)


@check("a call takes at most 15 us of host time, and 20 through the operator")
def _():
    small, narrow = torch.randn(4, 256, device="cuda"), torch.randn(256, device="cuda")
    out = torch.empty_like(small)
    s, t = torch.randn(16, 64, device="cuda"), torch.randn(64, 16, device="cuda")
    p, q = torch.randn(64, 64, device="cuda", dtype=torch.float16), torch.randn(64, 64, device="cuda", dtype=torch.float16)
    found = {
        "torch.add": micros(lambda: torch.add(small, small)),
        "torch rms_norm": micros(lambda: torch.nn.functional.rms_norm(small, (256,), narrow)),
        "torch.mm": micros(lambda: torch.mm(p, q)),
        "rms_norm": micros(lambda: loaders.rms_norm(small, narrow)),
        "rms_norm with out": micros(lambda: loaders.rms_norm(small, narrow, out=out)),
        "ops.rms_norm": micros(lambda: loaders.ops.rms_norm(small, narrow)),
        "ops.rms_norm.default": micros(lambda: loaders.ops.rms_norm.default(small, narrow)),
        "matmul": micros(lambda: loaders.matmul(p, q)),
        "ops.matmul": micros(lambda: loaders.ops.matmul(p, q)),
        "split_k": micros(lambda: loaders.split_k(s, t)),
        "ops.split_k": micros(lambda: loaders.ops.split_k(s, t)),
    }
    return found["rms_norm"] <= 15 and found["ops.rms_norm"] <= 20, found
