"""What all parts share: the binary, a folder that goes at the end, packages made ready for the GPU at hand, what builds said, and the rows of the table.

Reads the lines of `--message-format json` and `target/kforge/report.json`; what it cannot read does not hold.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Done:
    """How a command ended: its exit code (none: it was ended for its time), what it said, and seconds."""

    code: int | None
    out: str
    err: str
    seconds: float

    def last(self, characters=300):
        """The end of what it said to people, on one line."""
        return " / ".join(self.err.strip().splitlines())[-characters:]


class Lab:
    def __init__(self, kforge, folder):
        self.kforge, self.folder = str(Path(kforge).resolve()), Path(folder)
        self.env = dict(os.environ)
        self.env.setdefault("KFORGE_HOME", str(self.folder / "home"))
        self.arch = local_arch()
        self.rows, self.figures = [], {}

    def row(self, part, what, held, found):
        """A line of the table; `held` is none for what could not be asked here."""
        self.rows.append((part, what, held, str(found)))
        word = {True: "ok  ", False: "FAIL", None: "-   "}[held]
        print(f"{word}  {part:9} {what}: {found}", flush=True)

    def run(self, words, cwd, limit=600, **more):
        """Runs kforge. `more` goes into the environment; a value of none is taken out of it."""
        env = self.environment(more)
        start = time.monotonic()
        try:
            done = subprocess.run([self.kforge, *words], cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=limit)
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            code, out, err = None, text_of(late.stdout), text_of(late.stderr) + f"\nstill running after {limit} s"
        return Done(code, out, err, time.monotonic() - start)

    def environment(self, more):
        return {name: value for name, value in {**self.env, **more}.items() if value is not None}

    def build(self, folder, *words, limit=600, **more):
        """Builds for people and machines alike: how it ended, and every step that did, with when it was told."""
        command = [self.kforge, "build", "--keep-going", "--message-format", "json", *words]
        out, steps, late = [], [], threading.Event()
        start = time.monotonic()
        with tempfile.TemporaryFile("w+", errors="replace") as err:
            process = subprocess.Popen(
                command, cwd=folder, env=self.environment(more), stdout=subprocess.PIPE, stderr=err, text=True, errors="replace", stdin=subprocess.DEVNULL
            )
            timer = threading.Timer(limit, lambda: (late.set(), process.kill()))
            timer.start()
            for text in process.stdout:
                out.append(text)
                told = time.monotonic() - start
                steps.extend(Step(line, told) for line in lines(text) if line.get("reason") == "step-finished")
            code = process.wait()
            timer.cancel()
            err.seek(0)
            said = err.read() + (f"\nstill running after {limit} s" if late.is_set() else "")
        return Done(None if late.is_set() else code, "".join(out), said, time.monotonic() - start), steps

    def copy(self, name, source, ready=True):
        """A package of the repository in a folder of its own; `ready` for the architecture at hand, else with the targets that it has. Where it has no lockfile it
        gets the wheels of the examples, so that no network is asked for versions. Evidence that lies beside it stays behind: it would answer for the device at hand."""
        to = self.folder / name
        shutil.copytree(source, to, ignore=shutil.ignore_patterns("target", "evidence"))
        if ready:
            self.ready(to)
        if not (to / "kforge.lock").exists():
            shutil.copy(ROOT / "examples/quickstart/kforge.lock", to)
        return to

    def home(self, name):
        """A home that knows no results, with the toolchains of the usual one and what that knows of this machine."""
        home = self.folder / f"home-{name}"
        home.mkdir()
        known = os.path.join(self.env["KFORGE_HOME"], "machine")
        if os.path.exists(known):
            shutil.copy(known, home)
        tools = os.path.join(self.env["KFORGE_HOME"], "toolchains")
        if os.path.isdir(tools):
            (home / "toolchains").symlink_to(tools)
        return home

    def ready(self, folder):
        """Has `[targets.gpu]` in place of `[targets.cpu]`, for the architecture at hand."""
        manifest = folder / "kernel.toml"
        ours = f'[targets.gpu]\narch = "{self.arch}"\n'
        manifest.write_text(re.sub(r"\[targets\.(cpu|gpu)\]\n(arch = .*\n)?", lambda _: ours, manifest.read_text(), count=1))

    def report(self, folder):
        return json.loads((folder / "target/kforge/report.json").read_text())

    def targets(self, folder):
        """Every (kernel, target) of the report."""
        for package in self.report(folder)["packages"]:
            for kernel in package["kernels"]:
                for target in kernel["targets"]:
                    yield kernel["name"], target

    def left_behind(self):
        """Processes that run this binary, but for none: workers are started by the file that they run, whatever their command line says."""
        found = []
        for process in Path("/proc").glob("[0-9]*/exe"):
            try:
                if os.readlink(process) == self.kforge:
                    found.append(process.parent.name)
            except OSError:
                pass
        return found


class Step:
    """A step that ended."""

    def __init__(self, line, told):
        # Seconds after the command was started when the line came.
        self.told = told
        self.kind, self.id, self.labels = line["kind"], line["id"], line["labels"]
        self.kernel, self.shape, self.variant = (self.labels.get(name) for name in ("kernel", "shape", "variant"))
        self.outcome, self.verdict, self.summary = line["outcome"], line["verdict"], line["summary"]
        self.seconds = line["duration_ms"] / 1000

    def said(self, *words):
        """What its verdict or outcome says under any of these words: `fail`, `unknown`, `unavailable`, `failed`, `skipped`."""
        for value in (self.verdict, self.outcome):
            if isinstance(value, dict):
                for word, text in value.items():
                    if word in words:
                        return text if isinstance(text, str) else "; ".join(map(str, text.values()))
        return None

    def ran(self):
        return self.outcome in ("executed", "fresh")

    def wrong(self):
        """What is said against it, whatever the word; none if nothing is."""
        return self.said("fail", "unknown", "unavailable", "failed", "skipped")


def lines(text):
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            pass


def text_of(output):
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def local_arch():
    """The architecture to compile for: with its own instructions where there are such."""
    words = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    asked = subprocess.run(words, capture_output=True, text=True, check=True)
    capability = int(asked.stdout.splitlines()[0].strip().replace(".", ""))
    return f"sm_{capability}" + ("a" if capability >= 90 else "")


def targets_of(folder, arch):
    """Names of targets of that architecture in any manifest of a folder."""
    names = set()
    for manifest in folder.rglob("kernel.toml"):
        table = tomllib.loads(manifest.read_text())
        for targets in (table.get("targets", {}), table.get("workspace", {}).get("targets", {})):
            names |= {name for name, target in targets.items() if isinstance(target, dict) and target.get("arch") == arch}
    return sorted(names)
