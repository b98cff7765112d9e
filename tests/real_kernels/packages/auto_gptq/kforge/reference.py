"""References of auto_gptq: columns in another order, and products with weights of a few bits."""

import numpy as np


def remap(seed, cols):
    return {"map": np.random.default_rng(seed).permutation(cols)}


def remapped(x, map):
    return x[:, map]


def packed(values, bits, axis):
    """Packs neighbours along an axis into words of 32 bits, the first in the lowest bits."""
    values = np.moveaxis(values, axis, 0)
    values = values.reshape(-1, 32 // bits, *values.shape[1:]).astype(np.int64)
    shifts = np.arange(32 // bits).reshape(-1, *[1] * (values.ndim - 2)) * bits
    words = (values << shifts).sum(1)
    return np.moveaxis(words.astype(np.uint32).astype(np.int32), 0, axis)


def quantized(seed, groups, bits):
    random, top = np.random.default_rng(seed), 2 ** int(bits)
    weights, zeros = random.integers(0, top, (256, 256)), random.integers(0, top - 1, (groups, 256))
    return {"w": packed(weights, int(bits), 0), "zeros": packed(zeros, int(bits), 1), "g": np.sort(random.integers(0, groups, 256))}


def unpacked(words, bits, axis):
    words = np.moveaxis(words, axis, 0).astype(np.int64) & 0xFFFFFFFF
    shifts = np.arange(32 // bits).reshape(1, -1, *[1] * (words.ndim - 1)) * bits
    values = words[:, None] >> shifts & (2**bits - 1)
    return np.moveaxis(values.reshape(-1, *words.shape[1:]), 0, axis)


def product(x, w, y, scales, zeros, g, bits):
    bits = int(bits)
    return y + x @ (scales[g] * (unpacked(w, bits, 0) - (unpacked(zeros, bits, 1) + 1)[g]))
