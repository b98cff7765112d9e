import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, fan_in, fan_out, share):
        super().__init__()
        self.linear = nn.Linear(fan_in, fan_out)
        self.dropout = nn.Dropout(share)

    def forward(self, x):
        x = self.linear(x)
        x = self.dropout(x)
        return torch.softmax(x, dim=1)


batch = 64
fan_in = 128
fan_out = 96
share = 0.25


def get_inputs():
    return [torch.rand(batch, fan_in)]


def get_init_inputs():
    return [fan_in, fan_out, share]
