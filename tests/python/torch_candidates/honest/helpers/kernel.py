# Uses a file beside it.
import torch
import torch.nn.functional as F
from torch import nn

from helper import activated


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return activated(self.linear(x))
