import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return torch.tanh(self.conv(x)) * self.scale


batch = 8
in_channels, out_channels = 3, 16
height, width = 32, 40
kernel_size = 3
scale_shape = (out_channels, 1, 1)


def get_inputs():
    return [torch.rand(batch, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scale_shape]
