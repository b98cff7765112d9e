"""References of torch_spline_conv: bases of splines of degree 1 and sums that they weigh."""

import numpy as np


def pseudo(seed, e, d):
    random = np.random.default_rng(seed)
    return {
        "pseudo": random.integers(0, 1024, (e, d)) / 1024,
        "size": random.integers(3, 6, d),
        "opened": random.integers(0, 2, d),
    }


def scaled(pseudo, size, opened):
    return pseudo * (size - opened)


def taps(d, s):
    """For each basis function, which of the two knots it takes along each axis."""
    return (np.arange(s)[:, None] >> np.arange(d)) & 1


def basis(pseudo, size, opened, d, s):
    v = scaled(pseudo, size, opened)
    part, knot, tap = v - np.floor(v), np.floor(v).astype(int), taps(d, s)
    factors = np.where(tap, part[:, None], 1 - part[:, None])
    places = (knot[:, None] + tap) % size * np.concatenate([[1], np.cumprod(size)[:-1]])
    return {"basis": factors.prod(-1), "index": places.sum(-1)}


def basis_gradient(db, pseudo, size, opened, d, s):
    v = scaled(pseudo, size, opened)
    part, tap = v - np.floor(v), taps(d, s)
    factors = np.where(tap, part[:, None], 1 - part[:, None])
    dp = np.zeros_like(pseudo)
    for axis in range(d):
        others = np.delete(factors, axis, -1).prod(-1)
        dp[:, axis] = ((2 * tap[:, axis] - 1) * others * db).sum(-1) * (size[axis] - opened[axis])
    return dp


def indices(seed, e, s, k):
    return {"index": np.random.default_rng(seed).integers(0, k, (e, s))}


def weighted(x, w, basis, index):
    return np.einsum("ei,esio,es->eo", x, w[index], basis)


def weighted_gradient(dy, w, basis, index):
    return np.einsum("eo,esoi,es->ei", dy, w[index], basis)


def weight_gradient(dy, x, dw, basis, index):
    dw = dw.copy()
    np.add.at(dw, index, np.einsum("eo,ei,es->esio", dy, x, basis))
    return dw
