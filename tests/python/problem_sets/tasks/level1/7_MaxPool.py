import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, kernel, stride, padding, dilation):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel, stride=stride, padding=padding, dilation=dilation)

    def forward(self, x):
        return self.pool(x)


batch = 8
channels = 16
height = 128
width = 96
kernel = 4
stride = 2
padding = 1
dilation = 3


def get_inputs():
    return [torch.rand(batch, channels, height, width)]


def get_init_inputs():
    return [kernel, stride, padding, dilation]
