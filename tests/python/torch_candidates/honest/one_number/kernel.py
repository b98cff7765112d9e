# Returns a tensor without axes.
import torch
import torch.nn.functional as F
from torch import nn


def fast(x):
    return (x * x).sum()
