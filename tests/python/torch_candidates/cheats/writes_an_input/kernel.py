# Computes in the memory of its weights.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        result = F.relu(self.linear(x))
        self.linear.bias.mul_(0.5)
        return result
