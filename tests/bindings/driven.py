"""Calls a Python package of loaders with arrays that say through DLPack where they are: `driven.py FOLDER CALLS`, where CALLS is JSON.

Prints what a call raises. With a third argument, a folder with a stand-in for torch, the arrays are its tensors.
"""

import ctypes
import importlib.util
import json
import sys

sys.dont_write_bytecode = True


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device", ctypes.c_int), ("ndim", ctypes.c_int), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
CODES = {
    "f64": (2, 64), "f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "f8e4m3": (10, 8), "f8e5m2": (12, 8), "f8e8m0": (14, 8), "f4e2m1x2": (1, 8),
    "i64": (0, 64), "u64": (1, 64), "i32": (0, 32), "u32": (1, 32), "i16": (0, 16), "u16": (1, 16), "i8": (0, 8), "u8": (1, 8), "i4x2": (1, 8), "bool": (6, 8),
}


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Array:
    def __init__(self, at, dtype, shape, strides, device=2):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.tensor = Tensor(at, device, 0, len(shape), *CODES[dtype], 1, self.shape, self.strides, 0)

    def __dlpack_device__(self):
        return (self.tensor.device_type, 0)

    def __dlpack__(self, stream=None):
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


class Newer(Array):
    """An array of DLPack 1: `protocol` says what is special about it."""

    def __init__(self, at, dtype, shape, strides, device, protocol):
        super().__init__(at, dtype, shape, strides, device)
        if protocol == "lanes":
            self.tensor.bits, self.tensor.lanes = 16, 2
        self.versioned = Versioned(2 if protocol == "later" else 1, 0, None, None, int(protocol == "read-only"), self.tensor)

    def __dlpack__(self, stream=None, max_version=None):
        assert max_version == (1, 0)
        return new(ctypes.addressof(self.versioned), b"dltensor_versioned", None)


folder, calls = sys.argv[1:3]
torch = None
if sys.argv[3:]:
    sys.path.insert(0, sys.argv[3])
    import torch


def array(at, dtype, shape, strides, *device):
    if len(device) == 2:
        return Newer(at, dtype, shape, strides, *device)
    return torch.Tensor(at, getattr(torch, torch._NAMES[dtype]), shape, strides) if torch else Array(at, dtype, shape, strides, *device)


spec = importlib.util.spec_from_file_location("loader", folder + "/__init__.py", submodule_search_locations=[folder])
loader = importlib.util.module_from_spec(spec)
sys.modules["loader"] = loader
spec.loader.exec_module(loader)
for call in json.load(open(calls)):
    arrays = [array(*each) for each in call["inputs"]]
    out = [array(*each) for each in call["outputs"]]
    for one in out if call.get("out_requires_grad") else []:
        one.requires_grad = True
    stream = {} if torch else {"stream": call.get("stream", 0)}
    for _ in range(call.get("times", 1)):
        try:
            getattr(loader, call["kernel"])(*arrays, *call["dims"], **call["params"], **({"out": out} if out else {}), **stream)
        except loader.Error as error:
            print(type(error).__name__, error)
        else:
            if call.get("versions"):
                print("versions", [one.version for one in arrays], [one.version for one in out])
