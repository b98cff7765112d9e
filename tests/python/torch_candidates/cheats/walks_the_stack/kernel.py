# Looks for its caller.
import inspect

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        callers = [frame.function for frame in inspect.stack()]
        return F.relu(self.linear(x)) if callers else x
