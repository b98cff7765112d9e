import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, fan_in, fan_out, factor, slope):
        super().__init__()
        self.gemm = nn.Linear(fan_in, fan_out)
        self.factor, self.slope = factor, slope

    def forward(self, x):
        return F.leaky_relu_(torch.addmm(self.gemm.bias, x, self.gemm.weight.t()).mul_(self.factor), self.slope)


batch = 128


def get_inputs():
    return [torch.rand(batch, 256)]
