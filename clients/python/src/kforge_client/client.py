"""Evaluations: submits them to `kforge serve` and waits for their results."""

from __future__ import annotations

import os
import time
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .transport import KforgeError, request

__all__ = ["Client", "Evaluation", "KforgeError", "evaluate"]

Measure = Literal["verify", "bench", "build"]

#: How long one request waits for the end of a task, in seconds. Proxies often end longer ones.
WAIT = 50.0


@dataclass(frozen=True)
class Evaluation:
    """A result. What is unknown is `None`, and never a failure."""

    verdict: Literal["pass", "fail", "unknown"]
    reason: str | None
    result: Mapping[str, Any]

    @property
    def correct(self) -> bool | None:
        return {"pass": True, "fail": False}.get(self.verdict)

    @property
    def text(self) -> str:
        """All that the server says about a candidate that does not pass: the reason, then errors with their places."""
        errors = [m for m in self.result.get("messages", []) if m.get("severity") == "error"]
        places = [f"{m['file']}:{m.get('line', 1)}" if m.get("file") else m.get("field") for m in errors]
        lines = [": ".join(filter(None, [place, m["message"]])) for place, m in zip(places, errors)]
        return "\n".join(dict.fromkeys([*filter(None, [self.reason]), *lines]))

    @property
    def is_of_server(self) -> bool:
        """Whether the server, and not the candidate, is the cause of an unknown verdict. Another evaluation may end otherwise."""
        return self.verdict == "unknown" and self.result.get("cause") in ("unavailable", "internal", "timed-out")

    def times_ns(self, kernel: str | None = None) -> dict[str, float]:
        """The least median cold time at each bench shape over the variants that pass, of the kernel of that name.

        Without a name, of the only kernel. A result with several kernels then raises `ValueError`.
        """
        kernels = [of for of in self.result.get("kernels", []) if kernel in (None, of.get("kernel"))]
        if len(kernels) > 1 and kernel is None:
            raise ValueError("the package has several kernels: name one")
        times: dict[str, float] = {}
        for found in kernels:
            for shape in (s for v in found["variants"] if v["verdict"] == "pass" for s in v["shapes"]):
                ns = (shape.get("time") or {}).get("cold_ns")
                if ns is not None:
                    times[shape["shape"]] = min(ns, times.get(shape["shape"], ns))
        return times


class Client:
    """A server. `url`, `token` and `timeout` (of `evaluate`, in seconds) are those of `KFORGE_SERVE_URL`, `_TOKEN` and `_TIMEOUT` if not stated."""

    def __init__(self, url: str | None = None, token: str | None = None, timeout: float | None = None) -> None:
        self.url = (url or os.environ.get("KFORGE_SERVE_URL") or "http://127.0.0.1:7377").rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"the server is `{self.url}`: expected a URL such as `http://HOST:7377` (`KFORGE_SERVE_URL`)")
        self.token = token or os.environ.get("KFORGE_SERVE_TOKEN")
        if timeout is None:
            self.timeout = _limit("KFORGE_SERVE_TIMEOUT", os.environ.get("KFORGE_SERVE_TIMEOUT") or 1800.0)
        else:
            self.timeout = _limit("timeout", timeout)

    def evaluate(self, candidate: Mapping[str, Any], **options: Any) -> Evaluation:
        """Evaluates `{"operator": ...}` or `{"package": ...}`. Options are fields of the request: `target`, `measure`, `id`.

        A request that breaks is sent again under the same id, so it is one task. Raises `KforgeError`.
        """
        until = time.monotonic() + self.timeout
        body = {"id": uuid.uuid4().hex, "candidate": candidate, **{k: v for k, v in options.items() if v is not None}}
        task = self._send("POST", f"/v1/evaluations?wait={WAIT:g}", body, until)
        while task["status"] not in ("done", "cancelled"):
            if time.monotonic() > until:
                raise KforgeError(0, "timeout", f"task {task['id']} did not end within {self.timeout:g} s")
            task = self._send("GET", f"/v1/tasks/{urllib.parse.quote(task['id'], safe='')}?wait={WAIT:g}", None, until)
        if task["status"] == "cancelled":
            raise KforgeError(0, "cancelled", f"task {task['id']} was cancelled")
        result = task["result"]
        return Evaluation(result["verdict"], result.get("reason"), result)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, until: float) -> dict[str, Any]:
        return request(method, self.url + path, self.token, body, WAIT + 30.0, until)


def _limit(name: str, seconds: str | float) -> float:
    """A time limit, stated as `name`."""
    try:
        limit = float(seconds)
    except (TypeError, ValueError):
        limit = -1.0
    # Nothing is later than a limit that is no number.
    if not limit >= 0.0:
        raise ValueError(f"the time limit is `{seconds}`: expected a number of seconds such as `1800` (`{name}`)")
    return limit


def evaluate(candidate: Mapping[str, Any], client: Client | None = None, **options: Any) -> Evaluation:
    """Evaluates a candidate with the server of the environment."""
    return (client or Client()).evaluate(candidate, **options)
