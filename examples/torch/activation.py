"""A helper of model.py. An edit here computes the expected values of its references again."""

from torch.nn.functional import gelu


def activate(x):
    return gelu(x)
