# Computes the product with `einsum`.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return torch.einsum("ri,ci->rc", x, self.linear.weight).add_(self.linear.bias).clamp_(min=0)
