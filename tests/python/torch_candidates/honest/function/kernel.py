# Is a function that gets weights as arguments.
import torch
import torch.nn.functional as F
from torch import nn


def fast(x, linear_weight, linear_bias):
    return F.relu(F.linear(x, linear_weight, linear_bias))
