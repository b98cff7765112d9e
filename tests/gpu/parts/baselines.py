"""Baselines: PyTorch beside champions on this GPU. examples/torch with bench shapes and every kind of baseline, among them functions that are wrong, raise, wait for
the device, change their input or read files; then operators of examples/generated at their large shapes, each beside PyTorch as written, compiled in two modes and,
for products, cuBLAS: one table.

KFORGE_TEST_PYTHON names the Python that has torch with CUDA (python3).
"""

import os
import shutil
import subprocess
import time

from .generated import narrowed
from .lab import ROOT, targets_of

# Bench shapes of examples/torch, beside a shape that it has.
SHAPES = {
    "shapes.small = { rows = 16, inner = 64, cols = 128 }": 'shapes.large = { rows = 1024, inner = 256, cols = 2048, role = "bench" }',
    "shapes.even = { rows = 64, channels = 128 }": 'shapes.large = { rows = 4096, channels = 1024, role = "bench" }',
    "shapes.ragged = { rows = 3, cols = 257 }": 'shapes.large = { rows = 4096, cols = 4096, role = "bench" }',
}
KERNELS = ("linear_gelu", "batch_norm", "rms_norm")
# Baselines of `rms_norm` that must not pass, and what is said of each.
REFUSED = {"half": "`y` is wrong", "raises": "raised ValueError", "changes": "the input `x` was changed", "escapes": "raised PermissionError"}
# Operators of examples/generated that PyTorch has within their tolerances.
GENERATED = ("softmax", "rms_norm", "layer_norm", "log_softmax", "row_sum", "row_mean", "matmul")


def with_torch(lab, part):
    """The Python that has torch with CUDA; none, with a row, if there is none."""
    python = os.environ.get("KFORGE_TEST_PYTHON", "python3")
    found = subprocess.run([python, "-c", "import torch; assert torch.cuda.is_available(); print(torch.__version__)"], capture_output=True, text=True, check=False)
    if found.returncode:
        lab.row(part, "PyTorch runs beside champions", None, f"{python} has no torch with CUDA")
        return None
    return subprocess.run([python, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True).stdout.strip()


def baselines(lab, within, quick, chosen=None):
    python = with_torch(lab, "baselines")
    if python is None:
        return
    other = sorted(set(chosen or ()) - set(GENERATED))
    if other:
        lab.row("baselines", "kernels of examples/generated beside PyTorch", None, f"there is no baseline for {', '.join(other)}")
    start = time.monotonic()
    if not chosen:
        kinds(lab, python, quick)
    kernels = [name for name in GENERATED if name in chosen] if chosen else GENERATED[:2] if quick else GENERATED
    if not kernels:
        return
    table(lab, python, within - (time.monotonic() - start), quick, kernels)


def kinds(lab, python, quick):
    """Every kind of baseline beside the kernels of examples/torch."""
    folder = lab.copy("baselines", ROOT / "examples/torch")
    shutil.copy(ROOT / "examples/quickstart/kforge.lock", folder / "kforge.lock")
    manifest = folder / "kernel.toml"
    text = manifest.read_text().replace('torch = "2.15"', 'torch = "system"')
    for shape, more in SHAPES.items():
        text = text.replace(shape, f"{shape}\n{more}")
    own = (ROOT / "tests/gpu/baselines/baselines.toml").read_text()
    if quick:
        own = own.replace('[baseline.tuned]\nhow = "compile"\nmode = "max-autotune"\n', "")
    manifest.write_text(text + own)
    shutil.copy(ROOT / "tests/gpu/baselines/fast.py", folder)
    done, steps = lab.build(folder, limit=1500, KFORGE_TOOLCHAIN_PYTHON=python)
    ran = [step for step in steps if step.kind == "baseline"]
    missing = [f"{step.id}: {step.wrong()}" for step in ran if not step.ran()]
    lab.row("baselines", "every baseline runs confined", bool(ran) and not missing, missing[:2] or f"{len(ran)} steps in {done.seconds:.0f} s; {done.last(120)}")
    judged = [step for step in steps if step.kind == "judge"]
    lab.row("baselines", "baselines change no verdict of a kernel", done.code == 0 and all(step.verdict == "pass" for step in judged), f"exit {done.code}, {len(judged)} judgements; {done.last(200)}")
    all_of = rated(lab, folder)
    lab.figures["baselines"] = {"seconds": done.seconds, "rated": {f"{kernel}/{name}": one for (kernel, name), one in all_of.items()}, "steps": {step.id: [step.seconds, step.summary] for step in ran}}
    sound = {key: one for key, one in all_of.items() if key[1] not in REFUSED}
    wrong = [f"{kernel}/{name}: {one['verdict']}" for (kernel, name), one in sound.items() if one["verdict"] != "pass"]
    lab.row("baselines", "honest baselines are correct", bool(sound) and not wrong, wrong[:3] or sorted({name for _, name in sound}))
    lacking = [f"{kernel}/{name}" for (kernel, name), one in sound.items() if not (one["ratio"] and one["call_ns"] and one["device_ns"] and one["champion_ns"])]
    lab.row("baselines", "each has a ratio of device times, and a call time", bool(sound) and not lacking, lacking or "; ".join(told(key, one) for key, one in sorted(sound.items())))
    for name, says in REFUSED.items():
        one = all_of.get(("rms_norm", name), {})
        verdict = one.get("verdict")
        said = verdict.get("fail", "") if isinstance(verdict, dict) else ""
        lab.row("baselines", f"`{name}` is wrong and has no ratio", says in said and one.get("ratio") is None, verdict)
    waited = {key: one.get("waited", False) for key, one in sound.items()}
    lab.row("baselines", "only the one that waits for the device is told to", [name for (_, name), late in waited.items() if late] == ["waits"], {f"{kernel}/{name}": late for (kernel, name), late in waited.items() if late})
    versions = all_of.get(("rms_norm", "compile"), {}).get("versions", {})
    lab.row("baselines", "versions are told", all(name in versions for name in ("torch", "cuda", "triton", "gpu")), versions)
    compares(lab, all_of)
    theirs(lab, python, all_of)
    again, steps = lab.build(folder, KFORGE_TOOLCHAIN_PYTHON=python)
    executed = [step.id for step in steps if step.outcome == "executed"]
    lab.row("baselines", "a second build runs nothing", again.code == 0 and not executed, executed[:3] or f"{again.seconds:.1f} s")
    file = folder / "fast.py"
    file.write_text(file.read_text().replace("this one never works", "this one does not work"))
    _, steps = lab.build(folder, KFORGE_TOOLCHAIN_PYTHON=python)
    executed = {step.labels.get("baseline") for step in steps if step.kind == "baseline" and step.outcome == "executed"}
    # References and baselines may import every Python file of their package. Verification computes references on inputs of its own. No kernel is compiled or timed.
    others = [step.id for step in steps if step.outcome == "executed" and step.kind in ("compile", "inspect", "bench", "pairs", "profile", "select")]
    calling = {"own", "own_graph", "half", "raises", "waits", "changes", "escapes"}
    lab.row("baselines", "an edit of their file runs references and baselines again, and times no kernel", executed >= calling and not others, f"{sorted(executed)}; {others[:3]}")
    for form in ("speedup", "logistic", "weighted"):
        said = lab.run(["report", "--score", form, "--baseline", "compile", "--kernel", "rms_norm"], folder, KFORGE_TOOLCHAIN_PYTHON=python)
        lab.row("baselines", f"the score `{form}` takes one", said.code == 0 and "against `compile`" in said.out + said.err or "over `compile`" in said.out, (said.out or said.err).strip().split("\n")[:2])
    left = lab.left_behind()
    lab.row("baselines", "no process is left", not left, left)


def rated(lab, folder):
    """What the report says of each baseline at the large shape, by kernel and name."""
    found = {}
    for name, target in lab.targets(folder):
        for one in target.get("baselines", []):
            if one["shape"] == "large":
                types = target.get("types", "").removeprefix("T=")
                found[(f"{name} {types}".strip(), one["baseline"])] = one["rating"]
    return found


def told(key, one):
    return f"{key[0]}/{key[1]} call {one['call_ns'] / 1e3:.1f} us, device {one['device_ns'] / 1e3:.1f} us, {one['ratio']['median']:.3f} of {one['champion_ns'] / 1e3:.1f} us"


def compares(lab, all_of):
    """What must be so of the same work in several ways."""
    device = lambda name, kernel="rms_norm": all_of.get((kernel, name), {}).get("device_ns") or float("nan")
    pairs = [("own", "own_graph"), ("eager", "cudagraph")]
    apart = {f"{a}, {b}": device(b) / device(a) for a, b in pairs}
    # Behind a gate, a graph saves only what lies between kernels.
    lab.row("baselines", "a CUDA graph takes the device time of the same launches", all(0.7 < share < 1.15 for share in apart.values()), {key: round(share, 3) for key, share in apart.items()})
    lab.row("baselines", "compiled code is faster than many kernels", device("compile") < device("eager"), f"{device('compile') / 1e3:.1f} us, {device('eager') / 1e3:.1f} us")
    call = {name: all_of.get(("rms_norm", name), {}).get("call_ns") or 0 for name in ("eager", "cudagraph")}
    lab.row("baselines", "call times hold what the host does", call["eager"] > device("eager") * 0.9 and call["cudagraph"] < call["eager"], call)
    ratios = [one["ratio"] for one in all_of.values() if one["ratio"]]
    wide = [ratio for ratio in ratios if ratio["high"] / ratio["low"] > 1.05]
    lab.row("baselines", "intervals of ratios are within five per cent", bool(ratios) and len(wide) <= len(ratios) // 10, wide[:3] or f"{len(ratios)} ratios")


MEASURE = """
import torch, torch.nn.functional as F
x, w = torch.randn(4096, 4096, device="cuda"), torch.randn(4096, device="cuda")
area = torch.zeros(2 * torch.cuda.get_device_properties(0).L2_cache_size // 4, dtype=torch.int32, device="cuda")
taken = []
for _ in range(40):
    torch.cuda._sleep(2_000_000)
    area.add_(1)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record(); F.rms_norm(x, (4096,), w, 1e-6); end.record()
    torch.cuda.synchronize()
    taken.append(start.elapsed_time(end) * 1e6)
print(sorted(taken)[20])
"""


def theirs(lab, python, all_of):
    """The same function, timed without kforge."""
    done = subprocess.run([python, "-c", MEASURE], capture_output=True, text=True, check=False)
    own = all_of.get(("rms_norm", "own"), {}).get("device_ns")
    if done.returncode or not own:
        lab.row("baselines", "a function takes what it takes without kforge", False, done.stderr[-200:] or "not timed")
        return
    other = float(done.stdout)
    lab.row("baselines", "a function takes what it takes without kforge", 0.9 < own / other < 1.1, f"{own / 1e3:.2f} us here, {other / 1e3:.2f} us there")


def table(lab, python, within, quick, kernels):
    """Champions of these kernels of examples/generated beside PyTorch, one after another."""
    folder = lab.copy("baselines-generated", ROOT / "examples/generated", ready=False)
    words = [word for target in targets_of(folder, lab.arch) for word in ("--target", target)]
    if not words:
        lab.row("baselines", "a table of examples/generated", None, f"no target of {lab.arch}")
        return
    manifest = folder / "kernel.toml"
    more = ""
    for name in GENERATED:
        ways = {"eager": 'how = "eager"', "compile": 'how = "compile"', "tuned": 'how = "compile"\nmode = "max-autotune"'}
        if quick:
            del ways["tuned"]
        for way, how in ways.items():
            more += f'\n[baseline.{name}_{way}]\n{how}\nsource = "generated.py::{name}"\noperator = "{name}"\n'
    # The small shapes are only verified here: a baseline that is compiled for each shape takes minutes.
    text = narrowed(manifest.read_text()).replace('device = "NVIDIA H200"\n', "").replace(', role = "bench" }', " }")
    manifest.write_text(f"{text}{more}\n[baseline.cublas]\noperator = \"matmul\"\n")
    shutil.copy(ROOT / "tests/gpu/baselines/generated.py", folder)
    words += ["--overlay", str(folder / "large.toml")]
    start, rows, over = time.monotonic(), {}, []
    for kernel in kernels:
        left = start + within - time.monotonic()
        done = lab.build(folder, *words, "--kernel", kernel, limit=left, KFORGE_TOOLCHAIN_PYTHON=python)[0] if left > 30 else None
        if done is None or done.code is None:
            over.append(kernel)
            continue
        found = rated(lab, folder)
        rows.update(found)
        # Sums in another order may miss a tolerance of one unit in the last place; that is a result, too.
        unknown = [f"{key}: {one['verdict']}" for key, one in found.items() if isinstance(one["verdict"], dict) and "fail" not in one["verdict"]]
        lab.row("baselines", f"`{kernel}` beside PyTorch", done.code == 0 and bool(found) and not unknown, unknown[:2] or "; ".join(told(key, one) if one["ratio"] else f"{key[0]}/{key[1]} {one['verdict']}" for key, one in sorted(found.items())))
    if over:
        lab.row("baselines", "the whole table within the time limit", None, f"without {', '.join(over)}")
    lab.figures["baselines table"] = {f"{kernel}/{name}": one for (kernel, name), one in rows.items()}
