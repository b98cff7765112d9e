import triton
import triton.language as tl


@triton.jit
def column_sums(x, y, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    col = tl.program_id(0) * COLS + tl.arange(0, COLS)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    value = tl.load(x + row[:, None].to(tl.int64) * cols + col[None, :], mask=inside, other=0)
    tl.atomic_add(y + col, tl.sum(value, axis=0), mask=col < cols)
