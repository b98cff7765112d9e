# Copies the weights into another layout in each call.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        weight = self.linear.weight.t().contiguous()
        return torch.relu(x @ weight + self.linear.bias)
