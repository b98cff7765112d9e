import torch


def activated(x):
    return torch.relu(x)
