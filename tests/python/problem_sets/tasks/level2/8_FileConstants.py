import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, DOUBLE)
        self.second = nn.Linear(DOUBLE, WIDTH)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x)))


WIDTH = 64
DOUBLE = 2 * WIDTH
batch = 32


def get_inputs():
    return [torch.randn(batch, WIDTH)]


def get_init_inputs():
    return []
