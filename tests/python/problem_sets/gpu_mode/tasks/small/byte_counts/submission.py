import torch


def custom_kernel(data):
    data, counts = data
    counts.zero_()
    return counts.scatter_add_(0, data.long(), torch.ones_like(data, dtype=torch.int64))
