"""Inputs that a package gives, by a function and in files: each step that launches a kernel gets them, so verdicts, times, pairs and profiles are there."""

import json
import struct

from .lab import ROOT

EXTENT = 65536
# What launches a kernel at a bench shape.
LAUNCHED = ("verify", "bench", "pairs", "profile")


def inputs(lab):
    folder = lab.copy("inputs", ROOT / "tests/gpu/inputs")
    (folder / "place.safetensors").write_bytes(reversed_places())
    done, steps = lab.build(folder, "--target", "gpu")
    for kernel in ("permuted", "stored"):
        of = {kind: [step for step in steps if step.kind == kind and step.kernel == kernel] for kind in LAUNCHED}
        wrong = [f"{step.id}: {step.wrong()}" for kind in LAUNCHED for step in of[kind] if step.wrong()]
        # Profiles need Nsight Compute, which the part `degraded` is about.
        missing = [kind for kind in LAUNCHED if not of[kind]]
        wrong = [text for text in wrong if "ncu" not in text and "ERR_NVGPUCTRPERM" not in text]
        judged = [step for step in steps if step.kind == "judge" and step.kernel == kernel]
        passed = bool(judged) and all(step.verdict == "pass" for step in judged)
        counts = ", ".join(f"{len(of[kind])} {kind}" for kind in LAUNCHED)
        held = passed and not wrong and not missing
        lab.row("inputs", f"{kernel}: every step that launches it has its inputs", held, f"{counts}; {len(judged)} judged; {wrong[:2] or done.last() if not held else 'nothing is wrong'}")


def reversed_places():
    """A file in safetensors format with `place`: the numbers below EXTENT, the largest first."""
    data = struct.pack(f"<{EXTENT}i", *range(EXTENT - 1, -1, -1))
    header = json.dumps({"place": {"dtype": "I32", "shape": [EXTENT], "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data
