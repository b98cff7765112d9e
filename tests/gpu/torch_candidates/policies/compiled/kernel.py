# `torch.compile` makes its kernels, which its policy allows.
import torch
import torch.nn.functional as F
from torch import nn


@torch.compile
def fused(x, weight, bias):
    return torch.relu((x.unsqueeze(1) * weight.unsqueeze(0)).sum(dim=2) + bias)


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return fused(x, self.linear.weight, self.linear.bias)
