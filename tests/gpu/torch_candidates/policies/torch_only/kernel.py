# Launches nothing but kernels of PyTorch itself.
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        products = x.unsqueeze(1) * self.linear.weight.unsqueeze(0)
        return torch.relu(products.sum(dim=2) + self.linear.bias)
