"""References of mistralrs-core: causal convolutions, their state, the gated delta rule and the largest elements."""

import numpy as np


def silu(x):
    return x / (1 + np.exp(-x))


def causal(x, w, s, k):
    padded = np.pad(x, ((0, 0), (0, 0), (k - 1, 0)))
    return silu(sum(padded[:, :, tap : tap + s] * w[:, tap, None] for tap in range(k)))


def last(x, k):
    return np.pad(x, ((0, 0), (0, 0), (k, 0)))[:, :, -k:]


def update(x, w, state):
    state = np.concatenate([state[:, :, 1:], x[:, :, None]], -1)
    return {"state": state, "y": silu((state * w).sum(-1))}


def delta_rule(q, key, val, g, beta, state, s):
    state, y = state.copy(), []
    for t in range(s):
        state *= np.exp(g[:, t])[:, None, None]
        delta = (val[:, t] - np.einsum("bk,bkv->bv", key[:, t], state)) * beta[:, t, None]
        state += key[:, t, :, None] * delta[:, None]
        y.append(np.einsum("bk,bkv->bv", q[:, t], state))
    return {"state": state, "y": np.stack(y, 1)}


def topk(x, k):
    idx = np.argsort(-x, -1, kind="stable")[:, :k]
    return {"y": np.take_along_axis(x, idx, -1), "idx": idx}


def is_topk(got, x, want):
    """Distinct places of values that equal those of the reference, in its order."""
    if (got < 0).any() or (got >= x.shape[1]).any() or any(len(set(row)) < len(row) for row in got):
        return False, "places are outside the row or repeated"
    return bool((np.take_along_axis(x, got, -1) == np.take_along_axis(x, want, -1)).all())
