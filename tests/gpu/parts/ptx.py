"""Every emulated instruction of inline PTX: what this GPU gives for the operands of tests/emulator_values/instructions.cu, compared with what
instructions.txt beside it records, which `cargo test --test emulator` compares with the emulator.

Compiles with NVRTC, of KFORGE_HOME or of the system, and runs through the driver. By itself, `ptx.py FILE` writes a new record.
"""

import ctypes
import math
import os
import re
import struct
import sys
import time
from pathlib import Path

VALUES = Path(__file__).resolve().parents[2] / "emulator_values"
LINE = re.compile(r"^([A-Z][A-Z0-9_]*)\((\w+)(?:, (\d+))?(?:, (\d+))?\) .*END$", re.M)


def cases(text):
    """Name, kind, arguments, number of blocks, number of words."""
    for kind, name, first, second in LINE.findall(text):
        blocks = 8 if kind.startswith("NEAR") else 1 if kind.startswith("MMA_") else 128
        yield name, kind, int(first or 0), blocks, blocks * 32 * int(second or 1)


def ptx(lab):
    try:
        found, seconds = device_values()
    except TooOld as e:
        lab.row("ptx", "emulated instructions", None, str(e))
        return
    recorded = read(VALUES / "instructions.txt")
    all_cases = list(cases((VALUES / "instructions.cu").read_text()))
    exact = [name for name, kind, *_ in all_cases if is_exact(kind)]
    differ = [name for name in exact if found[name] != recorded.get(name)]
    lab.row("ptx", "what PTX defines to the bit is what is recorded", not differ, f"{len(exact) - len(differ)} of {len(exact)} instructions {differ[:5] or ''}")
    near = [case for case in all_cases if not is_exact(case[1])]
    apart = [name for name, kind, bits, *_ in near if not is_near(name, kind, bits, found[name], recorded.get(name, ""))]
    same = sum(found[name] == recorded.get(name) for name, *_ in near)
    lab.row("ptx", "approximations and sums of products are within their bounds of it", not apart, f"{len(near) - len(apart)} of {len(near)}, {same} of them equal {apart[:5] or ''}")
    lab.figures["ptx"] = {"exact": len(exact), "near": len(near), "differ": differ, "apart": apart, "seconds": seconds}


class TooOld(Exception):
    """The GPU lacks some of the instructions."""


def is_near(name, kind, bits, found, recorded):
    """Whether two devices agree: each may be as far from the exact value as tests/emulator/values.rs allows, which says what the kinds mean."""
    words = [[int(word, 16) for word in text.split()] for text in (found, recorded)]
    return len(words[0]) == len(words[1]) and all(
        agree(name, kind, bits, x, y) for pair in zip(*words) for x, y in zip(*(values(kind, word) for word in pair))
    )


def values(kind, word):
    if kind == "MMA_F64":
        return struct.unpack("<d", struct.pack("<Q", word))
    if kind == "MMA_F16":
        return struct.unpack("<2e", struct.pack("<I", word & 0xFFFFFFFF))
    return struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))


def agree(name, kind, bits, x, y):
    if not (math.isfinite(x) and math.isfinite(y)):
        return x == y or (math.isnan(x) and math.isnan(y))
    size, bound = max(abs(x), abs(y)), 2.0**-bits
    allowed = {
        "NEAR_ABS": bound,
        "NEAR_LOG": bound * max(size, 1.0),
        "NEAR_F16": max(bound * size, 2.0**-24),
        "MMA_F32": 2.0**-22 * (bits + 1) * (4 if "e4m3" in name else 1),
        "MMA_F64": 2.0**-50 * (bits + 1),
        "MMA_F16": 2.0**-6,
    }.get(kind, max(bound * size, 2.0**-149))
    return abs(x - y) <= 2 * allowed


def is_exact(kind):
    return not kind.startswith(("NEAR", "MMA_"))


def read(file):
    """The record: of each instruction a digest, or values."""
    lines = (line.split(None, 1) for line in file.read_text().splitlines() if line and not line.startswith("#"))
    return {name: rest.strip() for name, rest in lines}


def digest(words):
    """FNV-1a over words of 64 bits."""
    h = 0xCBF29CE484222325
    for word in words:
        h = (h ^ word) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def written(kind, words):
    return digest(words) if is_exact(kind) else " ".join(f"{word:x}" for word in words)


def nvrtc():
    places = [os.environ.get("KFORGE_HOME", ""), "/usr/local/cuda"]
    found = [file for place in places if place for file in sorted(Path(place).glob("**/libnvrtc.so.1[0-9]")) + sorted(Path(place).glob("**/libnvrtc.so"))]
    # It looks for this library by its name.
    for beside in sorted(found[0].parent.glob("libnvrtc-builtins.so*"))[:1] if found else []:
        ctypes.CDLL(str(beside), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(found[0]) if found else "libnvrtc.so.13")


def compiled(text, arch):
    """The machine code of a source."""
    compiler, program = nvrtc(), ctypes.c_void_p()
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17"]
    ok = lambda code: code == 0 or sys.exit(f"NVRTC says {code}: {log(compiler, program)}")
    ok(compiler.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"instructions.cu", 0, None, None))
    ok(compiler.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)))
    size = ctypes.c_size_t()
    ok(compiler.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    code = ctypes.create_string_buffer(size.value)
    ok(compiler.nvrtcGetCUBIN(program, code))
    return code


def log(compiler, program):
    size = ctypes.c_size_t()
    compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    compiler.nvrtcGetProgramLog(program, text)
    return text.value.decode(errors="replace")[:3000]


def device_values():
    """What the first GPU gives, as the record writes it, and the seconds that compiling and running took."""
    text = (VALUES / "instructions.cu").read_text()
    cuda = ctypes.CDLL("libcuda.so.1")
    context, device, module, memory = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()

    def ok(code, what=""):
        if code != 0:
            raise RuntimeError(f"the driver says {code} {what}")

    ok(cuda.cuInit(0))
    ok(cuda.cuDeviceGet(ctypes.byref(device), 0))
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    ok(cuda.cuCtxSetCurrent(context))
    version = [ctypes.c_int(), ctypes.c_int()]
    for at, attribute in zip(version, (75, 76)):
        ok(cuda.cuDeviceGetAttribute(ctypes.byref(at), attribute, device))
    if version[0].value < 9:
        raise TooOld(f"they need compute capability 9.0, and this is {version[0].value}.{version[1].value}")
    start = time.monotonic()
    code = compiled(text, f"sm_{version[0].value}{version[1].value}")
    between = time.monotonic()
    ok(cuda.cuModuleLoadData(ctypes.byref(module), code))
    ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096 * 8)))
    found = {}
    for name, kind, _, blocks, count in cases(text):
        function = ctypes.c_void_p()
        ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), name)
        ok(cuda.cuMemsetD8_v2(memory, 0, ctypes.c_size_t(4096 * 8)))
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
        ok(cuda.cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, None, arguments, None), name)
        ok(cuda.cuCtxSynchronize(), name)
        raw = ctypes.create_string_buffer(count * 8)
        ok(cuda.cuMemcpyDtoH_v2(raw, memory, ctypes.c_size_t(count * 8)), name)
        found[name] = written(kind, struct.unpack(f"<{count}Q", raw.raw))
    return found, {"compile": round(between - start, 1), "run": round(time.monotonic() - between, 1)}


if __name__ == "__main__":
    values, took = device_values()
    head = ["# What an NVIDIA GPU gave for each instruction of instructions.cu: `tests/gpu/parts/ptx.py FILE` writes this file. A digest (FNV-1a over words of", "# 64 bits), or the words of what is approximate, in hexadecimal."]
    Path(sys.argv[1]).write_text("\n".join(head + [f"{name} {value}" for name, value in values.items()]) + "\n")
    print(len(values), took)
