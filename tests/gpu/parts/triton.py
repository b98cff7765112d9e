"""Kernels in Triton: examples/triton on this GPU. Every kernel is verified at every shape and timed at its bench shape, one has global scratch, and a method is attributed.

Compiling needs Triton, which kforge installs, or a KFORGE_HOME that knows the binaries already.
"""

from .lab import ROOT

KERNELS = {"attention", "column_sums", "layer_norm", "matmul", "silu_mul", "softmax", "split_k", "transpose"}


def triton(lab):
    if lab.arch != "sm_90a":
        lab.row("triton", "the examples are built", None, f"they name sm_90a, and this is {lab.arch}")
        return
    folder = lab.copy("triton", ROOT / "examples/triton", ready=False)
    done, steps = lab.build(folder, "--target", "h200")
    judged = [step for step in steps if step.kind == "judge"]
    wrong = [f"{step.id}: {step.verdict}" for step in judged if step.verdict != "pass"]
    lab.row("triton", "every kernel is correct at every shape", done.code == 0 and bool(judged) and not wrong, wrong[:3] or f"{len(judged)} judgements; {done.last()}")
    kernels = {step.kernel for step in judged}
    lab.row("triton", "every example was judged", kernels == KERNELS, sorted(kernels))
    timed = {step.kernel for step in steps if step.kind == "bench" and step.outcome in ("executed", "fresh")}
    lab.row("triton", "every example was timed", timed == KERNELS, sorted(timed))
    champions, methods = {}, []
    for kernel, target in lab.targets(folder):
        for champion in target["champions"]:
            champions[f"{kernel} {champion['class']}"] = champion.get("variant")
        methods.extend(f"{kernel}: {method['id']} {method.get('fate')}" for method in target.get("methods", []))
    lab.figures["triton"] = {"champions": champions, "methods": methods, "seconds": done.seconds}
    lab.row("triton", "champions were selected", bool(champions) and all(champions.values()), champions)
    again, steps = lab.build(folder, "--target", "h200")
    ran = [step.id for step in steps if step.outcome == "executed"]
    lab.row("triton", "a second build runs nothing", again.code == 0 and not ran, ran[:3] or f"{again.seconds:.2f} s")
