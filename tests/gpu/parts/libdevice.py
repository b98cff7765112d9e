"""The functions of libdevice that kforge computes where a kernel in Triton runs on the processor give what a device gives. Needs PyTorch with Triton."""

import json
import subprocess
import sys

from .lab import ROOT


def libdevice(lab):
    what = "functions of libdevice are those of the device"
    folder = ROOT / "src/worker/steps/verifier/interpreter"
    words = [sys.executable, ROOT / "tests/gpu/libdevice/compare.py", folder]
    if subprocess.run([sys.executable, "-c", "import torch, triton"], capture_output=True).returncode != 0:
        lab.row("libdevice", what, None, "this Python has no PyTorch with Triton")
        return
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        lab.row("libdevice", what, False, done.stderr.strip().splitlines()[-1:])
        return
    found = json.loads(done.stdout)
    said = f"{found['functions']} at {found['values']} values each, Triton {found['triton']}: {found['wrong'] or 'at most %.0f units of the last place apart' % found['worst']}"
    lab.row("libdevice", what, not found["wrong"] and found["functions"] > 200, said)
    lab.figures["libdevice"] = found
