import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm = nn.LayerNorm(shape)

    def forward(self, x):
        return self.norm(x)


batch = 16
normalized = (32, 48)


def get_inputs():
    return [torch.randn(batch, *normalized)]


def get_init_inputs():
    return [normalized]
