import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.mean(dim=self.dim, keepdim=True)


batch = 32
middle = 256
last = 128
dim = 1


def get_inputs():
    return [torch.rand(batch, middle, last)]


def get_init_inputs():
    return [dim]
