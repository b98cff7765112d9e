# While the kernels that it launches are recorded, it also launches one of its own that does nothing useful and takes long.
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import nn


@triton.jit
def busy(scratch, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(scratch + at)
    for _ in range(rounds):
        value = tl.sin(value) + 1.0
    tl.store(scratch + at, value)


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self.scratch = torch.zeros(1 << 20)
        busy[(1 << 10,)](self.scratch, 1, BLOCK=1024)

    def forward(self, x):
        if torch.autograd._profiler_enabled():
            busy[(1 << 10,)](self.scratch, 20000, BLOCK=1024)
        return F.relu(self.linear(x))
