# Computes on a stream that does not wait for its inputs.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self.side = torch.cuda.Stream()

    def forward(self, x):
        with torch.cuda.stream(self.side):
            result = F.relu(self.linear(x))
        torch.cuda.current_stream().wait_stream(self.side)
        return result
