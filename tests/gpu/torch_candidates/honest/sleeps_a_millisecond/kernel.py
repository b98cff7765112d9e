# Holds the stream for two million cycles, about a millisecond, before it computes: its call time must hold them.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        torch.cuda._sleep(2_000_000)
        return F.relu(self.linear(x))
