import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, fan_in, fan_out, factor, slope):
        super().__init__()
        self.gemm = nn.Linear(fan_in, fan_out)
        self.factor = factor
        self.leaky = nn.LeakyReLU(slope)

    def forward(self, x):
        return self.leaky(self.gemm(x) * self.factor)


batch = 128
fan_in = 256
fan_out = 512
factor = 2.0
slope = 0.1


def get_inputs():
    return [torch.rand(batch, fan_in)]


def get_init_inputs():
    return [fan_in, fan_out, factor, slope]
