import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.linear = nn.Linear(fan_in, fan_out)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return [96, 40]
