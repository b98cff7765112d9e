"""A machine that lacks something: no Nsight Compute, no permission to read counters, no NVML. Builds complete, verdicts are unaffected, and unknown values are reported.

What is missing is feigned: PATH without ncu, an ncu that says what the real one says without the right, an NVML that is no library.
"""

import os

from .lab import ROOT, targets_of

# As ncu 2025.3 says it, and ends with 1.
REFUSED = """#!/bin/sh
case "$*" in *--version*) echo "NVIDIA (R) Nsight Compute Command Line Profiler"; echo "Version 2025.3.1.0 (build 36398880) (public-release)"; exit 0;; esac
echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM"
exit 1
"""


def degraded(lab):
    path = lab.env.get("PATH", "")
    without = ":".join(place for place in path.split(":") if not os.access(os.path.join(place, "ncu"), os.X_OK))
    fake = lab.folder / "refused"
    fake.mkdir()
    (fake / "ncu").write_text(REFUSED)
    (fake / "ncu").chmod(0o755)
    nothing = lab.folder / "no-nvml"
    nothing.mkdir()
    # The loader takes the first of the name, and this is no library.
    (nothing / "libnvidia-ml.so.1").write_text("")
    library = ":".join(filter(None, [str(nothing), lab.env.get("LD_LIBRARY_PATH")]))
    cases = [
        ("ncu", "without ncu", {"PATH": without, "KFORGE_TOOLCHAIN_NCU": str(lab.folder / "no-ncu")}),
        ("counters", "with counters refused", {"PATH": f"{fake}:{path}"}),
        ("nvml", "without NVML", {"LD_LIBRARY_PATH": library}),
    ]
    for name, what, env in cases:
        folder = lab.copy(f"degraded-{name}", ROOT / "examples/quickstart", ready=False)
        # A home of its own, else a result that is known from before would answer.
        home = lab.home(name)
        targets = [word for target in targets_of(folder, lab.arch) for word in ("--target", target)]
        if not targets:
            lab.row("degraded", what, None, f"the quickstart has no target of {lab.arch}")
            continue
        done, steps = lab.build(folder, *targets, KFORGE_HOME=str(home), **env)
        judged = [step for step in steps if step.kind == "judge"]
        timed = [step for step in steps if step.kind == "bench" and step.ran() and not step.wrong()]
        right = sum(step.verdict == "pass" for step in judged)
        held = done.code == 0 and right == len(judged) > 0 and bool(timed)
        lab.row("degraded", f"{what}: the build completes", held, f"exit {done.code}, {right} of {len(judged)} pass, {len(timed)} timed; {'' if held else done.last()}")
        if name == "nvml":
            lab.row("degraded", f"{what}: unknown values are reported", None, "records leave out the values of NVML, and no verdict depends on them")
            continue
        unknown = unknowns(lab, folder, steps)
        lab.row("degraded", f"{what}: unknown values are reported", bool(unknown), unknown[:2] or "nothing is reported as unknown")
        lab.figures.setdefault("degraded", {})[name] = {"exit": done.code, "pass": right, "timed": len(timed), "unknown": unknown}


def unknowns(lab, folder, steps):
    """What steps say that they could not do, and what rooflines say that they do not know."""
    found = [text for step in steps if step.kind in ("profile", "roofline") for text in [step.wrong()] if text]

    def walk(value):
        if isinstance(value, dict):
            for name, inner in value.items():
                if name in ("unknown", "no-counters", "missing") and inner:
                    found.append(str(inner)[:200])
                else:
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    for _, target in lab.targets(folder):
        walk(target.get("rooflines", []))
        found.extend(f"{kind}: {why}" for kind, _, why in target.get("unavailable", []))
    return sorted(set(found))
