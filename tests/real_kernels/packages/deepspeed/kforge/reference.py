"""References of deepspeed."""

import numpy as np


def pre_rms_norm(x, r, w, eps):
    z = x + r
    return {"y": z / np.sqrt((z * z).mean(-1, keepdims=True) + eps) * w, "z": z}
