import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.one = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
        self.two = nn.Sequential(nn.Conv2d(channels, channels, 3, stride=2, padding=1), nn.BatchNorm2d(channels))
        self.short = nn.Conv2d(channels, channels, 1, stride=2)

    def forward(self, x):
        return torch.relu(self.two(self.one(x)) + self.short(x))


batch = 4
channels = 16
side = 32


def get_inputs():
    return [torch.rand(batch, channels, side, side)]


def get_init_inputs():
    return [channels]
