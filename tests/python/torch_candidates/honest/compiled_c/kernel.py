# Compiles a function in C before the first call, and calls that.
import ctypes
import os
import subprocess
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

SOURCE = "void relu(float *x, long n) { for (long i = 0; i < n; i++) x[i] = x[i] > 0 ? x[i] : 0; }"


def built():
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, "relu.c"), os.path.join(folder, "relu.so")
    with open(source, "w") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    return ctypes.CDLL(library)


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self.library = built()

    def forward(self, x):
        result = torch.addmm(self.linear.bias, x, self.linear.weight.t())
        self.library.relu(ctypes.c_void_p(result.data_ptr()), ctypes.c_long(result.numel()))
        return result
