"""kforge beside Kernel Tuner on one space (tests/gpu/tuner), one after the other on the same machine: variants a minute, the best of them, and what is right.

Both are timed until every variant is verified and timed. kforge then times those that may be the fastest in full and in pairs, which Kernel Tuner does not, before it names
a champion: until when is told beside it. Measuring the device's peaks and profiling the champion come after both.
"""

import json
import os
import re
import subprocess
import sys

from .lab import ROOT

# What a quick run leaves of the space: eight variants.
FEW = {"TX": [16, 32], "TY": [8], "RX": [4, 8], "RY": [4, 8], "TK": [16]}
TIMES = 10
# How the id of a timing ends that is of few samples.
FEW_SAMPLES = "/few/bench"


def tuner(lab, quick):
    folder = space(lab, quick, "tuner")
    ours, steps = kforge(lab, folder)
    lab.figures["tuner"] = {"kforge": ours, "slowest": slowest(steps)}
    line(lab, ours)
    theirs = beside(folder)
    if "missing" in theirs:
        lab.row("tuner", "Kernel Tuner", None, theirs["missing"])
        return
    lab.figures["tuner"]["kernel_tuner"] = theirs
    line(lab, theirs)
    ratio, timed = (ours[rate] / theirs["a_minute"] for rate in ("a_minute", "timed_a_minute"))
    lab.row("tuner", f"all verified and timed at {TIMES} times its variants a minute", timed >= TIMES, f"{timed:.1f} times; {ratio:.1f} times until the champion is known")
    # Which of two within a per cent is the faster, no two clocks agree on.
    best = ours["best_ms"] or float("inf")
    lab.row("tuner", "the same best variant or a faster one", ours["best"] == theirs["best"] or best <= 1.01 * theirs["best_ms"],
            f"{best:.3f} ms ({ours['best']}), Kernel Tuner {theirs['best_ms']:.3f} ms ({theirs['best']})")
    missed = sorted(set(theirs["right_variants"]) - set(ours["right_variants"]))
    lab.row("tuner", "every variant that it finds correct is correct", not missed, f"{len(missed)} of {theirs['right']} are not; {missed[:3]}")


def space(lab, quick, name):
    """A copy of the package, and the toolchain there before the clock runs, as Kernel Tuner's is, and this machine known to the home, which it is from a first build on."""
    folder = lab.copy(name, ROOT / "tests/gpu/tuner")
    manifest = folder / "kernel.toml"
    if quick:
        for tunable, values in FEW.items():
            manifest.write_text(re.sub(rf"tune\.{tunable} = .*", f"tune.{tunable} = {values}", manifest.read_text()))
    lab.run(["toolchain", "install"], folder)
    checked = lab.run(["check", "--target", "h200"], lab.copy(f"{name}-first", ROOT / "examples/quickstart", ready=False))
    if checked.code != 0:
        raise RuntimeError(f"the home is not ready: {checked.last()}")
    return folder


def kforge(lab, folder, **env):
    done, steps = lab.build(folder, "--target", "gpu", **env)
    variant = lambda step: step.variant or ""
    variants = {variant(step) for step in steps if step.kind == "compile"}
    right = {variant(step) for step in steps if step.kind == "judge" and step.verdict == "pass"}
    timed = {variant(step) for step in steps if step.kind == "bench" and step.ran() and not step.wrong()}
    in_full = {variant(step) for step in steps if step.kind == "bench" and step.ran() and not step.id.endswith(FEW_SAMPLES)}
    # Where there are few variants each is timed in full at once.
    few = any(step.id.endswith(FEW_SAMPLES) for step in steps)
    is_first = lambda step: step.kind == "bench" and (step.id.endswith(FEW_SAMPLES) or not few)
    # From the start of the command to the line that tells of it. Kernel Tuner's clock starts and ends inside its process.
    until = lambda counts: max((step.told for step in steps if counts(step)), default=done.seconds)
    seconds = until(lambda step: step.kind == "select")
    # The champion's verification is repeated in a process of its own after the selection.
    all_timed = until(lambda step: step.kind == "verify" and "/confirmed/" not in step.id or is_first(step))
    times = {}
    champion = None
    for _, target in lab.targets(folder):
        # A full timing counts before one of few samples.
        known = sorted(target.get("times", []), key=lambda time: time["cold_ns"] is not None)
        times |= {time["variant"]: time["hot_ns"] or time["cold_ns"] for time in known}
        champion = next((c["variant"] for c in target["champions"]), None)
    best = champion or min(times, key=times.get, default=None)
    return {
        "tool": "kforge",
        "variants": len(variants),
        "right": len(right & timed),
        "in_full": len(in_full),
        "seconds": seconds,
        "a_minute": len(variants) / seconds * 60,
        "timed_seconds": all_timed,
        "timed_a_minute": len(variants) / all_timed * 60,
        "best_ms": times[best] / 1e6 if best in times else None,
        "best": best,
        "right_variants": sorted(right & timed),
        "exit": done.code,
    }, steps


def slowest(steps):
    """Seconds in all by kind of step."""
    kinds = {}
    for step in steps:
        kinds[step.kind] = kinds.get(step.kind, 0) + step.seconds
    return {kind: round(seconds, 2) for kind, seconds in sorted(kinds.items(), key=lambda of: -of[1])}


def beside(folder):
    # What CuPy compiled for an earlier run it would find again.
    env = {**os.environ, "CUPY_CACHE_DIR": str(folder / "cupy")}
    done = subprocess.run([sys.executable, str(folder / "beside.py"), str(folder / "kernel.toml")], capture_output=True, text=True, env=env)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return {"missing": f"not run: {last[0]} (tests/gpu/tuner/beside.py says what to install)"}
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return said | {"a_minute": said["variants"] / said["seconds"] * 60}


def line(lab, of):
    known = f", all verified and timed after {of['timed_seconds']:.1f} s" if "timed_seconds" in of else ""
    found = f"{of['variants']} variants, {of['right']} right, {of['seconds']:.1f} s, {of['a_minute']:.0f} a minute{known}, best {of['best_ms'] or 0:.3f} ms ({of['best']})"
    lab.row("tuner", of["tool"], of["right"] > 0, found)
