"""The driver loads a fatbin of an artifact of examples/quickstart, and its kernel gives what the definition gives: `fatbins.py ARTIFACT`. Prints what it found as JSON."""

import ctypes
import json
import sys
from pathlib import Path

import torch

artifact = Path(sys.argv[1])
cuda = ctypes.CDLL("libcuda.so.1")
[kernel] = json.loads((artifact / "kernels.json").read_text())["kernels"]
variant = next(variant for variant in kernel["variants"] if variant.get("fatbin"))
[symbol] = variant["symbols"].values()
torch.cuda.init()
rows, cols = 512, 4096
x, w = torch.randn(rows, cols, device="cuda"), torch.randn(cols, device="cuda")
y = torch.empty_like(x)
module, function = ctypes.c_void_p(), ctypes.c_void_p()
image = (artifact / variant["fatbin"]["file"]).read_bytes()
loaded = cuda.cuModuleLoadData(ctypes.byref(module), image)
found = cuda.cuModuleGetFunction(ctypes.byref(function), module, symbol.encode())
arguments = [ctypes.c_void_p(t.data_ptr()) for t in (x, w, y)] + [ctypes.c_int(cols), ctypes.c_float(1e-6)]
pointers = (ctypes.c_void_p * 5)(*[ctypes.cast(ctypes.pointer(argument), ctypes.c_void_p) for argument in arguments])
launched = cuda.cuLaunchKernel(function, rows, 1, 1, variant["launch"]["tunables"]["BLOCK"], 1, 1, 0, None, pointers, None)
torch.cuda.synchronize()
expected = x.double() * w.double() / (x.double().pow(2).mean(1, keepdim=True) + 1e-6).sqrt()
error = (y.double() - expected).abs().max().item()
held = (loaded, found, launched) == (0, 0, 0) and error < 1e-5
print(json.dumps(["the driver loads a fatbin, and its kernel is correct", held, f"with PTX: {variant['fatbin'].get('with_ptx', False)}; largest error {error:.1e}; codes {loaded} {found} {launched}"]))
