"""An environment for verifiers and prime-rl: one turn for each task, rewarded by `kforge serve`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .client import Client
from .verl import compute_score

#: What a model is told if the tasks do not say it themselves.
SYSTEM = "You write GPU kernels. Answer with one block of code: the whole source."

#: How many scores are kept for the other reward functions of the same reply.
MOST_KNOWN = 4096


def rows(tasks: str | Path | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tasks as rows of a dataset: from a file of JSON lines or a sequence of `{"question": ..., "task": ...}`."""
    if isinstance(tasks, (str, Path)):
        lines = Path(tasks).read_text(encoding="utf-8").splitlines()
        tasks = [json.loads(line) for line in lines if line.strip()]
    # As text, because rows of different tasks have different fields.
    return [{"question": task["question"], "answer": json.dumps(task["task"])} for task in tasks]


def text_of(completion: Any) -> str:
    """The text of the last message."""
    if isinstance(completion, str):
        return completion
    last = completion[-1]
    content = last["content"] if isinstance(last, Mapping) else last.content
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


class Rewards:
    """Reward functions that share one evaluation of each reply. At most `parallel` evaluations are asked for at once."""

    def __init__(self, client: Client, parallel: int) -> None:
        self.client, self.threads = client, ThreadPoolExecutor(parallel)
        self.known: dict[tuple[str, str], Future[dict[str, Any]]] = {}

    async def _score(self, completion: Any, answer: str) -> dict[str, Any]:
        key = (text_of(completion), answer)
        asked = self.known.get(key)
        if asked is None:
            asked = self.known[key] = self.threads.submit(compute_score, "kforge", *key, None, self.client)
            # The server knows older results, so to forget them here costs a request.
            while len(self.known) > MOST_KNOWN:
                del self.known[next(iter(self.known))]
        # A future of a thread belongs to no event loop, and one caller that is cancelled does not cancel it for the others.
        try:
            found = await asyncio.shield(asyncio.wrap_future(asked))
        except Exception:
            self._forget(key, asked)
            raise
        # What is unknown now may be known later.
        if not found["known"]:
            self._forget(key, asked)
        return found

    def _forget(self, key: tuple[str, str], asked: Future[dict[str, Any]]) -> None:
        if self.known.get(key) is asked:
            del self.known[key]

    async def reward(self, completion: Any, answer: str, **_: Any) -> float:
        """The score of `compute_score`."""
        return float((await self._score(completion, answer))["score"])

    async def correct(self, completion: Any, answer: str, **_: Any) -> float:
        """1 if the kernel is correct, 0 if it is wrong, NaN if that is unknown."""
        return float((await self._score(completion, answer))["correct"])


def load_environment(
    tasks: str | Path | Sequence[Mapping[str, Any]] = "tasks.jsonl",
    url: str | None = None,
    token: str | None = None,
    parallel: int = 64,
    system_prompt: str = SYSTEM,
    **kwargs: Any,
) -> Any:
    """The environment. `correct` is reported and has no weight. Further arguments are those of `verifiers.SingleTurnEnv`."""
    import verifiers as vf
    from datasets import Dataset

    rewards = Rewards(Client(url, token), parallel)
    rubric = vf.Rubric(funcs=[rewards.reward, rewards.correct], weights=[1.0, 0.0])
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows(tasks)), rubric=rubric, system_prompt=system_prompt, **kwargs)
