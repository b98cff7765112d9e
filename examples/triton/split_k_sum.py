import triton
import triton.language as tl


@triton.jit
def partial(a, b, parts, m, n, k, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr):
    part = tl.program_id(2)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(part * BLOCK_K, k, SPLITS * BLOCK_K):
        at = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + row[:, None] * k + at[None, :], mask=(row[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + col[None, :], mask=(at[:, None] < k) & (col[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(parts + part * m * n + row[:, None] * n + col[None, :], total, mask=inside)


@triton.jit
def sum_parts(parts, c, size, SPLITS: tl.constexpr, WIDTH: tl.constexpr):
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), dtype=tl.float32)
    for part in range(SPLITS):
        total += tl.load(parts + part * size + at, mask=at < size, other=0.0)
    tl.store(c + at, total, mask=at < size)
