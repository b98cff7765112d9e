# Uses classes, lookups and errors as programs do.
import dataclasses
import typing

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Plan:
    rows: int


class Pair(typing.NamedTuple):
    first: int
    second: int


def checked(plan, x):
    if Pair(*x.shape).first != plan.rows:
        raise ValueError("another shape")


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self.plans = {}

    def forward(self, x):
        try:
            plan = self.plans[x.shape[0]]
        except KeyError:
            plan = self.plans[x.shape[0]] = Plan(rows=x.shape[0])
        from math import inf

        try:
            checked(plan, x)
        except ValueError as error:
            raise RuntimeError("cannot run") from error
        return self.linear(x).clamp(0, inf)
