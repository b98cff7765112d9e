"""The client against answers of a server of the test's own: what it sends, when it tries again, and what it makes of results."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import math
import sys
import threading
import time
import types
import unittest
import urllib.error
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

from kforge_client import Client, KforgeError, evaluate, logistic, speedup_of, transport, weighted
from kforge_client.verl import candidate_of, compute_score, source_of

OPERATOR = {"operator": {"operator": {}, "source": "s"}}


def done(verdict: str = "pass", **more: Any) -> tuple[int, dict[str, Any]]:
    return 200, {"id": "t", "status": "done", "result": {"verdict": verdict, "kernels": [], "messages": [], **more}}


class Server:
    """Answers requests in order with these statuses, bodies and headers, and keeps what was sent. `None` breaks the connection."""

    def __init__(self, *script: Any) -> None:
        outer = self
        self.script, self.seen = list(script), []

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.seen.append((self.command, self.path, dict(self.headers), json.loads(body) if body else None))
                found = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                if found is None:
                    self.connection.close()
                    return
                status, value, *headers = found
                text = json.dumps(value).encode()
                self.send_response(status)
                for name, content in dict(*headers).items():
                    self.send_header(name, content)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = answer

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()


class Requests(unittest.TestCase):
    def setUp(self) -> None:
        patched = mock.patch.object(transport, "LONGEST_PAUSE", 0.01)
        patched.start()
        self.addCleanup(patched.stop)

    def test_a_task_is_waited_for_with_the_token(self) -> None:
        with Server((202, {"id": "a/b", "status": "queued"}), (200, {"id": "a/b", "status": "running"}), done()) as server:
            found = Client(server.url, "secret").evaluate(OPERATOR, target="cpu", device=None)
        self.assertIs(found.correct, True)
        (method, path, headers, body), second, third = server.seen
        self.assertEqual((method, path), ("POST", "/v1/evaluations?wait=50"))
        self.assertEqual(headers["Authorization"], "Bearer secret")
        self.assertEqual((body["candidate"], body["target"]), (OPERATOR, "cpu"))
        self.assertNotIn("device", body)
        self.assertEqual([(s[0], s[1]) for s in (second, third)], [("GET", "/v1/tasks/a%2Fb?wait=50")] * 2)

    def test_a_busy_server_and_broken_connections_are_tried_again_with_the_same_id(self) -> None:
        busy = {"code": "queue-full", "message": "the queue is full"}
        with Server((429, busy, {"Retry-After": "0"}), (503, busy), None, done()) as server:
            self.assertEqual(Client(server.url).evaluate(OPERATOR).verdict, "pass")
        self.assertEqual(len(server.seen), 4)
        self.assertEqual(len({body["id"] for *_, body in server.seen}), 1)

    def test_a_url_without_a_scheme_is_refused_at_once(self) -> None:
        with self.assertRaisesRegex(ValueError, "127.0.0.1:7377`: expected a URL such as `http://HOST:7377`"):
            Client("127.0.0.1:7377")

    def test_the_pause_grows_and_is_at_least_what_the_server_asks_for(self) -> None:
        with mock.patch.object(transport, "LONGEST_PAUSE", 30.0):
            for attempt in range(20):
                most = min(30.0, 0.5 * 2**attempt)
                self.assertTrue(0.75 * most <= transport.pause(attempt, None) <= most)
            self.assertGreaterEqual(transport.pause(0, "7"), 7.0)
            self.assertLessEqual(transport.pause(0, "Wed, 21 Oct 2026 07:28:00 GMT"), 0.5)

    def test_redirects_are_refused_and_a_strange_pause_does_not_count(self) -> None:
        with Server(done()) as other:
            with Server((307, {}, {"Location": other.url})) as server, self.assertRaises(KforgeError):
                Client(server.url, "secret").evaluate(OPERATOR)
            self.assertEqual(other.seen, [], "the token reaches no other host")
        for strange in ("nan", "inf", "-inf"):
            self.assertLessEqual(transport.pause(0, strange), 0.5)
        with self.assertRaisesRegex(KforgeError, "does-not-exist"):
            Client("http://does-not-exist.invalid", timeout=60.0).evaluate(OPERATOR)

    def test_an_error_whose_text_ends_early_is_an_error_of_the_client(self) -> None:
        class Broken(io.BytesIO):
            def read(self, *_: Any) -> bytes:
                raise http.client.IncompleteRead(b"{")

        error = urllib.error.HTTPError("http://a", 400, "Bad Request", http.client.HTTPMessage(), Broken())
        found = transport.refused(error)
        self.assertEqual((found.status, found.code), (400, "connection"))

    def test_other_refusals_are_errors_at_once(self) -> None:
        with Server((409, {"code": "conflict", "message": "another content"})) as server:
            with self.assertRaises(KforgeError) as raised:
                Client(server.url).evaluate(OPERATOR, id="x")
        self.assertEqual((raised.exception.status, raised.exception.code, str(raised.exception)), (409, "conflict", "another content"))
        self.assertEqual(len(server.seen), 1)
        with Server((401, ["no object"])) as server, self.assertRaisesRegex(KforgeError, "no object"):
            Client(server.url).evaluate(OPERATOR)

    def test_the_client_gives_up_in_time_and_says_what_it_saw_last(self) -> None:
        began = time.monotonic()
        with Server((429, {"code": "client-limit", "message": "64 unfinished"}, {"Retry-After": "60"})) as server:
            with self.assertRaisesRegex(KforgeError, "64 unfinished"):
                Client(server.url, timeout=0.5).evaluate(OPERATOR)
        with Server((202, {"id": "t", "status": "running"})) as server, self.assertRaisesRegex(KforgeError, "did not end"):
            Client(server.url, timeout=0.2).evaluate(OPERATOR)
        with self.assertRaisesRegex(KforgeError, "refused"):
            Client("http://127.0.0.1:1", timeout=0.1).evaluate(OPERATOR)
        with Server((200, {"id": "t", "status": "cancelled"})) as server, self.assertRaisesRegex(KforgeError, "cancelled"):
            Client(server.url).evaluate(OPERATOR)
        self.assertLess(time.monotonic() - began, 5.0)

    def test_an_unreachable_server_is_warned_of_once_and_a_busy_one_is_not(self) -> None:
        busy = {"code": "queue-full", "message": "the queue is full"}
        with Server(None, None, (429, busy, {"Retry-After": "0"}), done()) as server, self.assertLogs("kforge_client") as logs:
            self.assertEqual(Client(server.url, timeout=70.0).evaluate(OPERATOR).verdict, "pass")
        (said,) = logs.output
        self.assertRegex(said, rf"WARNING.*{server.url}/v1/evaluations.*trying again for (70|[56][0-9]) s.*KFORGE_SERVE_TIMEOUT")
        with Server((429, busy, {"Retry-After": "0"}), done()) as server, self.assertNoLogs("kforge_client"):
            Client(server.url).evaluate(OPERATOR)

    def test_the_time_limit_is_that_of_the_environment_unless_it_is_stated(self) -> None:
        self.assertEqual((Client("http://a").timeout, Client("http://a", timeout=2.0).timeout), (1800.0, 2.0))
        with mock.patch.dict("os.environ", {"KFORGE_SERVE_TIMEOUT": "0.1"}), mock.patch.object(transport, "LOG"):
            self.assertEqual((Client("http://a").timeout, Client("http://a", timeout=2.0).timeout), (0.1, 2.0))
            with self.assertRaisesRegex(KforgeError, "refused"):
                Client("http://127.0.0.1:1").evaluate(OPERATOR)

    def test_a_time_limit_that_is_no_number_of_seconds_is_refused_by_its_name(self) -> None:
        for text in ("abc", "nan", "-1", "1 s"):
            with mock.patch.dict("os.environ", {"KFORGE_SERVE_TIMEOUT": text}):
                with self.assertRaisesRegex(ValueError, f"`{text}`: expected a number of seconds.*`KFORGE_SERVE_TIMEOUT`"):
                    Client("http://a")
                self.assertEqual(Client("http://a", timeout=0.0).timeout, 0.0)
        for limit in (float("nan"), -1.0):
            with self.assertRaisesRegex(ValueError, "expected a number of seconds.*`timeout`"):
                Client("http://a", timeout=limit)

    def test_the_text_of_a_refused_candidate_names_the_field_of_the_request(self) -> None:
        at = {"severity": "error", "message": "unknown dtype `f33`", "field": "candidate.operator.operator.inputs.x.dtype"}
        with Server(done("unknown", reason="r", messages=[at])) as server:
            found = Client(server.url).evaluate(OPERATOR)
        self.assertEqual(found.text, "r\ncandidate.operator.operator.inputs.x.dtype: unknown dtype `f33`")

    def test_the_server_and_the_token_are_those_of_the_environment(self) -> None:
        with Server(done()) as server:
            with mock.patch.dict("os.environ", {"KFORGE_SERVE_URL": server.url + "/", "KFORGE_SERVE_TOKEN": "t"}):
                evaluate(OPERATOR)
        self.assertEqual(server.seen[0][2]["Authorization"], "Bearer t")


TIMED = {
    "verdict": "pass",
    "messages": [],
    "kernels": [{"variants": [
        {"verdict": "pass", "shapes": [{"shape": "big", "time": {"cold_ns": 20.0, "hot_ns": 5.0}}, {"shape": "small"}]},
        {"verdict": "pass", "shapes": [{"shape": "big", "time": {"cold_ns": 10.0}}]},
        {"verdict": "fail", "shapes": [{"shape": "big", "time": {"cold_ns": 1.0}}]},
    ]}],
}


class Scores(unittest.TestCase):
    def score(self, answer: Any, task: Any, solution: str = "s") -> dict[str, Any]:
        with Server(answer) as server:
            return compute_score("kforge", solution, task, {"index": 1}, client=Client(server.url))

    def test_rewards_are_bounded_grow_with_the_speed_up_and_are_least_for_what_is_wrong(self) -> None:
        for reward, most in ((logistic, 1.0), (weighted, 1.25)):
            before = (0.0, 0.0)
            for speedup in (0.01, 0.5, 1.0, 1.01, 2.0, 1e300):
                found = reward(True, speedup)
                self.assertTrue(before[0] <= found.at_least <= found.at_most <= most, (reward, speedup, found))
                self.assertEqual(reward(False, speedup), (0.0, 0.0))
                self.assertEqual(reward(None, speedup).at_least, 0.0)
                before = found
        self.assertEqual((logistic(True, 1.0), logistic(True, None), logistic(None, 3.0)), ((0.5, 0.5), (0.0, 1.0), (0.0, 0.75)))
        self.assertEqual((weighted(True, 2.0), weighted(True, 2.0, 0.4)), ((1.0, 1.25), (1.1, 1.1)))
        for unknown in (math.nan, math.inf, 0.0, -1.0):
            self.assertEqual((logistic(True, unknown), weighted(True, unknown, 0.0)), ((0.0, 1.0), (0.5, 1.0)), unknown)
            self.assertIsNone(speedup_of({"a": unknown}, {"a": 1.0}))
            self.assertIsNone(speedup_of({"a": 1.0}, {"a": unknown}))
        self.assertEqual(weighted(True, 2.0, math.nan), (1.0, 1.25))
        self.assertEqual(speedup_of({"a": 1.0, "b": 4.0, "c": 1.0}, {"a": 2.0, "b": 32.0}), 4.0)
        self.assertIsNone(speedup_of({"a": 1.0}, {"a": 2.0, "b": 32.0}), "a shape without a time is not left out")
        self.assertIsNone(speedup_of({}, {"a": 1.0}))
        self.assertIsNone(speedup_of({"a": 1.0}, {}))

    def test_a_timed_kernel_scores_by_its_fastest_correct_variant(self) -> None:
        task = {"candidate": {"entry": "k"}, "measure": "bench", "baseline_ns": {"big": 30.0}}
        found = self.score((200, {"id": "t", "status": "done", "result": TIMED}), json.dumps(task))
        self.assertEqual((round(found["score"], 9), found["known"], round(found["speedup"], 9)), (0.75, 1.0, 3.0))
        untimed = self.score(done(), task)
        self.assertEqual((untimed["score"], untimed["known"], untimed["correct"]), (0.0, 0.0, 1.0))
        self.assertTrue(math.isnan(untimed["speedup"]), "unknown is not 0")

    def test_the_times_of_a_package_with_several_kernels_are_those_of_the_one_that_is_named(self) -> None:
        slow = {"kernel": "slow", "variants": [{"verdict": "pass", "shapes": [{"shape": "big", "time": {"cold_ns": 60.0, "hot_ns": 1.0}}]}]}
        both = {**TIMED, "kernels": [{"kernel": "fast", **TIMED["kernels"][0]}, slow]}
        task = {"candidate": {}, "baseline_ns": {"big": 30.0}, "kernel": "slow"}
        found = self.score((200, {"id": "t", "status": "done", "result": both}), task)
        self.assertEqual(round(found["speedup"], 9), 0.5)
        with self.assertRaisesRegex(ValueError, "several kernels"):
            self.score((200, {"id": "t", "status": "done", "result": both}), {"candidate": {}, "baseline_ns": {"big": 30.0}})

    def test_a_fault_of_the_server_is_an_error_and_no_reward(self) -> None:
        for cause in ("unavailable", "internal", "timed-out"):
            with self.assertRaisesRegex(KforgeError, "no device") as raised:
                self.score(done("unknown", reason="no device", cause=cause), {"candidate": {}})
            self.assertEqual(raised.exception.code, cause)

    def test_without_a_baseline_a_correct_kernel_scores_one(self) -> None:
        task = {"candidate": {}}
        self.assertEqual(self.score(done(), task)["score"], 1.0)
        wrong = self.score(done("fail", reason="wrong at small: y[3]", messages=[
            {"severity": "error", "message": "index 3", "file": "k.cu", "line": 7}, {"severity": "warning", "message": "w"}]), task)
        self.assertEqual((wrong["score"], wrong["known"], wrong["text"]), (0.0, 1.0, "wrong at small: y[3]\nk.cu:7: index 3"))
        unknown = self.score(done("unknown", reason="not emulated", cause="undecided"), task)
        self.assertEqual((unknown["score"], unknown["known"], math.isnan(unknown["correct"])), (0.0, 0.0, True))

    def test_a_reply_that_is_too_large_is_wrong_and_a_fault_of_the_task_is_an_error(self) -> None:
        large = self.score((413, {"code": "too-large", "message": "the body is larger"}), {"candidate": {}})
        self.assertEqual((large["score"], large["known"], large["text"]), (0.0, 1.0, "the body is larger"))
        with self.assertRaises(KforgeError):
            self.score((400, {"code": "bad-request", "message": "`dims`"}), {"candidate": {}})

    def test_the_last_block_of_a_reply_is_the_source(self) -> None:
        self.assertEqual(source_of("a\n```cuda\nfirst\n```\nb\n```\nsecond\n  x\n```\n"), "second\n  x\n")
        self.assertEqual(source_of("int a;"), "int a;")
        package = {"package": {"manifest": "m", "files": {"a": "1", "k.cu": "old"}}, "file": "k.cu"}
        self.assertEqual(candidate_of(package, "new")["package"]["files"], {"a": "1", "k.cu": "new"})
        self.assertEqual(package["package"]["files"]["k.cu"], "old")


class Environment(unittest.TestCase):
    def test_reward_functions_share_one_evaluation_and_return_floats(self) -> None:
        made = types.SimpleNamespace(
            Rubric=lambda **of: types.SimpleNamespace(**of), SingleTurnEnv=lambda **of: types.SimpleNamespace(**of)
        )
        datasets = types.SimpleNamespace(Dataset=types.SimpleNamespace(from_list=list))
        with Server(done()) as server, mock.patch.dict(sys.modules, {"verifiers": made, "datasets": datasets}):
            from kforge_client.environment import load_environment

            env = load_environment([{"question": "q", "task": {"candidate": {}}}], url=server.url, max_workers=3)
            row = env.dataset[0]

            async def all_of(content: Any) -> list[Any]:
                message = [{"role": "assistant", "content": content}]
                return await asyncio.gather(*(f(completion=message, answer=row["answer"], state={}) for f in env.rubric.funcs))

            self.assertEqual(asyncio.run(all_of("s")), [1.0, 1.0])
            self.assertEqual(len(server.seen), 1, "both functions ask once")
        self.assertEqual((row["question"], env.max_workers, env.rubric.weights), ("q", 3, [1.0, 0.0]))
        with Server(done("unknown", cause="undecided"), done()) as server, mock.patch.dict(sys.modules, {"verifiers": made, "datasets": datasets}):
            env = load_environment([{"question": "q", "task": {"candidate": {}}}], url=server.url)
            # Each run has an event loop of its own.
            self.assertEqual([asyncio.run(all_of("s"))[0] for _ in range(2)], [0.0, 1.0], "what was unknown is asked again")
        with Server(done("fail")) as server, mock.patch.dict(sys.modules, {"verifiers": made, "datasets": datasets}):
            env = load_environment([{"question": "q", "task": {"candidate": {}}}], url=server.url)
            self.assertEqual(asyncio.run(all_of([{"type": "text", "text": "s"}])), [0.0, 0.0])

    def test_a_caller_that_is_cancelled_cancels_no_other_one(self) -> None:
        from kforge_client import environment

        asked, goes_on = threading.Event(), threading.Event()

        def slow(*_: Any) -> dict[str, Any]:
            asked.set()
            goes_on.wait(10.0)
            return {"score": 1.0, "correct": 1.0, "known": 1.0}

        async def both() -> float:
            rewards = environment.Rewards(Client("http://127.0.0.1:1"), 1)
            first, second = (asyncio.ensure_future(rewards.reward("s", "{}")) for _ in range(2))
            await asyncio.to_thread(asked.wait, 10.0)
            first.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await first
            goes_on.set()
            return await second

        with mock.patch.object(environment, "compute_score", slow):
            self.assertEqual(asyncio.run(both()), 1.0)

    def test_verifiers_is_imported_only_there(self) -> None:
        for module in ("verifiers", "datasets"):
            self.assertNotIn(module, sys.modules)


if __name__ == "__main__":
    unittest.main()
