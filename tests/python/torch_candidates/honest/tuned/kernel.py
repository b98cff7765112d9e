# Has a tunable that sets a constant at its top.
import torch
import torch.nn.functional as F
from torch import nn

BLOCK = 1


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return torch.cat([F.relu(self.linear(rows)) for rows in x.split(BLOCK)])
