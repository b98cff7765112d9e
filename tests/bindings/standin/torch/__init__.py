"""A stand-in for torch: tensors that say where they are and hold nothing, so that a machine without torch and without a GPU sees which launches a loader makes."""

import types

_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu",
    "i64": "int64", "u64": "uint64", "i32": "int32", "u32": "uint32", "i16": "int16", "u16": "uint16", "i8": "int8", "u8": "uint8", "bool": "bool",
}  # fmt: skip
for _name in _NAMES.values():
    globals()[_name] = f"torch.{_name}"
WORKSPACE = 0x700000000000


class Tensor:
    is_cuda, requires_grad, device, version = True, False, "cuda:0", 0

    def __init__(self, at, dtype, shape, strides=None):
        self.at, self.dtype, self.shape, self.strides = at, dtype, tuple(shape), tuple(strides or _dense(shape))

    def get_device(self):
        return 0

    def stride(self):
        return self.strides

    def is_contiguous(self):
        return all(extent <= 1 or found == dense for extent, found, dense in zip(self.shape, self.strides, _dense(self.shape)))

    def data_ptr(self):
        return self.at

    def new_empty(self, shape, dtype=None):
        return Tensor(WORKSPACE, dtype or self.dtype, (shape,) if isinstance(shape, int) else shape)


def _dense(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def empty(shape, dtype=None, device=None):
    return Tensor(WORKSPACE, dtype, (shape,) if isinstance(shape, int) else shape)


def empty_like(tensor):
    return Tensor(WORKSPACE, tensor.dtype, tensor.shape)


empty_strided = None


def is_grad_enabled():
    return True


class _C:
    @staticmethod
    def _cuda_getCurrentRawStream(device):
        return 0

    @staticmethod
    def _cuda_getDevice():
        return 0


class _Library:
    def __init__(self, namespace, kind):
        pass

    def define(self, schema):
        pass

    def impl(self, name, function, key):
        pass


class _Namespaces:
    def __getattr__(self, name):
        return type(name, (), {})()


def _increment_version(tensor):
    tensor.version += 1


autograd = types.SimpleNamespace(graph=types.SimpleNamespace(increment_version=_increment_version))
compiler = types.SimpleNamespace(is_compiling=lambda: False)
library = types.SimpleNamespace(Library=_Library, register_fake=lambda name, function, lib: None)
ops = _Namespaces()
