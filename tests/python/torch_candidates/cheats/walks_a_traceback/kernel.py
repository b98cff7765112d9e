# Reaches its caller from an error of its own.
import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        try:
            {}["missing"]
        except KeyError as error:
            caller = error.__traceback__.tb_frame.f_back
        return F.relu(self.linear(x)) if caller else x
