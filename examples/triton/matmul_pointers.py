import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        at = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + row[:, None] * k + at[None, :], mask=(row[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + col[None, :], mask=(at[:, None] < k) & (col[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * n + col[None, :], total.to(tl.float16), mask=(row[:, None] < m) & (col[None, :] < n))
