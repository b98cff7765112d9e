"""What PyTorch takes for the large shapes of examples/generated, as JSON lines: `{"kernel": ..., "types": ..., "with": ..., "ns": ...}`.

    python3 beside.py OVERLAY

OVERLAY is examples/generated/large.toml. Medians of events around single calls, the L2 cache flushed before each: as kforge's cold times, but for what a call costs
to issue. Needs PyTorch with CUDA.
"""

import json
import sys
import tomllib

import torch
import torch.nn.functional as F

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def cases(shapes):
    """Kernel, its types, what does the same, and that as a function of nothing."""
    new = lambda dtype, *extents: torch.rand(*extents, device="cuda", dtype=torch.float32).sub_(0.5).to(dtype)
    rows = lambda name: (shapes[name]["rows"], shapes[name].get("cols") or shapes[name]["classes"])
    for types, dtype in (("f16", F16), ("f32", F32)):
        x, bias = new(dtype, *rows("bias_gelu")), new(dtype, rows("bias_gelu")[1])
        yield "bias_gelu", types, "copy_", lambda y=torch.empty_like(x): y.copy_(x)
        yield "bias_gelu", types, "F.gelu", lambda: F.gelu(x)
    gate, up = new(BF16, shapes["swiglu"]["n"]), new(BF16, shapes["swiglu"]["n"])
    yield "swiglu", "", "torch.add", lambda out=torch.empty_like(up): torch.add(gate, up, out=out)
    for types, dtype in (("f32", F32), ("bf16", BF16)):
        x = new(dtype, *rows("row_sum"))
        yield "row_sum", types, "torch.sum", lambda: torch.sum(x, 1, dtype=F32)
    x = new(F32, *rows("argmax"))
    yield "row_mean", "", "torch.mean", lambda: torch.mean(x, 1)
    yield "argmax", "", "torch.argmax", lambda: torch.argmax(x, 1)
    labels = torch.randint(0, x.shape[1], (x.shape[0],), device="cuda")
    yield "cross_entropy", "", "F.cross_entropy", lambda: F.cross_entropy(x, labels)
    half, whole = x.to(F16), torch.randint(-1000, 1000, x.shape, device="cuda", dtype=torch.int32)
    yield "row_max", "", "torch.amax", lambda: torch.amax(half, 1)
    yield "row_min", "", "torch.amin", lambda: torch.amin(whole, 1)
    x, weight, other = new(F32, *rows("softmax")), new(F32, rows("softmax")[1]), new(F32, *rows("softmax"))
    yield "softmax", "f32", "torch.softmax", lambda: torch.softmax(x, 1)
    yield "log_softmax", "", "torch.log_softmax", lambda: torch.log_softmax(x, 1)
    yield "rms_norm", "f32", "F.rms_norm", lambda: F.rms_norm(x, (x.shape[1],), weight, 1e-6)
    yield "layer_norm", "", "F.layer_norm", lambda: F.layer_norm(x, (x.shape[1],), weight, weight)
    yield "add_rms_norm", "", "torch.add", lambda: other.add_(x)
    half, narrow = x.to(F16), weight.to(F16)
    yield "softmax", "f16", "torch.softmax", lambda: torch.softmax(half, 1)
    yield "rms_norm", "f16", "F.rms_norm", lambda: F.rms_norm(half, (half.shape[1],), narrow, 1e-6)
    del x, other, half, whole
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, types, dtype in (("matmul", "f16", F16), ("matmul", "f32", F32), ("linear", "", BF16)):
        m, n, k = (shapes[name][d] for d in "mnk")
        a, b = new(dtype, m, k), new(dtype, n, k) if name == "linear" else new(dtype, k, n)
        yield name, types, "cuBLAS", (lambda a=a, b=b: torch.matmul(a, b.t())) if name == "linear" else (lambda a=a, b=b: torch.matmul(a, b))


def median_ns(run, flush, times=15):
    for _ in range(3):
        run()
    taken = []
    for _ in range(times):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) * 1e6)
    return sorted(taken)[len(taken) // 2]


def main():
    with open(sys.argv[1], "rb") as file:
        operators = tomllib.load(file)["operator"]
    shapes = {name: operator["shapes"]["large"] for name, operator in operators.items()}
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name()}), flush=True)
    with torch.no_grad():
        for kernel, types, what, run in cases(shapes):
            print(json.dumps({"kernel": kernel, "types": types, "with": what, "ns": median_ns(run, flush)}), flush=True)


if __name__ == "__main__":
    main()
