"""Runs the kernels of examples/bindings/kernels through their Python loader with torch, compares results with torch's own, and times calls beside torch.add.

    kforge bindings loaders-1.0.0.tar --language python --output loaders-python
    python examples/bindings/python/main.py loaders-python

Needs torch with a GPU. With Hugging Face `kernels` installed, `kernels` loads the folder, else Python does. Without torch or a GPU it checks that a call says so.
"""

import importlib.util
import sys
import time
from pathlib import Path


def load(folder):
    """The package of a folder, by `kernels` where that is installed."""
    try:
        from kernels import get_local_kernel
    except ImportError:
        variant = Path(folder) / "build/torch-cuda"
        spec = importlib.util.spec_from_file_location("loaders", variant / "__init__.py", submodule_search_locations=[str(variant)])
        module = importlib.util.module_from_spec(spec)
        sys.modules["loaders"] = module
        spec.loader.exec_module(module)
        return module, "Python"
    try:
        return get_local_kernel(Path(folder)), "kernels"
    except Exception:  # Without CUDA, `kernels` takes only the folder of the variant.
        return get_local_kernel(Path(folder) / "build/torch-cuda"), "kernels, by its variant"


def micros(call, times=1000):
    """Microseconds of host time a call: the best of five rounds, so that other work of the machine does not count."""
    import torch

    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, (time.perf_counter() - start) / times * 1e6)
        torch.cuda.synchronize()
    return best


def main():
    loaders, by = load(sys.argv[1])
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        try:
            loaders.rms_norm(torch.zeros(1, 1) if torch else 3, 4)
        except loaders.Error as error:
            print(f"no GPU here; loaded by {by}; a call says {type(error).__name__}: {error}")
            return 0
        return 1
    torch.manual_seed(0)
    cuda = {"device": "cuda"}
    x, w = torch.randn(37, 4099, **cuda), torch.randn(4099, **cuda)
    a, b = torch.randn(200, 328, dtype=torch.float16, **cuda), torch.randn(328, 136, dtype=torch.float16, **cuda)
    c, d = torch.randn(32, 2000, **cuda), torch.randn(2000, 40, **cuda)
    checks = [
        ("rms_norm", loaders.rms_norm, (x, w), (x.double() * torch.rsqrt(x.double().pow(2).mean(1, keepdim=True) + 1e-6) * w.double()), 1e-5),
        ("matmul", loaders.matmul, (a, b), a.double() @ b.double(), 1e-3),
        ("split_k", loaders.split_k, (c, d), c.double() @ d.double(), 1e-3),
    ]
    correct = True
    for name, function, arguments, expected, limit in checks:
        operator = getattr(loaders.ops, name)
        worst = max((each(*arguments).double() - expected).abs().max().item() for each in (function, operator))
        correct &= worst <= limit
        print(f"{name:10} worst error {worst:.2e}, {micros(lambda: function(*arguments)):.2f} us of host time a call, {micros(lambda: operator(*arguments)):.2f} through the operator")
    e = torch.randn(16, 16, **cuda)
    print(f"{'torch.add':10} {micros(lambda: torch.add(e, e)):.2f} us, torch.mm {micros(lambda: torch.mm(e, e)):.2f} us")
    print(f"loaded by {by}; {'correct' if correct else 'WRONG'}")
    return not correct


if __name__ == "__main__":
    sys.exit(main())
