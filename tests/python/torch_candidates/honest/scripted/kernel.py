# Is compiled by TorchScript before the first call.
import torch
import torch.nn.functional as F
from torch import nn


@torch.jit.script
def activated(x):
    return torch.where(x > 0, x, torch.zeros_like(x))


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return activated(self.linear(x))
