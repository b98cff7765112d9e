"""`kforge serve` on this GPU: the time of one new small candidate in CUDA C++ at a warm server, from the request to its verdict and its times; then 768 distinct
candidates by 64 clients, beside a sample of the same through separate commands `kforge bench`.

The candidates have one variant, one shape that is verified and one that is timed, and differ in a constant that machine code holds. CUDA is that of this machine.
"""

import http.client
import json
import queue
import statistics
import subprocess
import threading
import time
from pathlib import Path

# The most seconds from a request to its result, as the median of the candidates.
LIMIT = 0.6
# New candidates, one after the other, and others before them.
CANDIDATES, WARM_UP = 9, 3
# Distinct candidates at once, the most seconds for all of them, clients, and how many are built by commands of their own.
MANY, WITHIN, CLIENTS, SAMPLE = 768, 390, 64, 8

SOURCE = """
extern "C" __global__ void rms_norm(const float *x, const float *w, float *y, int cols, float eps) {
    __shared__ float part[256];
    const float *row = x + (size_t)blockIdx.x * cols;
    float squares = cols == -NUMBER ? 1.0f : 0.0f;
    for (int i = threadIdx.x; i < cols; i += 256) squares += row[i] * row[i];
    part[threadIdx.x] = squares;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    float scale = rsqrtf(part[0] / cols + eps);
    for (int i = threadIdx.x; i < cols; i += 256) y[(size_t)blockIdx.x * cols + i] = row[i] * scale * w[i];
}
"""
OPERATOR = {
    "dims": ["rows", "cols"],
    "inputs": {"x": {"dtype": "f32", "shape": ["rows", "cols"]}, "w": {"dtype": "f32", "shape": ["cols"]}},
    "params": {"eps": {"dtype": "f32", "value": 1e-6}},
    "outputs": {"y": {"dtype": "f32", "shape": ["rows", "cols"]}},
    "reference": "builtin:rms_norm",
    "tolerance": {"atol": 1e-5, "rtol": 1e-5},
    "shapes": {"ragged": {"rows": 3, "cols": 257}, "llama": {"rows": 512, "cols": 4096, "role": "bench"}},
}
LAUNCH = {"grid": ["rows"], "block": ["256"], "args": ["x", "w", "y", "cols", "eps"]}


def serve(lab, quick):
    many = MANY // 8 if quick else MANY
    with Server(lab) as server:
        latency(lab, server)
        together(lab, server, many)


class Server:
    """A server as a process."""

    def __init__(self, lab):
        self.lab, self.folder = lab, lab.folder / "serve"
        self.folder.mkdir()

    def __enter__(self):
        words = [self.lab.kforge, "serve", "--listen", "127.0.0.1:0", "--state", str(self.folder / "state")]
        self.process = subprocess.Popen(words, cwd=self.folder, env=self.lab.environment({}), stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "http://" in line:
                self.port = int(line.strip().rsplit(":", 1)[1])
                break
        else:
            raise RuntimeError("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def evaluate(self, connection, body):
        """The result of a request."""
        connection.request("POST", "/v1/evaluations?wait=600", body)
        answer = connection.getresponse()
        task = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {task}")
        return task["result"]


def request(lab, number):
    candidate = {
        "operator": OPERATOR,
        "source": SOURCE.replace("NUMBER", str(number)),
        "entry": "rms_norm",
        "launch": [LAUNCH],
        "toolchain": {"cuda": "system"},
    }
    return json.dumps({"candidate": {"operator": candidate}, "target": lab.arch, "measure": "bench"})


def timed(result):
    """Whether it passes and has a time with its interval."""
    shapes = [shape for kernel in result["kernels"] for variant in kernel["variants"] for shape in variant["shapes"]]
    times = [shape["time"] for shape in shapes if shape.get("time")]
    return result["verdict"] == "pass" and bool(times) and all(time.get("cold_interval_ns") for time in times)


def latency(lab, server):
    connection = server.connect()
    took = []
    for number in range(1, WARM_UP + CANDIDATES + 1):
        start = time.monotonic()
        result = server.evaluate(connection, request(lab, number))
        took.append(round(time.monotonic() - start, 3))
        if not timed(result):
            lab.row("serve", "a new candidate passes and is timed", False, {key: result.get(key) for key in ("verdict", "cause", "reason")})
            return
    median = statistics.median(took[WARM_UP:])
    lab.row("serve", f"a warm server answers a new candidate, verified and timed, within {LIMIT} s", median <= LIMIT, f"median {median:.3f} s of {took[WARM_UP:]}; the first ones {took[:WARM_UP]}")
    start = time.monotonic()
    server.evaluate(connection, request(lab, WARM_UP + 1))
    known = time.monotonic() - start
    lab.row("serve", "the same again is known", known < 0.1, f"{known * 1e3:.1f} ms")
    lab.figures["serve"] = {"first": took[:WARM_UP], "new": took[WARM_UP:], "known": known}


def together(lab, server, many):
    numbers, results, failed = queue.SimpleQueue(), [], []
    for number in range(1000, 1000 + many):
        numbers.put(number)

    def client():
        connection = server.connect()
        while True:
            try:
                number = numbers.get_nowait()
            except queue.Empty:
                return
            start = time.monotonic()
            try:
                result = server.evaluate(connection, request(lab, number))
            except (OSError, RuntimeError, http.client.HTTPException) as e:
                failed.append(f"{type(e).__name__}: {e}")
                return
            results.append((time.monotonic() - start, result))

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - start
    good = [result for _, result in results if timed(result)]
    bad = failed + [f"{result['verdict']}: {result.get('reason')}" for _, result in results if not timed(result)]
    lab.row("serve", f"{many} distinct candidates of {CLIENTS} clients pass and are timed", len(good) == many, bad[:3] or f"{len(good)} in {took:.1f} s")
    within = WITHIN * many / MANY
    apart = sample(lab)
    beside = f"{took / many:.3f} s each" + (f"; by commands of their own {apart:.3f} s each, {apart * many / took:.1f} times as long" if apart else "")
    lab.row("serve", f"{many} distinct candidates take at most {within:.0f} s", took <= within, f"{took:.1f} s, {beside}")
    medians = [shape["time"]["cold_ns"] for result in good for kernel in result["kernels"] for variant in kernel["variants"] for shape in variant["shapes"] if shape.get("time")]
    if len(medians) > 1:
        low, middle, high = (statistics.quantiles(medians, n=20)[at] for at in (0, 9, 18))
        lab.row("serve", "their times agree within 5 % from the 5th to the 95th of a hundred", (high - low) / middle <= 0.05, f"{low / 1e3:.2f} to {high / 1e3:.2f} us, median {middle / 1e3:.2f} us")
    lab.figures["serve-many"] = {"seconds": took, "each": took / many, "apart": apart, "latencies": sorted(round(each, 2) for each, _ in results)}


def sample(lab):
    """The mean seconds of `kforge bench` of new candidates in a workspace of their own, one after the other."""
    folder = lab.folder / "serve-apart"
    folder.mkdir()
    words = [f"[package]\nname = 'apart'\n[toolchain]\ncuda = 'system'\n[targets.gpu]\narch = '{lab.arch}'"]
    words.append(
        "[operator.rms_norm]\ndims = ['rows', 'cols']\ninputs.x = { dtype = 'f32', shape = ['rows', 'cols'] }\ninputs.w = { dtype = 'f32', shape = ['cols'] }\n"
        "params.eps = { dtype = 'f32', value = 1e-6 }\noutputs.y = { dtype = 'f32', shape = ['rows', 'cols'] }\nreference = 'builtin:rms_norm'\n"
        "tolerance = { atol = 1e-5, rtol = 1e-5 }\nshapes.ragged = { rows = 3, cols = 257 }\nshapes.llama = { rows = 512, cols = 4096, role = 'bench' }"
    )
    words.append("[kernel.k]\noperator = 'rms_norm'\nsource = 'k.cu'\n[[kernel.k.launch]]\nentry = 'rms_norm'\ngrid = ['rows']\nblock = ['256']\nargs = ['x', 'w', 'y', 'cols', 'eps']")
    Path(folder / "kernel.toml").write_text("\n".join(words) + "\n")
    took = []
    for number in range(SAMPLE + 1):
        Path(folder / "k.cu").write_text(SOURCE.replace("NUMBER", str(100000 + number)))
        done = lab.run(["bench"], folder)
        if done.code != 0:
            lab.row("serve", "the same by a command of its own", False, done.last())
            return None
        took.append(done.seconds)
    return statistics.mean(took[1:])
