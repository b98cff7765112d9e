"""References of candle-kernels, and the arrays of extents and strides that its kernels take."""

import numpy as np


def strides(*extents):
    """Extents, then the strides of a contiguous tensor, in elements."""
    return list(extents) + [int(np.prod(extents[axis + 1 :])) for axis in range(len(extents))]


def info(*numbers):
    return {"info": np.array(numbers, dtype=np.int64)}


def transposed_info(rows, cols):
    return info(rows, cols, 1, rows)


def transposed(x):
    return x.T


def info_where(n):
    return info(n, 1, 1, 1)


def info_rows(rows, cols):
    return info(*strides(rows, cols))


def info_sum(rows, cols):
    return info(*strides(rows, cols), rows, cols)


def sum_rows(x, y):
    return y + x.sum(0)


def columns(x, cols):
    return x[:, :cols]


def rope_i_f32(x, c, s):
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)


def rope_f32(x, c, s, d):
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def rope_thd_f32(x, c, s, d):
    return rope_f32(x, c[:, None, :], s[:, None, :], d)


def info_select(seed, left, src, ids_n, right):
    ids = np.random.default_rng(seed).integers(0, src, ids_n)
    return {**info(*strides(left, src, right)), "ids": ids}


def index_select(x, ids):
    return x[:, ids]


def ids_flat(seed, src, ids_n):
    return {"ids": np.random.default_rng(seed).integers(0, src, ids_n)}


def ids_full(seed, left, src, ids_n, right):
    return {"ids": np.random.default_rng(seed).integers(0, src, (left, ids_n, right))}


def gather(x, ids):
    return np.take_along_axis(x, ids, 1)


def index_add(x, y, ids):
    y = y.copy()
    for at, where in enumerate(ids):
        y[:, where] += x[:, at]
    return y


def scattered(x, y, ids, add):
    y = y.copy()
    for (left, at, right), where in np.ndenumerate(ids):
        y[left, where, right] = x[left, at, right] + (y[left, where, right] if add else 0)
    return y


def scatter_add(x, y, ids):
    return scattered(x, y, ids, True)


def scatter_set(x, y, ids):
    return scattered(x, y, ids, False)


def argsort(x):
    return np.argsort(x, -1, kind="stable")


def argsort_desc(x):
    return np.argsort(-x, -1, kind="stable")


def sorts(got, x, order):
    """Whether each row of `got` is a permutation that sorts its row of `x`; equal values may stand in any order."""
    if (np.sort(got, -1) != np.arange(x.shape[1])).any():
        return False, "a row is no permutation"
    return bool((np.take_along_axis(x, got, 1) == np.take_along_axis(x, order, 1)).all())


def sorts_up(got, x):
    return sorts(got, x, argsort(x))


def sorts_down(got, x):
    return sorts(got, x, argsort_desc(x))


def info_conv1d(b, ci, co, l, k):
    return info(*strides(b, ci, l), *strides(co, ci, k))


def info_convt1d(b, ci, co, l, k):
    return info(*strides(b, ci, l), *strides(ci, co, k))


def info_im2col1d(b, ci, l):
    return info(*strides(b, ci, l))


def info_conv2d(b, ci, co, h, w, k):
    return info(*strides(b, ci, h, w), *strides(co, ci, k, k))


def info_convt2d(b, ci, co, h, w, k):
    return info(*strides(b, ci, h, w), *strides(ci, co, k, k))


def info_image(b, ci, h, w):
    return info(*strides(b, ci, h, w))


def windows1d(x, k, dil):
    """Windows of stride 2 and padding 1: batch, channel, place, tap."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    places = (x.shape[2] - dil * (k - 1) - 1) // 2 + 1
    return np.stack([x[:, :, tap * dil : tap * dil + 2 * places - 1 : 2] for tap in range(k)], -1)


def conv1d(x, w, k, dil):
    return np.einsum("bclk,ock->bol", windows1d(x, k, int(dil)), w)


def im2col1d(x, k):
    return windows1d(x, k, 1).transpose(0, 2, 1, 3)


def col2im1d(x, k):
    b, length, co, _ = x.shape
    y = np.zeros((b, co, (length - 1) * 2 + k))
    for at in range(length):
        y[:, :, 2 * at : 2 * at + k] += x[:, at]
    return y


def windows2d(x, k, pad):
    """Windows of stride 2: batch, channel, row, column, tap of row, tap of column."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    return np.lib.stride_tricks.sliding_window_view(x, (k, k), (2, 3))[:, :, ::2, ::2]


def im2col(x, k):
    return windows2d(x, k, 1).transpose(0, 2, 3, 1, 4, 5)


def avg_pool2d(x, k):
    return windows2d(x, k, 0).mean((4, 5))


def conv_transpose1d(x, w, k):
    b, _, length = x.shape
    y = np.zeros((b, w.shape[1], (length - 1) * 2 + k))
    for at in range(length):
        y[:, :, 2 * at : 2 * at + k] += np.einsum("bc,cok->bok", x[:, :, at], w)
    return y[:, :, 1:-1]


def conv_transpose2d(x, f, k):
    b, _, h, w = x.shape
    y = np.zeros((b, f.shape[1], (h - 1) * 2 + k, (w - 1) * 2 + k))
    for i in range(h):
        for j in range(w):
            y[:, :, 2 * i : 2 * i + k, 2 * j : 2 * j + k] += np.einsum("bc,copq->bopq", x[:, :, i, j], f)
    return y[:, :, 1:-1, 1:-1]


def nearest(x, h, w, oh, ow):
    rows = np.minimum((np.arange(oh) * (h / oh)).astype(int), h - 1)
    cols = np.minimum((np.arange(ow) * (w / ow)).astype(int), w - 1)
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


def conv2d(x, f, k):
    return np.einsum("bchwpq,ocpq->bohw", windows2d(x, k, 1), f)


def max_pool2d(x, k):
    return windows2d(x, k, 0).max((4, 5))


def chosen(ids, t, f):
    return np.where(ids, t, f)


def sums(x):
    return x.sum(-1)


def largest(x):
    return x.max(-1)


def least(x):
    return x.min(-1)


def argmax(x):
    return x.argmax(-1)


def argmin(x):
    return x.argmin(-1)


def is_at(got, x, want):
    """Whether `got` is, in each row, the place of a value equal to `want`; of equal values, any place is correct."""
    inside = (got >= 0) & (got < x.shape[1])
    return inside & (np.take_along_axis(x, np.where(inside, got, 0)[:, None], 1)[:, 0] == want)


def is_largest(got, x):
    return is_at(got, x, x.max(-1))


def is_least(got, x):
    return is_at(got, x, x.min(-1))
