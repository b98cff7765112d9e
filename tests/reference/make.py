"""Makes data/*.json: cases for the built-in operators, computed in float64 by implementations that are not kforge's.

    python -m venv venv && venv/bin/pip install numpy scipy torch ml_dtypes randomgen && venv/bin/python make.py

Each case holds a problem as kforge states it, the inputs, the outputs, and for some the scale (the operator on absolute values).
Inputs are multiples of 1/256, so that they are exact in every format and short in print. The versions that were used stand in each file.
"""

import json
import math
import pathlib

import ml_dtypes
import numpy as np
import randomgen
import scipy
import scipy.special as special
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent / "data"
VERSIONS = {m.__name__: m.__version__ for m in (np, scipy, torch, ml_dtypes, randomgen)}
rng = np.random.default_rng(20)
torch.set_default_dtype(torch.float64)


def floats(*shape, low=-3.0, high=3.0):
    return np.round(rng.uniform(low, high, shape) * 256) / 256


def ints(low, high, *shape):
    return rng.integers(low, high, shape, endpoint=True)


def plain(x):
    if x is None:
        return None
    flat = np.asarray(x).reshape(-1).tolist()
    return [v if math.isfinite(v) else repr(v) for v in flat]


def tensor(name, role, dtype, shape):
    shape = list(shape)
    strides = [int(np.prod(shape[i + 1:], dtype=np.int64)) for i in range(len(shape))]
    return dict(name=name, role=role, dtype=dtype, shape=shape, strides=strides, align=256, init="auto")


def case(title, builtin, reads, writes, params=(), attributes=None, names=None, scales=None, dims=None, dtypes=None):
    """reads and writes: arrays by name; what is in both is an inout."""
    dtypes = dtypes or {}
    tensors = []
    for role in ("input", "inout", "output"):
        for name in dict.fromkeys([*reads, *writes]):
            where = "inout" if name in reads and name in writes else "input" if name in reads else "output"
            if where != role:
                continue
            array = np.asarray(reads.get(name, writes.get(name)))
            dtype = dtypes.get(name, "f64" if array.dtype.kind == "f" else "i64")
            tensors.append(tensor(name, role, dtype, array.shape))
    stated = []
    for name, value in dict(params).items():
        kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
        dtype = {"bool": "bool", "int": "i64", "float": "f64"}[kind]
        stated.append(dict(name=name, dtype=dtype, value={kind: value}))
    problem = dict(dims=dims or {}, tensors=tensors, params=stated,
                   reference=dict(builtin=dict(name=builtin, attributes=attributes or {}, names=names or {})))
    return dict(title=title, problem=problem, inputs={k: plain(v) for k, v in reads.items()},
                outputs={k: plain(v) for k, v in writes.items()},
                scales={k: plain(v) for k, v in (scales or {}).items()})


def write(name, cases):
    # Only titles that are unique can be found again.
    assert len({c["title"] for c in cases}) == len(cases)
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    (HERE / f"{name}.json").write_text(f'{{"versions":{json.dumps(VERSIONS)},"cases":[\n{lines}\n]}}\n')


def t(x):
    return torch.from_numpy(np.asarray(x))


def n(x):
    return x.detach().numpy()


def reductions():
    cases = []
    x = floats(3, 5, 7)
    for axis, keep in ((-1, False), (0, False), (1, True), ([0, 2], False), ([-2, -1], True), ([0, 1, 2], False)):
        ax = tuple(axis) if isinstance(axis, list) else axis
        for name, f in (("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min)):
            y = np.asarray(f(x, axis=ax, keepdims=keep))
            s = np.abs(y) if name in ("max", "min") else np.asarray(f(np.abs(x), axis=ax, keepdims=keep))
            cases.append(case(f"{name} {axis} keep={keep}", name, dict(x=x), dict(y=y), attributes=dict(axis=axis), scales=dict(y=s)))
    ties = np.array([[1.0, 3.0, 3.0, -2.0, -2.0], [0.0, -1.0, -1.0, 0.0, -1.0]])
    for name, f in (("argmax", np.argmax), ("argmin", np.argmin)):
        for axis in (0, -1):
            cases.append(case(f"{name} {axis}", name, dict(x=x), dict(y=f(x, axis=axis)), attributes=dict(axis=axis)))
        cases.append(case(f"{name} ties", name, dict(x=ties), dict(y=f(ties, axis=-1))))
    i = ints(-100, 100, 4, 9)
    for name, f in (("sum", np.sum), ("max", np.max), ("min", np.min)):
        cases.append(case(f"{name} of integers", name, dict(x=i), dict(y=f(i, axis=-1))))
    u = np.array([[2**63 + 5, 7, 2**64 - 1], [0, 2**63, 1]], dtype=np.uint64)
    signed = u.view(np.int64)
    for name, f in (("max", np.max), ("min", np.min)):
        cases.append(case(f"{name} of u64", name, dict(x=signed), dict(y=f(u, axis=-1).view(np.int64)), dtypes=dict(x="u64", y="u64")))
    one = floats(1, 1)
    cases.append(case("sum of one", "sum", dict(x=one), dict(y=one[:, 0]), scales=dict(y=np.abs(one[:, 0]))))
    write("reductions", cases)


def softmaxes():
    cases = []
    for title, x in (("ragged", floats(3, 257, low=-8, high=8)), ("large", floats(2, 33, low=-800, high=800))):
        cases.append(case(f"softmax {title}", "softmax", dict(x=x), dict(y=special.softmax(x, -1)), scales=dict(y=special.softmax(x, -1))))
        lse = special.logsumexp(x, -1, keepdims=True)
        cases.append(case(f"log_softmax {title}", "log_softmax", dict(x=x), dict(y=special.log_softmax(x, -1)),
                          scales=dict(y=np.abs(x) + np.abs(lse))))
    x = floats(4, 5, 3)
    cases.append(case("softmax axis 1", "softmax", dict(x=x), dict(y=n(torch.softmax(t(x), 1))), attributes=dict(axis=1)))
    cases.append(case("log_softmax axis 0", "log_softmax", dict(x=x), dict(y=n(torch.log_softmax(t(x), 0))), attributes=dict(axis=0)))
    write("softmaxes", cases)


def norms():
    cases = []
    x, w, b = floats(5, 37), floats(37), floats(37)
    y, mean, rstd = torch.native_layer_norm(t(x), [37], t(w), t(b), 1e-5)
    s = (np.abs(x) + np.abs(x).mean(-1, keepdims=True)) * n(rstd).reshape(-1, 1) * np.abs(w) + np.abs(b)
    cases.append(case("layer_norm", "layer_norm", dict(x=x, w=w, b=b),
                      dict(y=n(y), mean=n(mean).reshape(-1), rstd=n(rstd).reshape(-1)), params=dict(eps=1e-5),
                      scales=dict(y=s, mean=np.abs(x).mean(-1))))
    cases.append(case("layer_norm bare", "layer_norm", dict(x=x), dict(y=n(F.layer_norm(t(x), [37])))))
    x3, w3 = floats(2, 3, 11), floats(3, 11)
    cases.append(case("layer_norm two axes", "layer_norm", dict(x=x3, w=w3), dict(y=n(F.layer_norm(t(x3), [3, 11], t(w3)))),
                      attributes=dict(axis=[-2, -1])))
    y = n(F.rms_norm(t(x), [37], t(w), 1e-6))
    cases.append(case("rms_norm", "rms_norm", dict(x=x, w=w), dict(y=y), params=dict(eps=1e-6), scales=dict(y=np.abs(y))))
    cases.append(case("rms_norm other names", "rms_norm", dict(hidden=x, gamma=w), dict(out=n(F.rms_norm(t(x), [37], t(w), 0.25))),
                      params=dict(epsilon=0.25), names=dict(x="hidden", w="gamma", y="out", eps="epsilon")))
    r = floats(5, 37)
    cases.append(case("rms_norm residual", "rms_norm", dict(x=x, w=w, residual=r),
                      dict(y=n(F.rms_norm(t(x + r), [37], t(w), 1e-6)), residual=x + r), scales=dict(residual=np.abs(x) + np.abs(r))))
    cases.append(case("rms_norm in place", "rms_norm", dict(x=x), dict(x=n(F.rms_norm(t(x), [37], None, 1e-6))), names=dict(y="x")))
    for title, shape in (("images", (3, 4, 5, 2)), ("rows", (9, 6))):
        x, c = floats(*shape), shape[1]
        w, b, rm, rv = floats(c), floats(c), floats(c), floats(c, low=0.25, high=2)
        mean, var = t(rm.copy()), t(rv.copy())
        y = F.batch_norm(t(x), mean, var, t(w), t(b), training=True, momentum=0.25, eps=1e-3)
        axes = tuple(i for i in range(len(shape)) if i != 1)
        m, v = x.mean(axes), x.var(axes)
        count = x.size / c
        cases.append(case(f"batch_norm {title}", "batch_norm", dict(x=x, w=w, b=b, running_mean=rm, running_var=rv),
                          dict(y=n(y), running_mean=n(mean), running_var=n(var), mean=m, rstd=1 / np.sqrt(v + 1e-3)),
                          params=dict(eps=1e-3, momentum=0.25),
                          scales=dict(running_mean=0.75 * np.abs(rm) + 0.25 * np.abs(x).mean(axes),
                                      running_var=0.75 * rv + 0.25 * (x * x).mean(axes) * count / (count - 1))))
    x = floats(4, 7, 3)
    y = F.batch_norm(t(x).permute(0, 2, 1), None, None, training=True).permute(0, 2, 1)
    cases.append(case("batch_norm channels last", "batch_norm", dict(x=x), dict(y=n(y.contiguous())), attributes=dict(axis=-1)))
    write("norms", cases)


def matmuls():
    cases = []
    a, b = floats(7, 300), floats(300, 5)
    cases.append(case("matmul long", "matmul", dict(a=a, b=b), dict(c=a @ b), scales=dict(c=np.abs(a) @ np.abs(b))))
    a, b = floats(6, 9), floats(9, 11)
    for ta in (False, True):
        for tb in (False, True):
            cases.append(case(f"matmul {ta} {tb}", "matmul", dict(a=a.T.copy() if ta else a, b=b.T.copy() if tb else b), dict(c=a @ b),
                              attributes=dict(transpose_a=ta, transpose_b=tb)))
    bias = floats(11)
    acts = dict(relu=torch.relu, gelu=F.gelu, gelu_tanh=lambda x: F.gelu(x, approximate="tanh"), silu=F.silu, sigmoid=torch.sigmoid, tanh=torch.tanh)
    for name, f in acts.items():
        cases.append(case(f"matmul {name}", "matmul", dict(a=a, b=b, bias=bias), dict(c=n(f(t(a @ b + bias)))), attributes=dict(activation=name)))
    column = floats(6, 1)
    cases.append(case("matmul column bias", "matmul", dict(a=a, b=b, bias=column), dict(c=a @ b + column)))
    c = floats(6, 11)
    cases.append(case("gemm", "matmul", dict(a=a, b=b, c=c), dict(c=1.5 * (a @ b) - 0.5 * c), params=dict(alpha=1.5, beta=-0.5),
                      scales=dict(c=1.5 * (np.abs(a) @ np.abs(b)) + 0.5 * np.abs(c))))
    a3, b3 = floats(2, 1, 3, 4), floats(5, 4, 6)
    cases.append(case("matmul batches", "matmul", dict(a=a3, b=b3), dict(c=np.matmul(a3, b3))))
    b3t = np.ascontiguousarray(b3.swapaxes(-1, -2))
    cases.append(case("matmul batches transposed", "matmul", dict(a=a3, b=b3t), dict(c=np.matmul(a3, b3)), attributes=dict(transpose_b=True)))
    ia, ib = ints(-128, 127, 4, 9), ints(-128, 127, 9, 3)
    cases.append(case("matmul integers", "matmul", dict(a=ia, b=ib), dict(c=ia @ ib), dtypes=dict(a="i8", b="i8", c="i32")))
    write("matmuls", cases)


def scans_and_losses():
    cases = []
    x = floats(3, 41)
    sums = np.cumsum(x, -1)
    cases.append(case("cumsum", "cumsum", dict(x=x), dict(y=sums), scales=dict(y=np.cumsum(np.abs(x), -1))))
    cases.append(case("cumsum exclusive", "cumsum", dict(x=x), dict(y=np.concatenate([np.zeros((3, 1)), sums[:, :-1]], -1)), attributes=dict(exclusive=True)))
    cases.append(case("cumsum reverse", "cumsum", dict(x=x), dict(y=np.ascontiguousarray(np.cumsum(x[:, ::-1], -1)[:, ::-1])), attributes=dict(reverse=True)))
    i = ints(-50, 50, 6, 4)
    cases.append(case("cumsum integers axis 0", "cumsum", dict(x=i), dict(y=np.cumsum(i, 0)), attributes=dict(axis=0)))
    x, labels = floats(9, 23, low=-9, high=9), ints(0, 22, 9)
    labels[4] = 5
    each = n(F.cross_entropy(t(x), t(labels), reduction="none"))
    lse = special.logsumexp(x, -1)
    picked = x[np.arange(9), labels]
    cases.append(case("cross_entropy none", "cross_entropy", dict(x=x, labels=labels), dict(y=each, lse=lse), attributes=dict(reduction="none"),
                      scales=dict(y=np.abs(lse) + np.abs(picked))))
    for reduction in ("mean", "sum"):
        y = n(F.cross_entropy(t(x), t(labels), reduction=reduction))
        cases.append(case(f"cross_entropy {reduction}", "cross_entropy", dict(x=x, labels=labels), dict(y=y), attributes=dict(reduction=reduction)))
        y = n(F.cross_entropy(t(x), t(labels), reduction=reduction, ignore_index=5)).reshape(1)
        cases.append(case(f"cross_entropy {reduction} ignoring", "cross_entropy", dict(x=x, labels=labels), dict(y=y),
                          attributes=dict(reduction=reduction, ignore_index=5)))
    x, labels = floats(2, 5, 3), ints(0, 4, 2, 3)
    cases.append(case("cross_entropy axis 1", "cross_entropy", dict(x=x, labels=labels), dict(y=n(F.cross_entropy(t(x), t(labels)))), attributes=dict(axis=1)))
    write("scans_and_losses", cases)


def attentions():
    cases = []

    def sdpa(q, k, v, mask=None, scale=None):
        groups = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
        return n(F.scaled_dot_product_attention(t(q), t(k), t(v), attn_mask=None if mask is None else t(mask), scale=scale))

    def causal(m, keys):
        return np.arange(keys)[None, :] <= np.arange(m)[:, None] + keys - m

    def weights(q, k, v, mask, scale):
        """The softmax times |v|, and the log of the sums, by scipy."""
        groups = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
        s = np.einsum("bhmd,bhnd->bhmn", q, k) * scale
        s = s if mask is None else np.where(mask, s, -np.inf)
        return np.einsum("bhmn,bhnd->bhmd", special.softmax(s, -1), np.abs(v)), special.logsumexp(s, -1)

    q, k, v = floats(2, 4, 5, 8), floats(2, 2, 9, 8), floats(2, 2, 9, 6)
    scale = 8 ** -0.5
    for title, mask in (("grouped", None), ("causal grouped", causal(5, 9))):
        s, lse = weights(q, k, v, mask, scale)
        cases.append(case(f"attention {title}", "attention", dict(q=q, k=k, v=v), dict(o=sdpa(q, k, v, mask), lse=lse),
                          params=dict(causal=mask is not None), scales=dict(o=s)))
    cases.append(case("attention scale", "attention", dict(q=q, k=k, v=v), dict(o=sdpa(q, k, v, None, 0.25)), params=dict(scale=0.25)))
    bshd = lambda x: np.ascontiguousarray(np.asarray(x).swapaxes(1, 2))
    cases.append(case("attention bshd", "attention", dict(q=bshd(q), k=bshd(k), v=bshd(v)), dict(o=bshd(sdpa(q, k, v, causal(5, 9)))),
                      attributes=dict(layout="bshd", causal=True)))
    square_q, square_k, square_v = floats(1, 1, 70, 4), floats(1, 1, 70, 4), floats(1, 1, 70, 4)
    o = n(F.scaled_dot_product_attention(t(square_q), t(square_k), t(square_v), is_causal=True))
    cases.append(case("attention causal square", "attention", dict(q=square_q, k=square_k, v=square_v), dict(o=o), attributes=dict(causal=True)))
    # More queries than keys: the first three see nothing.
    q2, k2, v2 = floats(1, 1, 5, 4), floats(1, 1, 2, 4), floats(1, 1, 2, 4)
    o = np.zeros((1, 1, 5, 4))
    o[:, :, 3:] = sdpa(q2[:, :, 3:], k2, v2, causal(2, 2))
    cases.append(case("attention blind queries", "attention", dict(q=q2, k=k2, v=v2), dict(o=o), attributes=dict(causal=True)))
    # Pages: twelve pages of four keys, tables of four pages a batch, ragged lengths, one of them on a page's edge.
    pages_k, pages_v = floats(12, 4, 2, 4), floats(12, 4, 2, 4)
    table = rng.permutation(12).reshape(3, 4)
    lengths = np.array([13, 8, 1])
    for title, m in (("paged decode", None), ("paged causal prefill", 1), ("paged three queries", 3)):
        rows = m or 1
        q = floats(3, 4, rows, 4)
        o, lse = np.zeros((3, 4, rows, 4)), np.full((3, 4, rows), -np.inf)
        for b in range(3):
            keys = lengths[b]
            k = pages_k[table[b]].reshape(16, 2, 4)[:keys].swapaxes(0, 1)[None]
            v = pages_v[table[b]].reshape(16, 2, 4)[:keys].swapaxes(0, 1)[None]
            seen = [i for i in range(rows) if keys - rows + i + 1 > 0]
            mask = causal(rows, keys)[seen]
            o[b][:, seen] = sdpa(q[b:b + 1][:, :, seen], k, v, mask)[0]
            lse[b][:, seen] = weights(q[b:b + 1][:, :, seen], k, v, mask, 0.5)[1][0]
        squeeze = (lambda x: x[:, :, 0]) if m is None else lambda x: x
        cases.append(case(f"attention {title}", "attention",
                          dict(q=squeeze(q), k_cache=pages_k, v_cache=pages_v, page_table=table, context=lengths),
                          dict(o=squeeze(o), lse=squeeze(lse)), attributes=dict(causal=True),
                          names=dict(k="k_cache", v="v_cache", lengths="context")))
    write("attentions", cases)


def convolutions():
    cases = []
    for title, xs, ws, kw in (
        ("plain", (2, 3, 7, 6), (4, 3, 3, 3), {}),
        ("stride padding", (2, 3, 8, 9), (4, 3, 3, 2), dict(stride=[2, 3], padding=[1, 2])),
        ("dilated", (1, 2, 9, 9), (3, 2, 3, 3), dict(dilation=2, padding=2)),
        ("grouped", (2, 6, 5, 5), (9, 2, 3, 3), dict(groups=3, padding=1)),
        ("depthwise", (2, 4, 6, 5), (4, 1, 3, 3), dict(groups=4, stride=2)),
        ("pointwise", (1, 5, 3, 4), (6, 5, 1, 1), {}),
    ):
        x, w, b = floats(*xs), floats(*ws), floats(ws[0])
        torch_kw = {k: tuple(v) if isinstance(v, list) else v for k, v in kw.items()}
        y = F.conv2d(t(x), t(w), t(b), **torch_kw)
        s = F.conv2d(t(np.abs(x)), t(np.abs(w)), t(np.abs(b)), **torch_kw)
        cases.append(case(f"conv2d {title}", "conv2d", dict(x=x, w=w, bias=b), dict(y=n(y)), attributes=kw, scales=dict(y=n(s))))
    x, w = floats(1, 2, 5, 5), floats(3, 2, 3, 3)
    cases.append(case("conv2d relu no bias", "conv2d", dict(x=x, w=w), dict(y=n(F.relu(F.conv2d(t(x), t(w))))), attributes=dict(activation="relu")))
    for title, kw in (("plain", dict(kernel=2)), ("overlapping", dict(kernel=3, stride=1, padding=1)),
                      ("uneven", dict(kernel=[3, 2], stride=[2, 1], padding=[1, 0])), ("dilated", dict(kernel=2, stride=1, dilation=2))):
        x = floats(2, 3, 8, 7)
        torch_kw = {("kernel_size" if k == "kernel" else k): tuple(v) if isinstance(v, list) else v for k, v in kw.items()}
        y, at = F.max_pool2d(t(x), return_indices=True, **torch_kw)
        cases.append(case(f"max_pool2d {title}", "max_pool2d", dict(x=x), dict(y=n(y), indices=n(at)), attributes=kw, scales=dict(y=np.abs(n(y)))))
    write("convolutions", cases)


def moves():
    cases = []
    x = floats(3, 4, 5)
    cases.append(case("transpose reversed", "transpose", dict(x=x), dict(y=np.ascontiguousarray(x.T))))
    cases.append(case("transpose axes", "transpose", dict(x=x), dict(y=np.ascontiguousarray(x.transpose(1, 2, 0))), attributes=dict(axes=[1, 2, 0])))
    cases.append(case("transpose negative axes", "transpose", dict(x=x), dict(y=np.ascontiguousarray(x.transpose(0, 2, 1))), attributes=dict(axes=[0, -1, -2])))
    for axis in (0, 1, 2):
        shape = [3, 4, 5]
        shape[axis] = 6
        index = ints(0, x.shape[axis] - 1, *shape)
        cases.append(case(f"gather axis {axis}", "gather", dict(x=x, index=index), dict(y=np.take_along_axis(x, index, axis)), attributes=dict(axis=axis)))
    index = ints(0, 4, 2, 3, 5)
    cases.append(case("gather part", "gather", dict(x=x, index=index), dict(y=n(torch.gather(t(x), 2, t(index))))))
    w, ids = floats(10, 6), ints(0, 9, 2, 7)
    cases.append(case("embedding", "embedding", dict(w=w, ids=ids), dict(y=n(F.embedding(t(ids), t(w)))), scales=dict(y=np.abs(w[ids]))))
    big = np.array([[2**62 + 1, -3], [5, 2**53 + 1]])
    cases.append(case("embedding of integers", "embedding", dict(w=big, ids=np.array([1, 0])), dict(y=big[[1, 0]])))
    x = floats(5, 7)
    mask = ints(0, 1, 5, 7)
    cases.append(case("dropout mask", "dropout", dict(x=x, mask=mask), dict(y=np.where(mask != 0, x / 0.75, 0.0)), params=dict(p=0.25)))
    # Philox 4x32-10 by randomgen, whose first block is that of counter + 1.
    for title, seed, offset in (("counter", 42, 3), ("wide counter", 0x123456789ABCDEF, 0xFEDCBA987)):
        words = []
        for block in range(9):
            counter = block | offset << 64
            g = randomgen.Philox(key=seed, counter=(counter - 1) % 2**128, number=4, width=32)
            words += [int(v) for v in g.random_raw(4)]
        keep = np.array(words[:35]).reshape(5, 7) / 2**32 >= 0.3
        cases.append(case(f"dropout {title}", "dropout", dict(x=x), dict(y=np.where(keep, x / (1 - 0.3), 0.0), kept=keep.astype(np.int64)),
                          params=dict(p=0.3, seed=seed, offset=offset)))
    write("moves", cases)


def elementwise():
    cases = []
    x, b, c = floats(3, 17), floats(17), floats(3, 1)
    pos = floats(3, 17, low=0.01, high=5)
    tx, tb = t(x), t(b)

    def e(title, text, reads, y, **kw):
        cases.append(case(title, "elementwise", reads, dict(y=np.asarray(y)), attributes=dict(y=text), **kw))

    e("gelu bias", "gelu(x + b)", dict(x=x, b=b), n(F.gelu(tx + tb)))
    e("gelu tail", "gelu(x * 3)", dict(x=x), 3 * x * special.ndtr(3 * x))
    e("gelu_tanh", "gelu_tanh(x)", dict(x=x), n(F.gelu(tx, approximate="tanh")))
    e("silu gate", "silu(x) * b", dict(x=x, b=b), n(F.silu(tx)) * b)
    e("columns", "x * c - b / 2", dict(x=x, b=b, c=c), x * c - b / 2, scales=dict(y=np.abs(x * c) + np.abs(b / 2)))
    for f, g, v in (("exp", np.exp, x), ("exp2", np.exp2, x), ("expm1", np.expm1, x), ("log", np.log, pos), ("log2", np.log2, pos),
                    ("log1p", np.log1p, pos), ("sqrt", np.sqrt, pos), ("rsqrt", lambda v: 1 / np.sqrt(v), pos), ("abs", np.abs, x), ("sign", np.sign, x),
                    ("floor", np.floor, x), ("ceil", np.ceil, x), ("round", np.round, x), ("sin", np.sin, x), ("cos", np.cos, x),
                    ("tanh", np.tanh, x), ("erf", special.erf, x), ("sigmoid", special.expit, x * 1), ("relu", lambda v: np.maximum(v, 0), x),
                    ("softplus", lambda v: np.logaddexp(v, 0), x)):
        e(f, f"{f}(x)", dict(x=v), g(v))
    y = floats(3, 17)
    e("min max", "min(x, y0) + 2 * max(x, b)", dict(x=x, y0=y, b=b), np.minimum(x, y) + 2 * np.maximum(x, b))
    e("pow", "pow(p, x) + p ** 2 ** 0.5", dict(p=pos, x=x), np.power(pos, x) + pos ** (2 ** 0.5))
    e("leaky", "leaky_relu(x, slope)", dict(x=x), n(F.leaky_relu(tx, 0.125)), params=dict(slope=0.125))
    e("where", "where(x >= b, x, -b)", dict(x=x, b=b), np.where(x >= b, x, -b))
    e("comparisons", "(x < b) + 2 * (x != b) - (x <= 0) * (b > 0) + (x == x)", dict(x=x, b=b),
      (x < b) + 2.0 * (x != b) - (x <= 0) * (b > 0) + 1.0)
    e("clamp", "clamp(x, -1, 1.5e0)", dict(x=x), np.clip(x, -1, 1.5))
    e("precedence", "-x ** 2 + 6 / 3 / 2 - 1 - 1", dict(x=x), -(x ** 2) + 6 / 3 / 2 - 1 - 1)
    e("dims", "x / cols + pi", dict(x=x), x / 17 + np.pi, dims=dict(cols=17))
    i, j = ints(-2**40, 2**40, 4, 5), ints(-2**20, 2**20, 5)
    e("integers", "i * j - max(i, 3) + (i < j)", dict(i=i, j=j), i * j - np.maximum(i, 3) + (i < j))
    a, bb = floats(3, 4), floats(3, 4)
    cases.append(case("two outputs and an inout", "elementwise", dict(a=a, acc=bb), dict(acc=bb + a, d=a * bb), attributes=dict(acc="acc + a", d="a * acc")))
    write("elementwise", cases)


def formats():
    codes = np.arange(256, dtype=np.uint8)
    tables = {name: plain(codes.view(dtype).astype(np.float64)) for name, dtype in
              (("f8e4m3", ml_dtypes.float8_e4m3fn), ("f8e5m2", ml_dtypes.float8_e5m2), ("f8e8m0", ml_dtypes.float8_e8m0fnu))}
    tables["f4e2m1"] = plain(codes[:16].view(ml_dtypes.float4_e2m1fn).astype(np.float64))
    (HERE / "formats.json").write_text(json.dumps(dict(versions=VERSIONS, tables=tables)) + "\n")


def draws():
    """The generator's documented rules, over randomgen's Philox."""
    def block(seed, ordinal, i, draw):
        counter = i | ordinal << 64 | draw << 96
        g = randomgen.Philox(key=seed, counter=(counter - 1) % 2**128, number=4, width=32)
        return [int(v) for v in g.random_raw(4)]

    def unit(b):
        return ((b[0] | b[1] << 32) >> 11) * 2.0**-53

    def normal(f):
        return (sum(f(0)) + sum(f(1)) - 4 * (2**32 - 1)) * (math.sqrt(12 / 8) * 2.0**-32)

    def wide(b, lowest):
        e = lowest + (b[0] * (1 - lowest) >> 32)
        return math.ldexp((1 + ((b[1] | b[2] << 32) >> 12) * 2.0**-52) * (-1 if b[3] & 1 else 1), e)

    def below(b, count):
        return (b[0] | b[1] << 32) * count >> 64

    rules = {
        "uniform": lambda f, low: 2 * unit(f(0)) - 1,
        "normal": lambda f, low: normal(f),
        "positive": lambda f, low: 1 - unit(f(0)),
        "wide": lambda f, low: wide(f(0), low),
        "sparse": lambda f, low: 0.0 if f(2)[0] & 3 else normal(f),
        "large": lambda f, low: 128 * (2 * unit(f(0)) - 1),
    }
    whole = {
        "uniform": lambda f: below(f(0), 17) - 8,
        "normal": lambda f: below(f(0), 17) - 8,
        "positive": lambda f: below(f(0), 16) + 1,
        "wide": lambda f: below(f(0), 2001) - 1000,
        "sparse": lambda f: 0 if f(2)[0] & 3 else below(f(0), 17) - 8,
        "large": lambda f: below(f(0), 2001) - 1000,
    }
    lowest = dict(f64=-60, f32=-30, f16=-14, bf16=-30)
    types = dict(f64=np.float64, f32=np.float32, f16=np.float16, bf16=ml_dtypes.bfloat16)
    cases = []
    for k, name in enumerate(rules):
        for dtype in types:
            seed, ordinal = 0x9E3779B97F4A7C15 * (k + 1) % 2**64, k + 1
            raw = [rules[name](lambda d: block(seed, ordinal, i, d), lowest[dtype]) for i in range(12)]
            values = np.array(raw).astype(types[dtype]).astype(np.float64)
            cases.append(dict(distribution=name, dtype=dtype, seed=seed, ordinal=ordinal, values=plain(values)))
        raw = [whole[name](lambda d: block(seed, ordinal, i, d)) for i in range(12)]
        cases.append(dict(distribution=name, dtype="i32", seed=seed, ordinal=ordinal, values=raw))
    (HERE / "draws.json").write_text(json.dumps(dict(versions=VERSIONS, cases=cases)) + "\n")


HERE.mkdir(exist_ok=True)
for make in (reductions, softmaxes, norms, matmuls, scans_and_losses, attentions, convolutions, moves, elementwise, formats, draws):
    make()
