import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, fan_in, fan_out, groups):
        super().__init__()
        self.linear = nn.Linear(fan_in, fan_out)
        self.norm = nn.GroupNorm(groups, fan_out)

    def forward(self, x):
        x = self.norm(self.linear(x))
        return x * torch.sigmoid(x)


batch = 16
fan_in = 96
fan_out = 128
groups = 8


def get_inputs():
    return [torch.rand(batch, fan_in)]


def get_init_inputs():
    return [fan_in, fan_out, groups]
