"""The lattice of the transducer's loss: sums over paths that emit a blank (0) or a label (1) at each step."""

import numpy as np


def full(seed, n, t, u):
    """Every sample fills its lattice."""
    random = np.random.default_rng(seed)
    return {"lp": -random.uniform(0.1, 2, (n, t, u, 2)), "xn": np.full(n, t), "yn": np.full(n, u - 1)}


def paths(seed, n, t, u):
    made = full(seed, n, t, u)
    return {**made, **{name: forward(made["lp"])[name] for name in ("alphas", "betas")}}


def forward(lp):
    n, t, u, _ = lp.shape
    alphas, betas = np.zeros((n, t, u)), np.zeros((n, t, u))
    for i in range(t):
        for j in range(u):
            ways = ([alphas[:, i - 1, j] + lp[:, i - 1, j, 0]] if i else []) + ([alphas[:, i, j - 1] + lp[:, i, j - 1, 1]] if j else [])
            alphas[:, i, j] = np.logaddexp.reduce(ways) if ways else 0
    for i in reversed(range(t)):
        for j in reversed(range(u)):
            ways = ([betas[:, i + 1, j] + lp[:, i, j, 0]] if i + 1 < t else []) + ([betas[:, i, j + 1] + lp[:, i, j, 1]] if j + 1 < u else [])
            betas[:, i, j] = np.logaddexp.reduce(ways) if ways else lp[:, i, j, 0]
    return {"alphas": alphas, "betas": betas}


def lattice(lp, n, t, u):
    """`counts` are the kernel's own: how many blocks of each column are done."""
    return {**forward(lp), "counts": np.full((n, u, 2), -(-t // 32))}


def blank(grads, alphas, betas, lp, t, u):
    grads = grads.copy()
    for i in range(t):
        for j in range(u):
            if i == t - 1 and j < u - 1:
                continue
            rest = betas[:, i + 1, j] if i < t - 1 else 0
            grads[:, i, j, 0] = -np.exp(alphas[:, i, j] + rest + lp[:, i, j, 0] - betas[:, 0, 0])
    return grads
