import torch


def generate_input(size: int, seed: int):
    return torch.zeros(size, device="cuda")


def ref_kernel(data):
    return data + torch.ones(1, device="cuda")
