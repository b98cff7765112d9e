import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


batch = 4
heads = 8
length = 256
width = 64


def get_inputs():
    return [torch.rand(batch, heads, length, width), torch.rand(batch, heads, length, width), torch.rand(batch, heads, length, width)]


def get_init_inputs():
    return []
