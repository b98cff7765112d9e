"""Compares the functions of libdevice that kforge computes on the processor with those of a device, by the Triton of this Python.

    compare.py FOLDER

FOLDER has `kforge_libdevice.py`. Prints JSON: how many functions were compared at how many values each, the most that one differs, and those that differ by more
than is allowed.
"""

import collections
import importlib.util
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import triton
import triton.language.extra.cuda.libdevice as libdevice

sys.path.insert(0, sys.argv[1])
from kforge_libdevice import FUNCTIONS  # noqa: E402

VALUES, BLOCK = 4096, 256
TYPES = {"fp32": np.float32, "fp64": np.float64, "int32": np.int32, "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64, "int1": np.int32}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, 3e9, -3e9, 1e20]
# In units of the last place. These lose digits near zeros, in tails, and over many products, on one side or on both.
ALLOWED = {"__nv_lgamma": 1 << 15, "__nv_lgammaf": 1 << 9, "__nv_normcdf": 1 << 11, "__nv_powi": 1 << 9, "__nv_powif": 1 << 9}
USUAL = 16
# Approximations of a device: the largest difference, or the largest relative one where results are above 1. They hold for angles of at most half a turn.
FAST, FAST_ERROR = "__nv_fast_", 1e-3


def functions():
    """The symbols by the types of their arguments and of their result, each with the name in Triton."""
    found = collections.defaultdict(list)
    text = Path(libdevice.__file__).read_text()
    for name, body in re.findall(r"@core\.extern\ndef (\w+)\((?:.|\n)*?extern_elementwise\(((?:.|\n)*?)_semantic=_semantic\)", text):
        forms = re.findall(r'\(((?:core\.dtype\("\w+"\),?\s*)+)\)\s*:\s*\("(\w+)",\s*core\.dtype\("(\w+)"\)\)', body)
        for arguments, symbol, result in forms:
            if symbol in FUNCTIONS:
                found[tuple(re.findall(r'"(\w+)"', arguments)), result].append((name, symbol))
    return found


def values(rng, dtype, at, fast):
    """Values of a type for the argument at this position: special ones in all pairs, small and large ones."""
    if dtype.startswith("fp"):
        if fast:
            return rng.uniform(-np.pi, np.pi, VALUES).astype(TYPES[dtype])
        quarter = VALUES // 4
        sizes = np.exp(rng.normal(size=quarter) * 8) * rng.choice([-1, 1], quarter)
        made = [rng.normal(size=quarter) * 3, rng.uniform(-1, 1, quarter), sizes, rng.integers(-40, 40, quarter) / 2]
        made = rng.permutation(np.concatenate(made))
        pairs = len(SPECIAL) ** 2
        made[:pairs] = np.repeat(SPECIAL, len(SPECIAL)) if at == 0 else np.tile(SPECIAL, len(SPECIAL))
        return made.astype(TYPES[dtype])
    limits = np.iinfo(TYPES[dtype])
    anywhere = rng.integers(limits.min, limits.max, VALUES, dtype=TYPES[dtype], endpoint=True)
    made = np.where(rng.random(VALUES) < 0.5, anywhere, rng.integers(0, 60, VALUES).astype(TYPES[dtype]))
    made[:4] = [limits.min, limits.max, 0, 1]
    return made


def kernels(groups):
    """A kernel for each group, which computes all of its functions."""
    lines = ["import triton", "import triton.language as tl", "from triton.language.extra.cuda import libdevice"]
    for at, ((arguments, _), members) in enumerate(groups):
        names = [f"p{i}" for i in range(len(arguments))]
        lines += ["@triton.jit", f"def k{at}({', '.join(names)}, out, VALUES: tl.constexpr, BLOCK: tl.constexpr):"]
        lines += ["    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"]
        lines += [f"    a{i} = tl.load(p{i} + at)" for i in range(len(arguments))]
        given = ", ".join(f"a{i}" for i in range(len(arguments)))
        lines += [f"    tl.store(out + {j} * VALUES + at, libdevice.{name}({given}))" for j, (name, _) in enumerate(members)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.py"
        path.write_text("\n".join(lines) + "\n")
        spec = importlib.util.spec_from_file_location("kernels", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def difference(symbol, found, device):
    """The largest difference: in units of the last place, or as `FAST_ERROR` says. Results that the device does not represent as normal numbers are left out."""
    if found.dtype.kind != "f":
        return np.inf if (found != device).any() else 0.0
    with np.errstate(all="ignore"):
        subnormal = (np.abs(device) < np.finfo(device.dtype).tiny) & (np.abs(found) < 2 * np.finfo(device.dtype).tiny)
        same = (found == device) | (np.isnan(found) & np.isnan(device)) | subnormal
        apart = np.abs(found.astype(np.float64) - device.astype(np.float64))
        unit = np.maximum(np.abs(device), 1.0) if symbol.startswith(FAST) else np.spacing(np.abs(device))
        apart = np.where(same, 0.0, apart / unit.astype(np.float64))
    return float(np.where(np.isnan(apart), np.inf, apart).max())


def main():
    rng = np.random.default_rng(1)
    split = collections.defaultdict(list)
    for (arguments, result), members in functions().items():
        for name, symbol in members:
            split[arguments, result, symbol.startswith(FAST)].append((name, symbol))
    groups = [((arguments, result), members) for (arguments, result, _), members in split.items()]
    compared, worst, wrong = 0, 0.0, {}
    for module in kernels(groups):
        for at, ((arguments, result), members) in enumerate(groups):
            fast = members[0][1].startswith(FAST)
            given = [values(rng, dtype, i, fast) for i, dtype in enumerate(arguments)]
            if arguments in (("fp32", "int32"), ("fp64", "int32")):
                given[1] = rng.integers(-300, 300, VALUES).astype(np.int32)
            dtype = TYPES[result]
            out = torch.zeros(len(members) * VALUES, dtype=getattr(torch, np.dtype(dtype).name), device="cuda")
            getattr(module, f"k{at}")[(VALUES // BLOCK,)](*[torch.from_numpy(one).cuda() for one in given], out, VALUES, BLOCK)
            for (_, symbol), device in zip(members, out.cpu().numpy().reshape(-1, VALUES)):
                found = np.asarray(FUNCTIONS[symbol](*given))
                if found.dtype == bool:
                    found, device = found.astype(np.int32), (device != 0).astype(np.int32)
                apart = difference(symbol, found.astype(dtype), device)
                allowed = FAST_ERROR if symbol.startswith(FAST) else ALLOWED.get(symbol, USUAL)
                compared += 1
                if apart > allowed:
                    wrong[symbol] = apart
                elif symbol not in ALLOWED and not symbol.startswith(FAST):
                    worst = max(worst, apart)
    print(json.dumps({"triton": triton.__version__, "functions": compared, "values": VALUES, "worst": worst, "wrong": wrong}))


main()
