# Changes its statistics in place.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        mean, var = x.mean(dim=0), x.var(dim=0, unbiased=False)
        n = x.shape[0]
        self.norm.running_mean.mul_(0.9).add_(mean, alpha=0.1)
        self.norm.running_var.mul_(0.9).add_(var * n / (n - 1), alpha=0.1)
        return (x - mean) * torch.rsqrt(var + self.norm.eps) * self.norm.weight + self.norm.bias
