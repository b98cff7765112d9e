import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1) * 1e-8


batch = 32
features = 256


def get_inputs():
    return [torch.rand(batch, features)]


def get_init_inputs():
    return []
