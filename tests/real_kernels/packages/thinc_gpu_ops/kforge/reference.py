"""References of thinc_gpu_ops: pooling over the rows of sequences that lie one behind the other."""

import numpy as np


def lengths(seed, b, t):
    """Lengths of `b` sequences, each of one row or more, that fill `t` rows together."""
    cuts = np.sort(np.random.default_rng(seed).choice(np.arange(1, t), b - 1, replace=False))
    return {"lengths": np.diff(np.concatenate([[0], cuts, [t]]))}


def places(seed, b, o, t):
    made = lengths(seed, b, t)
    return {**made, "which": np.random.default_rng(seed + 1).integers(0, made["lengths"][:, None], (b, o))}


def pieces(x, lengths):
    return np.split(x, np.cumsum(lengths)[:-1])


def maxout(x):
    return {"best": x.max(-1), "which": x.argmax(-1)}


def sum_pool(x, lengths):
    return np.stack([piece.sum(0) for piece in pieces(x, lengths)])


def mean_pool(x, lengths):
    return np.stack([piece.mean(0) for piece in pieces(x, lengths)])


def max_pool(x, lengths):
    found = pieces(x, lengths)
    return {"y": np.stack([piece.max(0) for piece in found]), "which": np.stack([piece.argmax(0) for piece in found])}


def backprop_sum_pool(dx, dy, lengths):
    return dx + np.repeat(dy, lengths, 0)


def backprop_mean_pool(dx, dy, lengths):
    return dx + np.repeat(dy / lengths[:, None], lengths, 0)


def backprop_max_pool(dx, dy, which, lengths):
    at = np.concatenate([np.arange(length) for length in lengths])
    return dx + np.where(at[:, None] == np.repeat(which, lengths, 0), np.repeat(dy, lengths, 0), 0)
