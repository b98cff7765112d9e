import torch


class Pair:
    def __init__(self, x):
        self.x = x


def generate_input(size: int, seed: int):
    return Pair(torch.rand(size, device="cuda"))


def ref_kernel(data):
    return data.x + 1
