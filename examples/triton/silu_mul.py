import triton
import triton.language as tl


@triton.jit
def silu_mul(gate, up, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(gate + at, mask=inside, other=0.0).to(tl.float32)
    factor = tl.load(up + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, value * tl.sigmoid(value) * factor, mask=inside)
