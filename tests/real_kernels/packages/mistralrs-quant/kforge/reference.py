"""References of mistralrs-quant."""

import numpy as np


def bits_and(x, z):
    return x & z


def bits_xor(x, z):
    return x ^ z


def shifted(x):
    return (x.astype(np.int32) << 3).astype(np.int64)
