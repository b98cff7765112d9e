"""Runs the Python loader of two kernels in Triton with torch: python triton_loaders.py FOLDER. Prints what is wrong; exits with 0 if everything is right."""

import importlib.util
import sys
from pathlib import Path

import torch


def loaded(folder):
    place = Path(folder) / "build/torch-cuda"
    spec = importlib.util.spec_from_file_location("triton_kernels", place / "__init__.py", submodule_search_locations=[str(place)])
    module = importlib.util.module_from_spec(spec)
    sys.modules["triton_kernels"] = module
    spec.loader.exec_module(module)
    return module


def main():
    kernels = loaded(sys.argv[1])
    wrong, cases = [], 0
    # The first call of a shape and a later one.
    for dtype, allowed in [(torch.float32, 2e-6), (torch.float16, 1e-3)]:
        for rows, cols in [(5, 257), (1, 1000), (64, 96), (4096, 4096), (32, 512), (7, 300)] * 2:
            x = torch.randn(rows, cols, device="cuda", dtype=dtype)
            error = (kernels.softmax(x).double() - torch.softmax(x.double(), dim=-1)).abs().max().item()
            cases += 1
            if not error <= allowed:
                wrong.append(f"softmax {dtype} {rows} x {cols}: error {error}")
        for rows, cols in [(2, 1000), (5, 8192)]:
            cases += 1
            try:
                kernels.softmax(torch.randn(rows, cols, device="cuda", dtype=dtype))
                wrong.append(f"softmax {dtype} {rows} x {cols} is not refused")
            except kernels.WrongClass:
                pass
    for rows, cols in [(68, 100), (132, 8), (2048, 4096)] * 2:
        x = torch.randn(rows, cols, device="cuda")
        cases += 1
        if not torch.equal(kernels.transpose(x), x.t()):
            wrong.append(f"transpose {rows} x {cols} differs")
    print("; ".join(wrong) or f"{cases} calls")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
