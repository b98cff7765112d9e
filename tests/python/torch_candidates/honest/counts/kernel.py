# Returns integers.
import torch
import torch.nn.functional as F
from torch import nn


def fast(x):
    return torch.count_nonzero(x > 0, dim=1)
