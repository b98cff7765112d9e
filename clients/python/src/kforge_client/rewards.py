"""Bounded rewards, as `kforge export trajectories` states them. What is unknown is between bounds and is not 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple


def _known(speedup: float | None) -> float | None:
    """A speed-up that counts: finite and above 0. Anything else is unknown."""
    return speedup if speedup is not None and math.isfinite(speedup) and speedup > 0 else None


class Bounds(NamedTuple):
    """A reward. It is known if both bounds are equal."""

    at_least: float
    at_most: float


def logistic(correct: bool | None, speedup: float | None) -> Bounds:
    """Makora's reward (arXiv 2602.11000): s / (1 + s) of a correct candidate that is s times as fast, and 0 of a wrong one."""
    if correct is False:
        return Bounds(0.0, 0.0)
    known = _known(speedup)
    low, high = (0.0, 1.0) if known is None else (known / (1.0 + known),) * 2
    return Bounds(low if correct else 0.0, high)


def weighted(correct: bool | None, speedup: float | None, ratio: float | None = None) -> Bounds:
    """Dr. Kernel's reward: 0.5, 0.5 more from 1.01 times as fast on, and 0.25 of the profiling ratio; 0 of a wrong candidate."""
    if correct is False:
        return Bounds(0.0, 0.0)
    known = _known(speedup)
    faster = (0.0, 1.0) if known is None else (float(known >= 1.01),) * 2
    share = (0.0, 1.0) if ratio is None or math.isnan(ratio) else (min(max(ratio, 0.0), 1.0),) * 2
    low, high = (0.5 + 0.5 * f + 0.25 * s for f, s in zip(faster, share))
    return Bounds(low if correct else 0.0, high)


def speedup_of(times_ns: Mapping[str, float], baseline_ns: Mapping[str, float]) -> float | None:
    """The geometric mean of the baseline's times over the candidate's. `None` unless every shape of the baseline has both times."""
    logs = []
    for shape, baseline in baseline_ns.items():
        own, of_baseline = _known(times_ns.get(shape)), _known(baseline)
        if own is None or of_baseline is None:
            return None
        logs.append(math.log(of_baseline / own))
    return math.exp(sum(logs) / len(logs)) if logs else None
