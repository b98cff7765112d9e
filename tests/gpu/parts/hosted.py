"""Kernels with launchers of their own: those that do their work are right and labelled, and each that does what it must not is named for it."""

import re
import shutil

from .lab import ROOT

# What is said of each kernel of `tests/gpu/hosted` that must not pass.
NAMED = {
    "does_nothing": r"was not written",
    "changes_inputs": r"the input `x` was changed",
    "first_answer": r"beyond rounding|wrong|`y`",
    "past_the_end": r"bytes after `y` were written",
    "gives_up": r"`run` returned 7, where 0 is success",
    "leaves": r"ended the process before it finished",
    "crashes": r"killed by signal|SIGSEGV|signal 11",
    "illegal": r"CUDA_ERROR_ILLEGAL_ADDRESS",
    "reads_files": r"`run` returned 13",
    "writes_files": r"`run` returned 13",
    "opens_sockets": r"tried to open a socket",
    "starts_processes": r"tried to start a process",
    "forges_reports": r"ended the process before it finished|tampered with|bytes before `x` were written",
}
GOOD = ("two_steps", "own_stream")


def hosted(lab):
    folder = lab.copy("hosted", ROOT / "tests/gpu/hosted")
    # An nvcc of this machine needs no network.
    if shutil.which("nvcc"):
        manifest = folder / "kernel.toml"
        manifest.write_text(manifest.read_text().replace('cuda = "13.0"', 'cuda = "system"'))
    done, steps = lab.build(folder, "--target", "gpu")
    compiled = [step for step in steps if step.kind == "compile"]
    if compiled and not any(step.ran() for step in compiled):
        lab.row("hosted", "launchers of kernels' own", None, compiled[0].wrong())
        return
    judged = [step for step in steps if step.kind == "judge"]
    for kernel in GOOD:
        own = [step for step in judged if step.kernel == kernel]
        wrong = [text for step in own for text in [step.wrong()] if text] or done.last() * (not own)
        lab.row("hosted", f"{kernel} is correct", bool(own) and not wrong, wrong or f"{len(own)} verdicts")
    for kernel, words in NAMED.items():
        said = [step.said("fail") or "" for step in judged if step.kernel == kernel]
        lab.row("hosted", f"the rejection of {kernel} names its reason", bool(said) and any(re.search(words, text) for text in said), said[:1] or done.last())
    labels = {kernel: target.get("host") for kernel, target in lab.targets(folder)}
    lab.row("hosted", "all are labelled", all(labels.get(kernel) for kernel in GOOD), labels.get("two_steps"))
    timed = [step.id for step in steps if step.kind in ("bench", "pairs", "profile")]
    lab.row("hosted", "none is timed", not timed, timed[:1] or "no step")
    functions = [f["entry"] for kernel, target in lab.targets(folder) if kernel == "two_steps" for m in target["machine"] for f in m["functions"]]
    lab.row("hosted", "machine code is inspected", len(functions) == 2, functions)
