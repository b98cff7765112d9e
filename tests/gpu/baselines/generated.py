"""What PyTorch has for operators of examples/generated."""

import torch
import torch.nn.functional as F


def softmax(x):
    return torch.softmax(x, 1)


def log_softmax(x):
    return torch.log_softmax(x, 1)


def rms_norm(x, w, eps):
    return F.rms_norm(x, (x.shape[1],), w, eps)


def layer_norm(x, w, b):
    y, mean, rstd = torch.native_layer_norm(x, (x.shape[1],), w, b, 1e-5)
    return y, mean.flatten(), rstd.flatten()


def row_sum(x):
    return torch.sum(x, 1, dtype=torch.float32)


def row_mean(x):
    return torch.mean(x, 1)


def matmul(a, b):
    return torch.matmul(a, b)
