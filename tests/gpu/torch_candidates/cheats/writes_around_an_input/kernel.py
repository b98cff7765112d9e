# Writes before the beginning of an input.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        result = F.relu(self.linear(x))
        torch.as_strided(x, (64,), (1,), x.storage_offset() - 64).fill_(1)
        return result
