import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.to("cuda")


n = 64


def get_inputs():
    return [torch.rand(n)]


def get_init_inputs():
    return []
