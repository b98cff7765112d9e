"""Champions beside a baseline on this GPU: one that is wrong there only fails, and an honest one, whose sums differ in their last bits from launch to launch,
stays correct and has a ratio.

KFORGE_TEST_PYTHON names the Python that has torch with CUDA (python3).
"""

from .baselines import with_torch
from .lab import ROOT


def beside(lab):
    python = with_torch(lab, "beside")
    if python is None:
        return
    folder = lab.copy("beside", ROOT / "tests/gpu/beside")
    done, steps = lab.build(folder, limit=300, KFORGE_TOOLCHAIN_PYTHON=python)
    judged = {step.id: step.verdict for step in steps if step.kind == "judge"}
    of = {name: {step: verdict for step, verdict in judged.items() if f"/{name}/" in step} for name in ("tires", "adds_atomically")}
    found = {step: verdict for step, verdict in of["tires"].items() if verdict != "pass"}
    why = [verdict.get("fail", "") if isinstance(verdict, dict) else str(verdict) for verdict in found.values()]
    only = len(found) == 1 and next(iter(found)).endswith("/large/against/affine/launched/judge")
    lab.row("beside", "a kernel that is wrong beside a baseline only fails there", only and "timed beside a baseline: `y` differs" in why[0] and done.code == 100, found or f"exit {done.code}, {sorted(judged)}"[:200])
    others = {step: verdict for step, verdict in of["adds_atomically"].items() if verdict != "pass"}
    lab.row("beside", "a kernel whose sums differ in their last bits passes", len(of["adds_atomically"]) >= 2 and not others, others or f"{len(of['adds_atomically'])} judgements")
    rated = {name: one["rating"] for name, target in lab.targets(folder) for one in target.get("baselines", [])}
    ratio = {name: one.get("ratio") for name, one in rated.items()}
    lab.row("beside", "only the correct one has a ratio", set(ratio) == set(of) and bool(ratio["adds_atomically"]) and ratio["tires"] is None, ratio)
    left = lab.left_behind()
    lab.row("beside", "no process is left", not left, left)
    lab.figures["beside"] = {"seconds": done.seconds, "rated": rated, "judged": judged}
