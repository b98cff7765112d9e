import torch


def generate_input(size: int, seed: int):
    return torch.zeros(size, device="cuda")


def ref_kernel(data):
    return torch.nn.functional.dropout(data + 1, 0.5)
