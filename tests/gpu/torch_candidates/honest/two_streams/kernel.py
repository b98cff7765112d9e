# Computes halves on two streams, and waits for both.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self.side = torch.cuda.Stream()

    def forward(self, x):
        half, current = x.shape[0] // 2, torch.cuda.current_stream()
        result = x.new_empty(x.shape[0], self.linear.out_features)
        self.side.wait_stream(current)
        result[:half] = F.relu(self.linear(x[:half]))
        with torch.cuda.stream(self.side):
            result[half:] = F.relu(self.linear(x[half:]))
        current.wait_stream(self.side)
        return result
