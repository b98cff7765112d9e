"""The reward function of verl: `compute_score`. Name this file as `custom_reward_function.path`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from kforge_client import Client, KforgeError, logistic, speedup_of

#: A block of code in a reply. The last one is the solution.
FENCE = re.compile(r"^```[^\n`]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def source_of(solution: str) -> str:
    """The last block of code of a reply; the whole reply if it has none."""
    blocks = FENCE.findall(solution)
    return blocks[-1] if blocks else solution


def candidate_of(task: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The candidate of a task: its table `operator` as the server takes it, with this source."""
    if "package" in task:
        package = dict(task["package"])
        files = {**package.get("files", {}), task["file"]: source}
        return {"package": {**package, "files": files}}
    return {"operator": {**task["candidate"], "source": source}}


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str | Mapping[str, Any],
    extra_info: Mapping[str, Any] | None = None,
    client: Client | None = None,
) -> dict[str, Any]:
    """The score of a reply.

    `ground_truth` is the task, as JSON or as a mapping:

    * `candidate`: a candidate of an operator without its `source`; or `package` and `file`, the path of the source in it;
    * `target`, `device`, `measure`: fields of the request (`measure` is `verify` if it is missing);
    * `baseline_ns`: times by bench shape. The score is then the logistic reward of the speed-up over them;
    * `kernel`: the kernel whose times count, of a package with several.

    Without `baseline_ns`, a correct kernel scores 1. `score` is the least that the reward can be: what is unknown, such as a
    time that was not measured, adds nothing, and `known` is 0 then; `correct` and `speedup` are NaN where they are unknown.
    `text` is what the next turn of the model can read. Raises `KforgeError` for faults that are not the candidate's.
    """
    task: Mapping[str, Any] = json.loads(ground_truth) if isinstance(ground_truth, str) else ground_truth
    options = {key: task.get(key) for key in ("target", "device", "measure", "timeout_s")}
    try:
        found = (client or Client()).evaluate(candidate_of(task, source_of(solution_str)), **options)
    except KforgeError as error:
        # A source that is too large is a fault of the reply; anything else is none.
        if error.code != "too-large":
            raise
        return {"score": 0.0, "known": 1.0, "correct": 0.0, "speedup": math.nan, "text": str(error)}
    if found.is_of_server:
        raise KforgeError(0, str(found.result.get("cause")), found.text)
    speedup = None
    if "baseline_ns" in task:
        speedup = speedup_of(found.times_ns(task.get("kernel")), task["baseline_ns"])
        low, high = logistic(found.correct, speedup)
    else:
        low, high = float(found.correct is True), float(found.correct is not False)
    return {
        "score": low,
        "known": float(low == high),
        "correct": math.nan if found.correct is None else float(found.correct),
        "speedup": math.nan if speedup is None or not found.correct else speedup,
        "text": found.text,
    }
