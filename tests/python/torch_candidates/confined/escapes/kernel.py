# Tries what the confinement of its process refuses, behind the back of Python, and is wrong if anything of it succeeds.
import ctypes
import os

import torch
from torch import nn

WRITE_NEW = os.O_WRONLY | os.O_CREAT
LIBC = ctypes.CDLL(None, use_errno=True)
PLACES = ["/tmp/kforge-escape", "/var/tmp/kforge-escape", "/dev/shm/kforge-escape", "../kforge-escape"]


def succeeded():
    """What was not refused."""
    parent = os.getppid()
    attempts = {"write " + place: lambda place=place: LIBC.open(place.encode(), WRITE_NEW, 0o600) for place in PLACES}
    attempts["write its source"] = lambda: LIBC.open(__file__.encode(), os.O_WRONLY)
    attempts["remove its source"] = lambda: LIBC.unlink(__file__.encode())
    attempts["read the parent's memory"] = lambda: LIBC.open(b"/proc/%d/mem" % parent, os.O_RDONLY)
    attempts["read the parent's environment"] = lambda: LIBC.open(b"/proc/%d/environ" % parent, os.O_RDONLY)
    attempts["read a file of the system"] = lambda: LIBC.open(b"/etc/passwd", os.O_RDONLY)
    attempts["signal the parent"] = lambda: LIBC.kill(parent, 0)
    attempts["trace the parent"] = lambda: LIBC.ptrace(16, parent, 0, 0)
    attempts["open a socket"] = lambda: LIBC.socket(2, 1, 0)
    return [what for what, attempt in attempts.items() if attempt() >= 0]


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self.before = succeeded()

    def forward(self, x):
        escaped = self.before + succeeded()
        if escaped:
            raise RuntimeError("succeeded: " + ", ".join(escaped))
        return torch.relu(self.linear(x))
