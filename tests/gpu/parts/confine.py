"""The confinement of a device's runner: a kernel is verified and timed in one, the driver starts in one, and what a runner must not do is refused there.

`kforge worker --examine-driver` starts the driver under each part of the confinement. Its lines go into the figures; what keeps the driver from starting is a row.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys

from .lab import ROOT, lines


def confine(lab):
    verified(lab)
    for name, become in users():
        examined(lab, name, become)


def users():
    """This user; as root, another one too."""
    own = pwd.getpwuid(os.getuid()).pw_name
    yield own, []
    if os.getuid() != 0:
        return
    if shutil.which("setpriv"):
        yield "nobody", ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def verified(lab):
    """A build whose runners are confined: they are, or nothing is verified, because nothing permits it to run unconfined."""
    folder = lab.copy("confine", ROOT / "examples/quickstart")
    manifest = folder / "kernel.toml"
    manifest.write_text(manifest.read_text().replace('targets = ["cpu", "h200"]', 'targets = ["gpu"]'))
    done, steps = lab.build(folder, "--target", "gpu")
    for kind in ("verify", "bench"):
        own = [step for step in steps if step.kind == kind]
        ran = [step for step in own if step.ran() and not step.wrong()]
        wrong = [step.wrong() for step in own if step.wrong()]
        lab.row("confine", f"each {kind} step ran in a confined runner", bool(own) and len(ran) == len(own), wrong[:1] or f"{len(ran)} of {len(own)}; {done.last() if not own else ''}")
    shapes = [shape for _, target in lab.targets(folder) for shape in target.get("shapes", [])]
    labelled = [shape["unconfined"] for shape in shapes if shape.get("unconfined")]
    lab.row("confine", "no verdict is labelled unconfined", bool(shapes) and not labelled, labelled[:1] or f"{len(shapes)} shapes")


def examined(lab, user, become):
    """The examination of the driver, as a user."""
    secret = lab.folder / f"secret-{user}"
    secret.write_text("secret")
    secret.chmod(0o666)
    made = lab.folder / f"made-{user}"
    victim = subprocess.Popen([*become, sys.executable, "-c", "import time; time.sleep(600)"])
    home = os.path.expanduser("~")
    targets = {"write": str(secret), "create": str(made), "read": [str(secret), home, "/etc/passwd", "/etc/shadow", "/root", "/tmp", f"/proc/{victim.pid}/mem", f"/proc/{victim.pid}/environ"], "victim": victim.pid}
    # The other user must reach the program and the folder.
    kforge = lab.kforge
    if become:
        lab.folder.chmod(0o755)
        kforge = str(lab.folder / "kforge-examined")
        if not os.path.exists(kforge):
            shutil.copy(lab.kforge, kforge)
    try:
        command = [*become, kforge, "worker", "--examine-driver", json.dumps(targets)]
        done = subprocess.run(command, cwd=lab.folder, env=environment(lab, become), capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
        alive = victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    told = list(lines(done.stdout))
    policies = {line["policy"]["name"]: line["policy"]["findings"] for line in told if "policy" in line}
    lab.figures.setdefault("confine", {})[user] = {"exit": done.returncode, "stderr": done.stderr[-2000:], "lines": told}
    if not policies:
        # As another user there may be no device that it may use; as this one there is.
        lab.row("confine", f"as {user}: the driver is examined", None if become else False, f"exit {done.returncode}: {done.stderr[-300:]}")
        return
    for name, found in policies.items():
        must = name in ("unconfined", "files", "calls", "both", "runner")
        works = found.get("error") is None
        lab.row("confine", f"as {user}: the driver works under `{name}`", works if must else (True if works else None), summary(found))
    uses(lab, user, policies.get("unconfined", {}))
    attempts = policies.get("runner", {}).get("attempts", [])
    # The driver needs threads, and a socket of this machine, through which nothing can be sent or received.
    granted = ("start a thread", "open a Unix socket")
    reached = [one["what"] for one in attempts if (one["refused"] is None) != one["what"].startswith(granted)]
    lab.row("confine", f"as {user}: every escape is refused", bool(attempts) and not reached, reached or f"{len(attempts)} attempts")
    held = alive and secret.exists() and secret.read_text() == "secret" and not made.exists()
    lab.row("confine", f"as {user}: file and process are unharmed", held, f"process alive: {alive}, file: {secret.exists()}, made: {made.exists()}")


def environment(lab, become):
    env = dict(lab.env)
    if become:
        # A home of its own, with the list of devices that the first build made.
        home = lab.folder / "home-nobody"
        if not home.exists():
            home.mkdir()
            devices = os.path.join(lab.env["KFORGE_HOME"], "devices")
            if os.path.isdir(devices):
                shutil.copytree(devices, home / "devices")
            subprocess.run(["chmod", "-R", "a+rwX", str(home)], check=True)
        env.update(KFORGE_HOME=str(home), HOME=str(home))
    return env


def summary(found):
    refused = [f"{call['attempt']} x{call['count']}" for call in found.get("calls", []) if call["refused"]]
    refused += [f"{'write' if file['writes'] else 'read'} {file['path']} x{file['count']}" for file in found.get("files", []) if file["refused"]]
    parts = [found.get("error") or "works", f"refused: {', '.join(refused)}" if refused else "", f"missing: {found['missing']}" if found.get("missing") else ""]
    return "; ".join(part for part in parts if part)


def uses(lab, user, found):
    """What the driver uses when nothing is refused: for the table of grants."""
    calls = ", ".join(f"{call['attempt']} x{call['count']}" for call in found.get("calls", []))
    lab.row("confine", f"as {user}: calls of the list of refused calls that the driver makes", None, calls or "none")
    files = sorted({("w " if file["writes"] else "r ") + file["path"] for file in found.get("files", [])})
    lab.row("confine", f"as {user}: files that the driver opens", None, " ".join(files))
