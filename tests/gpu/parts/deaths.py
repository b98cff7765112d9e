"""Variants that die in the middle of a tuning run, and a device without memory: each is named, the others are unharmed, and no process is left."""

import re
import subprocess
import sys
import time

from .lab import ROOT

# What tests/gpu/deaths does under each number, and what must be said of it.
DEATHS = {
    1: ("an illegal address", r"CUDA_ERROR_ILLEGAL_ADDRESS"),
    2: ("a misaligned access", r"CUDA_ERROR_MISALIGNED_ADDRESS"),
    3: ("a trap", r"CUDA_ERROR_(LAUNCH_FAILED|ILLEGAL_INSTRUCTION)"),
    4: ("an endless loop", r"timed out"),
    5: ("more shared memory than there is", r"CUDA_ERROR_INVALID_VALUE|shared memory"),
    6: ("more threads than it was compiled for", r"CUDA_ERROR_(INVALID_VALUE|LAUNCH_OUT_OF_RESOURCES)|launch bounds"),
    7: ("more memory than there is", r"bytes of (the device's )?memory"),
    8: ("an illegal address when it is timed", r"CUDA_ERROR_ILLEGAL_ADDRESS"),
    9: ("an endless loop when it is timed", r"timed out"),
}

# Takes what memory the device has left, says so, and keeps it until its input ends.
HOG = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total, at = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
ok = lambda code: code == 0 or sys.exit(f"the driver says {code}")
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
step = 1 << 34
while step >= 1 << 21:
    if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(step)) != 0:
        step //= 2
print("full", flush=True)
sys.stdin.read()
"""


def deaths(lab):
    folder = lab.copy("deaths", ROOT / "tests/gpu/deaths")
    done, steps = lab.build(folder, "--target", "gpu", KFORGE_BUILD_TIME_LIMIT="5s")
    by_death, said = {}, {}
    for step in steps:
        if step.variant and step.kind in ("inspect", "verify", "judge", "bench"):
            number = int(re.search(r"DEATH=(\d+)", step.variant)[1])
            by_death.setdefault(number, []).append(step)
    for number, (what, words) in DEATHS.items():
        why = [text for step in by_death.get(number, []) for text in [step.wrong()] if text]
        said[what] = why[:2]
        lab.row("deaths", what, any(re.search(words, text) for text in why), why[:1] or "no reason was given")
    champions = [c["variant"] for _, target in lab.targets(folder) for c in target["champions"]]
    held, found = unharmed(by_death.get(0, []), champions)
    lab.row("deaths", "the rest of the run is unharmed", held, f"{found}; exit {done.code}")
    full(lab, folder, said)
    nothing_left(lab)
    lab.figures["deaths"] = {"said": said, "seconds": done.seconds}


def unharmed(steps, champions):
    """Whether both variants that do what they should are right and timed, with few samples or in full, and one of them is the champion."""
    right = {step.variant for step in steps if step.kind == "judge" and step.verdict == "pass"}
    timed = {step.variant for step in steps if step.kind == "bench" and step.ran() and not step.wrong()}
    held = len(right) == len(timed) == 2 and len(champions) == 1 and champions[0] in timed
    return held, f"{len(right)} right, {len(timed)} timed of 2; champion {champions}"


def full(lab, folder, said):
    """Another process has taken the device's memory."""
    hog = subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        told = hog.stdout.readline().strip()
        # Other machine code, about which nothing is known.
        source = folder / "deaths.cu"
        text = source.read_text()
        source.write_text(text.replace("2.0f * x[i] + 1.0f", "1.0f + 2.0f * x[i] + (n < 0)"))
        narrow(folder)
        done, steps = lab.build(folder, "--target", "gpu")
        why = [text for step in steps for text in [step.wrong()] if text]
        said["a device without memory"] = why[:2]
        held = told == "full" and any(re.search(r"CUDA_ERROR_OUT_OF_MEMORY|are free", text) for text in why)
        lab.row("deaths", "a device without memory", held, f"{told}; exit {done.code}; {why[:1]}")
    finally:
        hog.stdin.close()
        hog.wait(60)
    done, steps = lab.build(folder, "--target", "gpu")
    right = [step for step in steps if step.kind == "judge" and step.verdict == "pass"]
    lab.row("deaths", "the same once there is memory", done.code == 0 and bool(right), f"exit {done.code}; {len(right)} correct")


def narrow(folder):
    """Leaves the variants that do what they should."""
    manifest = folder / "kernel.toml"
    manifest.write_text(re.sub(r"tune\.DEATH = .*", "tune.DEATH = [0]", manifest.read_text()))


def nothing_left(lab):
    # What was killed takes the driver a moment to clear away.
    for _ in range(20):
        left = lab.left_behind()
        if not left:
            break
        time.sleep(0.5)
    lab.row("deaths", "no process is left behind", not left, f"{len(left)} left")
