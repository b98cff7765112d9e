import triton
import triton.language as tl


@triton.jit
def split_k(a, b, c, parts, arrived, m, n, k, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr):
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    tiles = tl.num_programs(0) * tl.num_programs(1)
    part = tl.program_id(2)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(part * BLOCK_K, k, SPLITS * BLOCK_K):
        at = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + row[:, None] * k + at[None, :], mask=(row[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + col[None, :], mask=(at[:, None] < k) & (col[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    inner = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(parts + (part * tiles + tile) * BLOCK * BLOCK + inner, total)
    # Every thread has stored its share before one of them says so.
    tl.debug_barrier()
    before = tl.atomic_add(arrived + tile, 1, sem="acq_rel")
    if before == SPLITS - 1:
        total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for other in range(SPLITS):
            total += tl.load(parts + (other * tiles + tile) * BLOCK * BLOCK + inner, cache_modifier=".cg")
        tl.store(c + row[:, None] * n + col[None, :], total, mask=(row[:, None] < m) & (col[None, :] < n))
