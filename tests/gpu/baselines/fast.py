"""Functions of one's own for `rms_norm` of examples/torch: a fast one, and some that kforge must see through."""

import torch
import torch.nn.functional as F


def rms_norm(x, w, eps):
    return F.rms_norm(x, (x.shape[1],), w, eps)


def half(x, w, eps):
    """Wrong: forgets to normalise the second half of the columns."""
    y = F.rms_norm(x, (x.shape[1],), w, eps)
    y[:, x.shape[1] // 2 :] = x[:, x.shape[1] // 2 :]
    return y


def raises(x, w, eps):
    raise ValueError("this one never works")


def waits(x, w, eps):
    """Right, but asks the device for a value, so that the host waits in between."""
    scale = float(w.new_ones(()).item())
    return F.rms_norm(x, (x.shape[1],), w, eps) * scale


def changes(x, w, eps):
    """Changes its input."""
    return F.rms_norm(x.add_(1), (x.shape[1],), w, eps)


def escapes(x, w, eps):
    """Reads a file of the user."""
    with open("/etc/passwd") as file:
        return F.rms_norm(x, (x.shape[1],), w, eps) + len(file.read())
