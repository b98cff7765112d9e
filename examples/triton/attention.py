import triton
import triton.language as tl


@triton.jit
def attention(q, k, v, o, m, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    first = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * m * D
    rows, dims = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    query = tl.load(q + base + rows[:, None] * D + dims[None, :], mask=rows[:, None] < m, other=0.0)
    highest = tl.full((BLOCK_M,), -1e30, dtype=tl.float32)
    weight = tl.zeros((BLOCK_M,), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    # Later keys are hidden, so keys behind the last row of the tile never count.
    for start in range(0, tl.minimum(first + BLOCK_M, m), BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        key = tl.load(k + base + keys[None, :] * D + dims[:, None], mask=keys[None, :] < m, other=0.0)
        score = tl.dot(query, key) * scale
        score = tl.where((keys[None, :] <= rows[:, None]) & (keys[None, :] < m), score, -1e30)
        now = tl.maximum(highest, tl.max(score, axis=1))
        share = tl.exp(score - now[:, None])
        before = tl.exp(highest - now)
        weight = weight * before + tl.sum(share, axis=1)
        value = tl.load(v + base + keys[:, None] * D + dims[None, :], mask=keys[:, None] < m, other=0.0)
        total = total * before[:, None] + tl.dot(share.to(tl.float16), value)
        highest = now
    result = (total / weight[:, None]).to(tl.float16)
    tl.store(o + base + rows[:, None] * D + dims[None, :], result, mask=rows[:, None] < m)
