import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, x):
        return torch.argmin(x, dim=self.axis)


batch = 32
rows = 128
cols = 64
axis = 1


def get_inputs():
    return [torch.randn(batch, rows, cols)]


def get_init_inputs():
    return [axis]
