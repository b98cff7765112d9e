"""Kernels in Triton: examples/triton and tests/gpu/triton on this GPU. Every kernel is verified at every shape and timed at its bench shapes; kernels have global
scratch, descriptors of the host, clusters, programmatic and cooperative launches, and a method is attributed.

Two kernels are packaged, verified as an artifact, and launched by their loaders in C and Python: machine code is chosen by the values of arguments.

Compiling needs Triton, which kforge installs, or a KFORGE_HOME that knows the binaries already. KFORGE_TEST_PYTHON names the Python that has torch.
"""

import os
import re
import subprocess

from .lab import ROOT

# A package, its target, and its kernels with whether they are timed.
PACKAGES = [
    ("examples/triton", "h200", {"attention": True, "column_sums": True, "layer_norm": True, "matmul": True, "silu_mul": True, "softmax": True, "split_k": True, "split_k_sum": True, "transpose": True}),
    ("tests/gpu/triton", "gpu", {"clusters": True, "described": True, "early": True, "plain": True, "steps": True, "together": False}),
]


def triton(lab):
    if lab.arch != "sm_90a":
        lab.row("triton", "the packages are built", None, f"they name sm_90a, and this is {lab.arch}")
        return
    for source, target, kernels in PACKAGES:
        package(lab, source, target, kernels)
    loaders(lab)


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


def loaders(lab):
    """Packages two examples, and runs their loaders."""
    folder = lab.copy("triton-loaders", ROOT / "examples/triton", ready=False)
    manifest = folder / "kernel.toml"
    # Only softmax, with machine code for each width, and the transpose, with global scratch; any product of the architecture.
    head, *operators = re.split(r"(?m)^(?=\[operator\.\w+\]\n)", manifest.read_text().replace('device = "NVIDIA H200"\n', ""))
    kept = [text for text in operators if text.startswith(("[operator.softmax]", "[operator.transpose]"))]
    manifest.write_text(head + "".join(kept))
    done = lab.run(["package", "--target", "h200", "--output", str(lab.folder / "triton-artifacts")], folder)
    lab.row("triton", "two kernels are packaged", done.code == 0 and len(kept) == 2, done.last())
    if done.code != 0:
        return
    artifact = str(lab.folder / "triton-artifacts/triton-kernels-0.1.0")
    for words, what in [([], "the artifact is verified"), (["--rebuild"], "its sources give the same machine code"), (["--rerun"], "its champions pass again")]:
        done = lab.run(["verify-artifact", artifact, "--allow-untrusted", *words], lab.folder)
        lab.row("triton", what, done.code == 0, done.last())
    for language in ("c", "python"):
        done = lab.run(["bindings", artifact, "--language", language, "--output", str(lab.folder / f"triton-{language}")], lab.folder)
        if done.code != 0:
            lab.row("triton", f"the loader in {language} is generated", False, done.last())
            return
    program, source = lab.folder / "triton-loaders-program", ROOT / "tests/gpu/bindings/triton_loaders.c"
    words = ["cc", "-std=c99", "-O2", "-D_GNU_SOURCE", "-I", str(lab.folder / "triton-c"), str(source), "-o", str(program), "-ldl", "-lpthread", "-lm"]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        lab.row("triton", "the C program is compiled", False, made.stderr[-300:])
    else:
        ran(lab, "the C loader gives correct results, and refuses values without machine code", [str(program)])
    python = os.environ.get("KFORGE_TEST_PYTHON", "python3")
    if subprocess.run([python, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True, check=False).returncode:
        lab.row("triton", "the Python loader gives correct results", None, f"{python} has no torch with CUDA")
        return
    ran(lab, "the Python loader gives correct results, and refuses values without machine code", [python, str(ROOT / "tests/gpu/bindings/triton_loaders.py"), str(lab.folder / "triton-python")])


def ran(lab, what, words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    lab.row("triton", what, done.returncode == 0, f"{done.stdout.strip()[-400:]} {done.stderr.strip()[-400:]}".strip())
