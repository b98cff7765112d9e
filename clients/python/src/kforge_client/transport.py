"""Requests over HTTP: tokens, and trying again where that helps. Knows no route."""

from __future__ import annotations

import http.client
import json
import logging
import math
import random
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

LOG = logging.getLogger("kforge_client")

#: Statuses after which a request is sent again: the server is busy, ends, or a proxy lost it.
AGAIN = frozenset({429, 502, 503, 504})

#: The longest pause between two requests that the server did not ask for, in seconds.
LONGEST_PAUSE = 30.0


class KforgeError(Exception):
    """The server refused a request, or was not reached in time.

    `status` is that of HTTP, 0 if there was no answer, and `code` is the server's word, such as `conflict`.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def pause(attempt: int, retry_after: str | None) -> float:
    """The seconds before the next try: what the server asks for, or 0.5, 1, 2, ... 30, less up to a quarter at random."""
    try:
        asked = float(retry_after) if retry_after else 0.0
    except ValueError:
        asked = 0.0
    asked = asked if math.isfinite(asked) else 0.0
    own = min(LONGEST_PAUSE, 0.5 * 2.0 ** min(attempt, 10))
    return max(asked, own * random.uniform(0.75, 1.0))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a redirected POST would become a GET, and the token would reach another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def request(
    method: str, url: str, token: str | None, body: Mapping[str, Any] | None, answers_in: float, until: float
) -> dict[str, Any]:
    """The JSON that answers a request. `answers_in` is how long one try may take, `until` when to give up (`time.monotonic`)."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Accept": "application/json"}
    if data is not None:
        headers["Content-Type"] = "application/json"
    if token:
        headers["Authorization"] = f"Bearer {token}"
    attempt, warned = 0, False
    while True:
        retry_after: str | None = None
        try:
            sent = urllib.request.Request(url, data=data, headers=headers, method=method)
            with _OPENER.open(sent, timeout=answers_in) as answer:
                found = json.loads(answer.read())
                if isinstance(found, dict):
                    return found
                raise KforgeError(answer.status, "form", f"{url} answered something else than an object")
        except urllib.error.HTTPError as error:
            failure = refused(error)
            retry_after = error.headers.get("Retry-After")
            if error.code not in AGAIN:
                raise failure from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            failure = KforgeError(0, "connection", f"{url}: {error}")
            # Neither a wrong certificate nor an unknown host passes with time.
            if isinstance(getattr(error, "reason", None), (ssl.SSLCertVerificationError, socket.gaierror)):
                raise failure from None
        wait = pause(attempt, retry_after)
        left = until - time.monotonic()
        if wait > left:
            raise failure
        # Who waits for long must know why. A busy server answers, so it is not worth a warning.
        if failure.status == 0 and not warned:
            LOG.warning("%s; trying again for %.0f s (Client(timeout=...) or KFORGE_SERVE_TIMEOUT changes that)", failure, left)
            warned = True
        time.sleep(wait)
        attempt += 1


def refused(error: urllib.error.HTTPError) -> KforgeError:
    """The error that an answer states."""
    try:
        text = error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as broken:
        return KforgeError(error.code, "connection", f"the answer ended early: {broken}")
    try:
        found = json.loads(text)
        return KforgeError(error.code, str(found["code"]), str(found["message"]))
    except (ValueError, KeyError, TypeError):
        return KforgeError(error.code, "http", text.strip() or error.reason or f"status {error.code}")
