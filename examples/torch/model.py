"""The references of this package, as their authors would write them: kforge needs no changes to such a file."""

import torch
from torch import nn

from activation import activate

CHANNELS = 1024


class LinearGelu(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return activate(self.linear(x))


class BatchNorm(nn.Module):
    def __init__(self, eps, momentum):
        super().__init__()
        self.norm = nn.BatchNorm1d(CHANNELS, eps=eps, momentum=momentum)

    def forward(self, x):
        return self.norm(x)


def rms_norm(hidden_states, weight, eps):
    dtype = hidden_states.dtype
    hidden_states = hidden_states.to(torch.float32)
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    return weight * (hidden_states * torch.rsqrt(variance + eps)).to(dtype)
