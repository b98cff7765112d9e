"""References of candle-rotary: the first 2 * r elements of each head are turned, in pairs."""

import numpy as np


def turned(x, first, second, c, s):
    a, b = x[..., first], x[..., second]
    y = x.copy()
    y[..., first], y[..., second] = a * c - b * s, b * c + a * s
    return y


def rotary_neox(q, k, c, s, r):
    places = np.arange(r), np.arange(r) + r
    return {name: turned(x, *places, c[:, None], s[:, None]) for name, x in (("q", q), ("k", k))}


def rotary_gptj(q, k, c, s, r):
    places = 2 * np.arange(r), 2 * np.arange(r) + 1
    return {name: turned(x, *places, c[:, None], s[:, None]) for name, x in (("q", q), ("k", k))}
