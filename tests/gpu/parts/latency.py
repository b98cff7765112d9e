"""One small candidate with a new source, from the command to its verdict and its times: `kforge bench` of a kernel in CUDA C++ and of one in Triton, each with one
variant, one shape that is verified and one that is timed. Beside them PyTorch's `load_inline` of the same CUDA source, which only compiles it.

A first command has installed what is missing and examined the machine. Every command after it starts, compiles, verifies and times by itself. The confirmation of
champions in fresh processes, and profiles, are part of `kforge build` and timed apart. KFORGE_TEST_PYTHON names the Python that has torch.
"""

import itertools
import os
import re
import statistics
import subprocess
import time

from .lab import ROOT, lines

# The most seconds from the command to the verdict, as the median of the candidates, and the least times that `load_inline` takes longer.
LIMITS = {"cuda": 1.2, "triton": 1.4}
INLINE = 50
# New sources of each kernel.
CANDIDATES = 7

# What a candidate changes: a constant that machine code holds, in a condition that no shape meets.
EDITS = {
    "cuda": ("float squares = 0.0f;", "float squares = cols == -{} ? 1.0f : 0.0f;"),
    "triton": ("tl.sum(value, axis=0)", "(tl.sum(value, axis=0) + tl.where(cols == -{}, 1.0, 0.0))"),
}


def latency(lab):
    found = {}
    for language in LIMITS:
        found[language] = candidates(lab, language)
    inline, why = load_inline()
    cuda = found["cuda"].get("bench")
    if inline is None or not cuda:
        lab.row("latency", f"`load_inline` takes {INLINE} times as long", None, why)
    else:
        lab.row("latency", f"`load_inline` takes {INLINE} times as long", inline >= INLINE * cuda, f"{inline:.1f} s, {inline / cuda:.0f} times")
    lab.figures["latency"] = found | {"load_inline": inline}


def package(lab, language):
    """A package with one variant of one kernel."""
    name = {"cuda": "quickstart", "triton": "triton"}[language]
    folder = lab.copy(f"latency-{language}", ROOT / "examples" / name, ready=False)
    manifest = folder / "kernel.toml"
    text = manifest.read_text()
    if language == "cuda":
        text = re.sub(r"(?ms)^\[kernel\.rms_norm\.methods.*?\Z", "", text)
        text = text.replace('targets = ["cpu", "h200"]', "").replace("[128, 256]", "[256]").replace("[4, 1]", "[4]").replace("[true, false]", "[true]")
        text = re.sub(r"(?m)^(even|secret) = .*\n", "", text)
    else:
        head, *operators = re.split(r"(?m)^(?=\[operator\.\w+\]\n)", text)
        text = head + next(part for part in operators if part.startswith("[operator.softmax]"))
        text = text.replace('["f32", "f16"]', '["f32"]').replace("[4, 8]", "[8]").replace("rows = 4096, cols = 4096", "rows = 512, cols = 4096")
        text = re.sub(r"(?m)^(one_row|narrow) = .*\n", "", text)
    text = re.sub(r"(?ms)^\[targets\..*?(?=^#|^\[operator)", "", text)
    manifest.write_text(re.sub(r"(?m)^\[operator", f'[targets.gpu]\narch = "{lab.arch}"\n\n[operator', text, count=1))
    return folder, folder / {"cuda": "rms_norm.cu", "triton": "softmax.py"}[language]


def candidates(lab, language):
    folder, source = package(lab, language)
    first = lab.run(["build"], folder, limit=300)
    if first.code != 0:
        lab.row("latency", f"a first build in {language}", False, first.last())
        return {}
    written = source.read_text()
    was, becomes = EDITS[language]
    took = {"bench": [], "build": []}
    # A home may know the sources of earlier runs.
    number = itertools.count(time.time_ns() % 10**9)
    for _ in range(CANDIDATES):
        for command, seconds in took.items():
            edited = written.replace(was, becomes.format(next(number)))
            assert edited != written, source
            source.write_text(edited)
            done = lab.run([command, "--message-format", "json"], folder)
            ran = {line.get("kind") for line in lines(done.out) if line.get("outcome") == "executed"}
            if done.code != 0 or not {"compile", "verify", "bench"} <= ran:
                lab.row("latency", f"a candidate in {language}", False, f"{command}: exit {done.code}; {done.last()}")
                return {}
            seconds.append(round(done.seconds, 3))
    medians = {command: statistics.median(seconds) for command, seconds in took.items()}
    limit = LIMITS[language]
    lab.row("latency", f"a new candidate in {language} is verified and timed within {limit} s", medians["bench"] <= limit, f"median {medians['bench']:.2f} s of {took['bench']}; also confirmed and profiled {medians['build']:.2f} s")
    return medians | {"all": took}


INLINE_PROGRAM = """
import sys, time, tempfile
from torch.utils.cpp_extension import load_inline
cuda = open(sys.argv[1]).read() + '''
#include <torch/extension.h>
torch::Tensor run(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    rms_norm<256, 4, true><<<x.size(0), 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), x.size(1), 1e-6f);
    return y;
}
'''
start = time.monotonic()
load_inline("rms_norm_inline", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w);", cuda_sources=cuda, functions=["run"], build_directory=tempfile.mkdtemp())
print(time.monotonic() - start)
"""


def load_inline():
    """Seconds that PyTorch takes to compile and load the same source; where it cannot, none, and why."""
    python = os.environ.get("KFORGE_TEST_PYTHON", "python3")
    source = str(ROOT / "examples/quickstart/rms_norm.cu")
    try:
        done = subprocess.run([python, "-c", INLINE_PROGRAM, source], capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        return None, "it did not end within 300 s"
    if done.returncode:
        return None, f"it does not run here: {done.stderr.strip()[-300:]}"
    return float(done.stdout.split()[-1]), None
