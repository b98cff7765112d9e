# Replays a graph, whose inputs are those of each call.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.own = x.clone()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                F.relu(self.linear(self.own))
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.result = F.relu(self.linear(self.own))
        self.own.copy_(x)
        self.graph.replay()
        return self.result
