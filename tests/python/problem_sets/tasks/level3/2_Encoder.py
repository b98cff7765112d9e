import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, length, width, heads):
        super().__init__()
        self.places = nn.Parameter(torch.zeros(1, length, width))
        self.register_buffer("mask", torch.tril(torch.ones(length, length)))
        self.heads = heads
        self.join = nn.Linear(width, 3 * width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.join(self.norm(x + self.places)).split(w, dim=2)
        q, k, v = [one.view(b, n, self.heads, w // self.heads).transpose(1, 2) for one in (q, k, v)]
        score = q @ k.transpose(2, 3) / (w // self.heads) ** 0.5
        score = score.masked_fill(self.mask == 0, float("-inf"))
        return x + self.out((torch.softmax(score, dim=3) @ v).transpose(1, 2).reshape(b, n, w))


batch = 2
length = 32
width = 64
heads = 4


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [length, width, heads]
