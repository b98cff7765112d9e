"""Kernels in Triton: examples/triton and tests/gpu/triton on this GPU. Every kernel is verified at every shape and timed at its bench shapes; kernels have global
scratch, clusters, programmatic and cooperative launches, and a method is attributed.

Compiling needs Triton, which kforge installs, or a KFORGE_HOME that knows the binaries already.
"""

from .lab import ROOT

# A package, its target, and its kernels with whether they are timed.
PACKAGES = [
    ("examples/triton", "h200", {"attention": True, "column_sums": True, "layer_norm": True, "matmul": True, "silu_mul": True, "softmax": True, "split_k": True, "transpose": True}),
    ("tests/gpu/triton", "gpu", {"clusters": True, "early": True, "plain": True, "steps": True, "together": False}),
]


def triton(lab):
    if lab.arch != "sm_90a":
        lab.row("triton", "the packages are built", None, f"they name sm_90a, and this is {lab.arch}")
        return
    for source, target, kernels in PACKAGES:
        package(lab, source, target, kernels)


def package(lab, source, target, kernels):
    folder = lab.copy(f"triton-{target}", ROOT / source, ready=False)
    manifest = folder / "kernel.toml"
    # Any product of the architecture.
    manifest.write_text(manifest.read_text().replace('device = "NVIDIA H200"\n', ""))
    done, steps = lab.build(folder, "--target", target)
    judged = [step for step in steps if step.kind == "judge"]
    wrong = [f"{step.id}: {step.wrong()}" for step in judged if step.verdict != "pass"]
    lab.row("triton", f"{source}: every kernel is correct at every shape", done.code == 0 and bool(judged) and not wrong, wrong[:3] or f"{len(judged)} judgements; {done.last()}")
    known = {step.kernel for step in judged}
    lab.row("triton", f"{source}: every kernel was judged", known == set(kernels), sorted(known))
    benches = [step for step in steps if step.kind == "bench"]
    untimed = [f"{step.id}: {step.wrong()}" for step in benches if step.wrong()]
    timed = {step.kernel for step in benches if step.ran()}
    lab.row("triton", f"{source}: every kernel was timed", timed == {name for name, is_timed in kernels.items() if is_timed} and not untimed, untimed[:3] or sorted(timed))
    attributed = {step.id: step.summary for step in steps if step.kind in ("match", "attribute")}
    profiled = {step.id: step.summary for step in steps if step.kind == "profile"}
    lab.figures[f"triton {source}"] = {"seconds": done.seconds, "methods": attributed, "profiles": profiled, "report": lab.report(folder)}
    again, steps = lab.build(folder, "--target", target)
    ran = [step.id for step in steps if step.outcome == "executed"]
    lab.row("triton", f"{source}: a second build runs nothing", again.code == 0 and not ran, ran[:3] or f"{again.seconds:.2f} s")
