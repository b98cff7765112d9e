import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row, col = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    # What lies outside of a tensor is read as zero and not written.
    of_a = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[BLOCK_M, BLOCK_K])
    of_b = tl.make_tensor_descriptor(b, shape=[k, n], strides=[n, 1], block_shape=[BLOCK_K, BLOCK_N])
    of_c = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[BLOCK_M, BLOCK_N])
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for at in range(0, k, BLOCK_K):
        total = tl.dot(of_a.load([row, at]), of_b.load([at, col]), total)
    of_c.store([row, col], total.to(tl.float16))
