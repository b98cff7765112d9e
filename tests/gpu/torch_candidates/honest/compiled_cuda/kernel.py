# Compiles a kernel in CUDA C++ before the first call, and launches it on the current stream.
import ctypes
import os
import subprocess
import tempfile

import torch
import torch.nn.functional as F
from torch import nn


SOURCE = """
__global__ void kernel(float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = fmaxf(y[i], 0.0f); }
extern "C" void relu(float *y, int n, cudaStream_t stream) { kernel<<<(n + 127) / 128, 128, 0, stream>>>(y, n); }
"""


def built():
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, "relu.cu"), os.path.join(folder, "relu.so")
    with open(source, "w") as file:
        file.write(SOURCE)
    subprocess.run(["/usr/local/cuda/bin/nvcc", "-arch=sm_%d%d" % torch.cuda.get_device_capability(), "-shared", "-Xcompiler", "-fPIC", source, "-o", library], check=True)
    return ctypes.CDLL(library)


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self.library = built()

    def forward(self, x):
        result = torch.addmm(self.linear.bias, x, self.linear.weight.t())
        stream = torch.cuda.current_stream().cuda_stream
        self.library.relu(ctypes.c_void_p(result.data_ptr()), ctypes.c_int(result.numel()), ctypes.c_void_p(stream))
        return result
