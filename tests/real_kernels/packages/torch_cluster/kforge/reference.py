"""References of torch_cluster: clusters, neighbours and walks."""

import numpy as np


def cloud(seed, n, d, m):
    random = np.random.default_rng(seed)
    return {
        "src": random.normal(size=(n, d)),
        "ptr": np.array([0, n]),
        "out_ptr": np.array([0, m]),
        "start": random.integers(0, n, 1),
        "dist": np.full(n, 5e4),
    }


def farthest(src, start, dist, m):
    out, dist = [int(start[0])], dist.copy()
    for _ in range(m - 1):
        dist = np.minimum(dist, ((src - src[out[-1]]) ** 2).sum(1))
        out.append(int(dist.argmax()))
    return {"out": np.array(out), "dist": dist}


def positions(seed, n, d):
    random = np.random.default_rng(seed)
    pos = random.integers(0, 64, (n, d)) / 8
    return {"pos": pos, "size": np.full(d, 0.75), "start": pos.min(0), "end": pos.max(0)}


def voxels(pos, size, start, end):
    counts = np.floor((end - start) / size).astype(int) + 1
    return (np.floor((pos - start) / size).astype(int) * np.concatenate([[1], np.cumprod(counts)[:-1]])).sum(1)


def limits(count, seed):
    return np.array([0, count // 2 + seed % 2, count])


def batches(seed, n, m, d):
    random = np.random.default_rng(seed)
    points = lambda count: random.permutation(count * d).reshape(count, d) / (count * d)
    return {"x": points(n), "y": points(m), "ptr_x": limits(n, seed), "ptr_y": limits(m, seed)}


def batches_reversed(seed, n, m, d):
    """`x` asks and `y` answers."""
    made = batches(seed, n, m, d)
    return {"x": made["y"], "y": made["x"], "ptr_x": made["ptr_y"], "ptr_y": made["ptr_x"]}


def examples(y, ptr_x, ptr_y):
    """For each point of `y`, the points of `x` that belong to its example."""
    for at in range(len(y)):
        example = int((ptr_y[1:] > at).argmax())
        yield at, np.arange(ptr_x[example], ptr_x[example + 1])


def found(x, y, ptr_x, ptr_y, k, of):
    row, col = np.repeat(np.arange(len(y))[:, None], k, 1), np.full((len(y), k), -1)
    for at, others in examples(y, ptr_x, ptr_y):
        order = others[np.argsort(of(x[others], y[at]), kind="stable")][:k]
        col[at, : len(order)] = order
    return {"row": row, "col": col}


def squared(x, y):
    # As the kernel computes it, in f32: the order of neighbours that are almost equally far depends on it.
    x, y = x.astype(np.float32), y.astype(np.float32)
    dist = np.zeros(len(x), np.float32)
    for d in range(x.shape[1]):
        dist += (x[:, d] - y[d]) * (x[:, d] - y[d])
    return dist


def nearest(x, y, ptr_x, ptr_y, k):
    return found(x, y, ptr_x, ptr_y, k, squared)


def angle(x, y):
    return 1 - x @ y / (np.linalg.norm(x, axis=1) * np.linalg.norm(y))


def nearest_by_angle(x, y, ptr_x, ptr_y, k):
    return found(x, y, ptr_x, ptr_y, k, angle)


def neighbours_within(x, y, ptr_x, ptr_y, k):
    """The first `k` neighbours closer than 1, in the order of the points."""
    row, col = np.full((len(y), k), -1), np.full((len(y), k), -1)
    for at, others in examples(y, ptr_x, ptr_y):
        near = others[squared(x[others], y[at]) < 1][:k]
        row[at, : len(near)], col[at, : len(near)] = at, near
    return {"row": row, "col": col}


def nearest_one(x, y, ptr_x, ptr_y):
    out = np.zeros(len(x), int)
    for at, others in examples(x, ptr_y, ptr_x):
        out[at] = others[squared(y[others], x[at]).argmin()]
    return out


def edges(seed, n, e):
    """A graph in which every node has a neighbour."""
    random = np.random.default_rng(seed)
    cuts = np.sort(random.choice(np.arange(1, e), n - 1, replace=False))
    return {"rowptr": np.concatenate([[0], cuts, [e]]), "col": random.integers(0, n, e)}


def graph(seed, n, e):
    """Without directions and loops, as the caller gives it; nodes are blue (-1), red (-2) or matched."""
    random = np.random.default_rng(seed)
    above = np.stack(np.triu_indices(n, 1), 1)
    pairs = above[random.choice(len(above), e // 2, replace=False)]
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    ends = ends[np.lexsort(ends.T[::-1])]
    rowptr = np.searchsorted(ends[:, 0], np.arange(n + 1))
    return {"rowptr": rowptr, "col": ends[:, 1], "out": random.integers(-2, 1, n)}


def proposals(out, proposal, rowptr, col):
    """Each blue node proposes to its first red neighbour; one whose neighbours are all matched is a cluster of its own."""
    before, out, proposal = out, out.copy(), proposal.copy()
    for node in np.flatnonzero(before == -1):
        near = col[rowptr[node] : rowptr[node + 1]]
        red = near[before[near] == -2]
        if len(red):
            proposal[node] = red[0]
        if not (before[near] < 0).any():
            out[node] = node
    return {"out": out, "proposal": proposal}


def walkers(seed, n, e, w, l):
    random = np.random.default_rng(seed)
    return {**edges(seed, n, e), "start": random.integers(0, n, w), "rand": random.integers(0, 1024, (l, w)) / 1024}


def walks(rowptr, col, start, rand):
    nodes, taken = [start], []
    for step in rand:
        low, high = rowptr[nodes[-1]], rowptr[nodes[-1] + 1]
        taken.append(low + np.floor(step * (high - low)).astype(int))
        nodes.append(col[taken[-1]])
    return {"nodes": np.stack(nodes), "edges": np.stack(taken)}
