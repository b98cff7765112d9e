import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return torch.softmax(x + self.shift, dim=1)


def positive(x):
    return (x > 0).sum(dim=1)


def total(x):
    return (x * x).sum()
