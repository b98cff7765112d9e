"""References of dfdx, and the arrays of extents and strides that its kernels take."""

import numpy as np


def numbers(**named):
    return {name: np.array(values, dtype=np.int64) for name, values in named.items()}


def info_broadcast(rows, cols):
    """Extents; strides of a matrix; strides of a row that every row of the matrix meets."""
    return numbers(info=[rows, cols, cols, 1, 0, 1])


def info_chunks(rows, cols):
    """For sums over rows: extents and strides of the matrix with its axes exchanged, in the second half, which the gradient of the right operand reads."""
    return numbers(info=[0] * 6 + [cols, rows, 1, cols, 1, cols])


def info_transposed(rows, cols):
    return numbers(info=[cols, rows, 1, cols])


def one_dim(n):
    return numbers(dims=[n], s=[1])


def two_dims(rows, cols):
    return numbers(dims=[rows, cols], s=[cols, 1])


def slice_dims(rows, cols):
    return numbers(dims=[rows, cols], s=[cols + 3, 1])


def taken_dims(seed, rows, cols, n):
    index = np.random.default_rng(seed).integers(0, rows, n)
    return {**numbers(dims=[rows, cols], s=[cols, 1], nd=[n], one=[1]), "idx": index}


def image_strides(c, h, w):
    return numbers(s=[c * h * w, h * w, w, 1])


def product_gradient(x, dy, dz):
    return dz + (x * dy).sum(0)


def sum_rows(x, y):
    return y + x.sum(0)


def max_rows(x, y):
    return np.maximum(y, x.max(0))


def min_rows(x, y):
    return np.minimum(y, x.min(0))


def adam(param, m, v, grad, lr, beta1, beta2, eps, decay, t):
    """With decoupled decay of weights."""
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    step = lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return {"param": param - step - decay * lr * param, "m": m, "v": v}


def sgd(param, v, grad, lr, momentum, decay):
    """With Nesterov's momentum and decay of weights as an L2 term."""
    grad = grad + decay * param
    v = grad + momentum * v
    return {"param": param - (grad + momentum * v) * lr, "v": v}


def rolled(x):
    return np.roll(x, 2, 1)


def sliced(x, rows, cols):
    return x[1 : 1 + rows, 2 : 2 + cols]


def taken(x, idx):
    return x[idx]


def patches(x):
    """Windows of 3 by 3, stride 2, padding 1: batch, channel, taps, places."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2].transpose(0, 1, 4, 5, 2, 3)


def avg_pool(x):
    """Padding counts as zeros."""
    return patches(x).mean((2, 3))


def nearest(x, h, w, oh, ow):
    rows, cols = np.arange(oh) * h // oh, np.arange(ow) * w // ow
    return x[:, :, rows][:, :, :, cols]


def interpolated(x, axis, count):
    """Linear interpolation along an axis, the first and last elements kept in place."""
    n = x.shape[axis]
    at = np.arange(count) * ((n - 1) / (count - 1) if count > 1 else 0.0)
    low = np.minimum(np.floor(at).astype(int), n - 1)
    weight = (at - low).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return np.take(x, low, axis) * (1 - weight) + np.take(x, np.minimum(low + 1, n - 1), axis) * weight


def bilinear(x, oh, ow):
    return interpolated(interpolated(x, 2, oh), 3, ow)


def max_pool(x):
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2].max((4, 5))


def bsub(x, z):
    return x - z


def bdiv(x, z):
    return x / z


def minimum(x, z):
    return np.minimum(x, z)


def huber(x, z, delta):
    far = np.abs(x - z)
    return np.where(far < delta, 0.5 * far * far, delta * (far - 0.5 * delta))


def bce(x, z):
    """The binary cross entropy of a logit and a probability."""
    return np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))


def boolean_and(a, b):
    return a & b


def boolean_xor(a, b):
    return a ^ b


def chosen(c, a, b):
    return np.where(c, a, b)


def below(x, t):
    return x < t
