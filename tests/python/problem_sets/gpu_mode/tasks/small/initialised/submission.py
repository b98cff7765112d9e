import torch


def custom_kernel(data):
    x, weights, config = data
    x = torch.nn.functional.layer_norm(x, (config["width"],), weights["norm.weight"], weights["norm.bias"])
    return torch.sigmoid(x @ weights["up.weight"].T) * x
