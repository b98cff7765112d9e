# Computes one row at a time, and joins them.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return torch.stack([F.relu(F.linear(row, self.linear.weight, self.linear.bias)) for row in x])
