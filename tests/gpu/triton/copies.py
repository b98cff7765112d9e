import triton
import triton.language as tl


@triton.jit
def tiles(x, y, rows, cols):
    # What the preceding launch wrote is visible from here on.
    tl.extra.cuda.gdc_wait()
    row, col = tl.program_id(0) * 32, tl.program_id(1) * 32
    of_x = tl.make_tensor_descriptor(x, shape=[rows, cols], strides=[cols, 1], block_shape=[32, 32])
    of_y = tl.make_tensor_descriptor(y, shape=[rows, cols], strides=[cols, 1], block_shape=[32, 32])
    of_y.store([row, col], of_x.load([row, col]))
    tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def flat(x, y, n, BLOCK: tl.constexpr = 1024):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def step(x, y, number, rows, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < cols
    value = tl.load(x + at, mask=inside, other=0.0)
    tl.store(y + at, value + (3 - number), mask=inside)


@triton.jit
def described(x, y, WIDTH: tl.constexpr):
    at = [tl.program_id(0) * 64, tl.program_id(1) * WIDTH]
    y.store(at, x.load(at))
