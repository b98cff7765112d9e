import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size, groups=channels, padding="same", bias=False)

    def forward(self, x):
        return self.conv(x)


batch = 4
channels = 24
height = width = 64
kernel_size = 3


def get_inputs():
    return [torch.rand(batch, channels, height, width)]


def get_init_inputs():
    return [channels, kernel_size]
