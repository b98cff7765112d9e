import triton
import triton.language as tl


@triton.jit
def transpose(x, y, rows, cols, TILE: tl.constexpr):
    row, col = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    of_x = tl.make_tensor_descriptor(x, shape=[rows, cols], strides=[cols, 1], block_shape=[TILE, TILE])
    of_y = tl.make_tensor_descriptor(y, shape=[cols, rows], strides=[rows, 1], block_shape=[TILE, TILE])
    of_y.store([col, row], of_x.load([row, col]).T)
