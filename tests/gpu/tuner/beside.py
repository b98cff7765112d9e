"""Kernel Tuner on the space of kernel.toml beside this file: every variant, each result checked. Prints one line of JSON.

Needs kernel_tuner 1.5, cupy and numpy: `pip install kernel-tuner==1.5.0 cupy-cuda13x numpy`.
"""

import json
import sys
import time
import tomllib
from pathlib import Path

import cupy
import kernel_tuner
import numpy as np

properties = cupy.cuda.runtime.getDeviceProperties


def whole(device):
    """A device's properties with all sixteen bytes of its id: CuPy ends it at the first that is zero, and Kernel Tuner takes sixteen or none."""
    said = properties(device)
    return said | {"uuid": said["uuid"].ljust(16, b"\0")[:16]}


cupy.cuda.runtime.getDeviceProperties = whole

manifest = tomllib.loads(Path(sys.argv[1]).read_text())
source = (Path(__file__).parent / "mm.cu").read_text()
n = manifest["operator"]["product"]["shapes"]["usual"]["n"]
space = dict(manifest["kernel"]["mm"]["tune"])
where = space.pop("where")
random = np.random.default_rng(0)
a, b = (random.standard_normal((n, n), np.float32) for _ in range(2))
answer = [None, None, a @ b, None]
start = time.time()
results, _ = kernel_tuner.tune_kernel(
    "mm", source, (n, n), [a, b, np.zeros((n, n), np.float32), np.int32(n)], space, grid_div_x=["TX", "RX"], grid_div_y=["TY", "RY"],
    block_size_names=["TX", "TY", "TZ"], restrictions=where, answer=answer, atol=1e-1, lang="CUPY", verbose=False, quiet=True,
)
seconds = time.time() - start
good = [result for result in results if isinstance(result.get("time"), float)]
best = min(good, key=lambda result: result["time"])
print(json.dumps({
    "tool": f"Kernel Tuner {kernel_tuner.__version__}",
    "variants": len(results),
    "right": len(good),
    "seconds": seconds,
    "best_ms": best["time"],
    "best": ",".join(f"{name}={best[name]}" for name in space),
    "right_variants": [",".join(f"{name}={result[name]}" for name in space) for result in good],
}))
