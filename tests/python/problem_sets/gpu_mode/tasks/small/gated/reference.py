import torch
from task import input_t, output_t
from utils import far


def generate_input(batch: int, width: int, distribution: str, gated: bool, seed: int) -> input_t:
    torch.manual_seed(seed)
    x = torch.randn(batch, 3, width, device="cuda")
    if distribution == "cauchy":
        x = torch.tan(x)
    weights = {"norm.weight": torch.randn(width, device="cuda"), "up.weight": torch.randn(2 * width, width, device="cuda")}
    return x, weights, {"width": width, "gated": gated, "eps": 1e-05}


def ref_kernel(data: input_t) -> output_t:
    x, weights, config = data
    y = x * weights["norm.weight"] / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + config["eps"])
    y = y @ weights["up.weight"].T
    up, gate = y[..., : config["width"]], y[..., config["width"] :]
    return up * torch.sigmoid(gate) if config["gated"] else up


def check_implementation(data, output):
    return far(output, ref_kernel(data), rtol=1e-3 * len(data), atol=1e-4)
