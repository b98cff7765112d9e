"""The simple recurrent unit, without activation and masks."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def sru(u, x, w, bias, init, l):
    cell, cells, hidden = init, [], []
    for t in range(l):
        forget = sigmoid(u[t, ..., 1] + w[0] * cell + bias[0])
        reset = sigmoid(u[t, ..., 2] + w[1] * cell + bias[1])
        cell = (cell - u[t, ..., 0]) * forget + u[t, ..., 0]
        cells.append(cell)
        hidden.append((cell - x[t]) * reset + x[t])
    return {"c": np.stack(cells), "h": np.stack(hidden)}
