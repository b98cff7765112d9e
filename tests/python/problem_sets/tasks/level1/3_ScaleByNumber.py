import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, factor):
        return x * factor


height = 1000
width = 300


def get_inputs():
    return [torch.rand(height, width), 2.5]


def get_init_inputs():
    return []
