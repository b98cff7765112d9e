# Leaves out what softmax cancels.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):

    def forward(self, x):
        return torch.softmax(x, dim=1)
