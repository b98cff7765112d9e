import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, fan_in, hidden, fan_out):
        super().__init__()
        layers = []
        for size in hidden:
            layers += [nn.Linear(fan_in, size), nn.ReLU()]
            fan_in = size
        self.layers = nn.Sequential(*layers, nn.Linear(fan_in, fan_out))

    def forward(self, x):
        return self.layers(x)


batch = 32
fan_in = 100
hidden = [64, 48]
fan_out = 10


def get_inputs():
    return [torch.rand(batch, fan_in)]


def get_init_inputs():
    return [fan_in, hidden, fan_out]
