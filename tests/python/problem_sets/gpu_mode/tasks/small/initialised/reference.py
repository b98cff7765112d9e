import torch
from task import input_t, output_t
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width, bias=False)

    def forward(self, x):
        x = self.norm(x)
        return torch.sigmoid(self.up(x)) * x


def generate_input(rows: int, width: int, seed: int) -> input_t:
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    x = torch.randn(rows, width, generator=generator, device="cuda")
    weights = {
        "norm.weight": torch.randn(width, device="cuda"),
        "norm.bias": torch.randn(width, device="cuda"),
        "up.weight": torch.randn(width, width, device="cuda"),
    }
    return x, weights, {"width": width}


def ref_kernel(data: input_t) -> output_t:
    x, weights, config = data
    # The constructor draws weights, which are then replaced.
    gate = Gate(config["width"])
    gate.norm.weight = nn.Parameter(weights["norm.weight"])
    gate.norm.bias = nn.Parameter(weights["norm.bias"])
    gate.up.weight = nn.Parameter(weights["up.weight"])
    return gate(x)
