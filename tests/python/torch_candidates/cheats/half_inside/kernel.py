# Computes in half precision, and returns float32.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return F.relu(x.half() @ self.linear.weight.half().t() + self.linear.bias.half()).float()
