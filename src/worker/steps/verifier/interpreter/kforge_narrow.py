"""Arithmetic of bf16 and fp8, which Triton's interpreter computes with the bits as integers; and what the interpreter does not have.

A value of bf16 or fp8 is kept as its bits. Operations on bf16 compute in float32, which is exact or rounded so that rounding once more gives the nearest
value, and round to nearest even. Values of fp8 are converted and multiplied only, as on devices. Anything else of these types is not emulated.
"""

import functools
import importlib
import inspect
import sys
import types

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter
from kforge_libdevice import FUNCTIONS, fused
from kforge_memory import BUFFER, NotEmulated, Wrong

Handle = interpreter.TensorHandle
Builder = interpreter.InterpreterBuilder

# Operations that move values and do not compute with them.
MOVES = {
    "addptr", "atomic_load", "atomic_store", "bitcast", "broadcast", "cat", "descriptor_gather", "descriptor_load", "descriptor_scatter",
    "descriptor_store", "expand_dims", "fabs", "gather", "int_to_ptr", "join", "load", "make_tensor_descriptor", "masked_load", "masked_store",
    "print", "ptr_to_int", "reshape", "select", "splat", "split", "store", "trans", "unsplat",
}
# Operations on bf16 whose result is rounded, and comparisons.
ROUNDED = {
    "clampf", "fadd", "fdiv", "fmul", "fneg", "frem", "fsub", "maximumf", "maxnumf", "minimumf", "minnumf", "precise_divf",
}
COMPARED = {f"fcmp{order}{relation}" for order in "OU" for relation in ("LT", "GT", "LE", "GE", "EQ", "NE")}
# Operations that are defined below.
OWN = {
    "atomic_cas", "atomic_rmw", "dot", "fma", "fp_ext", "fp_to_fp", "fp_to_si", "fp_to_ui", "fp_trunc", "int_cast", "si_to_fp", "ui_to_fp",
}

# Operations that follow the addresses of their first operand.
FOLLOWED = {"masked_load", "masked_store"}

FP8 = {"fp8e4nv": (4, 3, 7), "fp8e5": (5, 2, 15)}
OTHERS = ("fp8e4b8", "fp8e4b15", "fp8e5b16")


def table(exponent, mantissa, bias):
    """The values of all codes of a format of eight bits."""
    code = np.arange(256)
    sign, power, fraction = code >> 7, (code >> mantissa) & ((1 << exponent) - 1), code & ((1 << mantissa) - 1)
    value = np.where(power == 0, fraction * 2.0 ** (1 - bias - mantissa), (1 + fraction / (1 << mantissa)) * 2.0 ** (power - bias))
    if exponent == 5:
        top = power == 31
        value = np.where(top, np.where(fraction == 0, np.inf, np.nan), value)
    else:
        value = np.where((code & 0x7F) == 0x7F, np.nan, value)
    return np.where(sign == 1, -value, value).astype(np.float32)


TABLES = {name: table(*form) for name, form in FP8.items()}


def name_of(handle):
    """The format of a handle's values, if the interpreter keeps it as bits. What compares two tensors keeps their type, but holds truth values."""
    dtype = getattr(handle, "dtype", None)
    name = str(getattr(dtype, "scalar", dtype))
    if name == "bf16":
        return name if handle.data.dtype == np.uint16 else None
    return name if (name in FP8 or name in OTHERS) and handle.data.dtype == np.uint8 else None


def is_narrow(dtype):
    return str(dtype.scalar) == "bf16" or str(dtype.scalar) in FP8 or str(dtype.scalar) in OTHERS


def decode(data, name):
    """The values of bits, exactly."""
    if name == "bf16":
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if name not in TABLES:
        raise NotEmulated(f"values of {name}")
    return TABLES[name][data]


def floats(handle):
    name = name_of(handle)
    return handle.data if name is None else decode(handle.data, name)


def odd(data):
    """float64 as float32, rounded to odd: rounding once more is then rounding once."""
    data = np.asarray(data, dtype=np.float64)
    near = data.astype(np.float32)
    bits = near.view(np.uint32)
    back = near.astype(np.float64)
    bits = np.where(np.abs(back) > np.abs(data), bits - np.uint32(1), bits)
    return np.where((back != data) & ~np.isnan(data), bits | np.uint32(1), bits).view(np.float32)


def to_bf16(data, truncate=False):
    data = odd(data) if data.dtype == np.float64 else np.asarray(data, dtype=np.float32)
    bits = data.view(np.uint32)
    up = np.uint32(0) if truncate else np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return np.where(np.isnan(data), np.uint16(0x7FFF), ((bits + up) >> np.uint32(16)).astype(np.uint16))


def to_fp8(data, name):
    data = np.asarray(data, dtype=np.float64)
    codes = 0x7F if name == "fp8e4nv" else 0x7C
    values = TABLES[name][:codes].astype(np.float64)
    size = np.where(np.isnan(data), 0.0, np.abs(data))
    if (size >= values[-1] + (values[-1] - values[-2]) / 2).any():
        # Architectures differ: some saturate.
        raise NotEmulated(f"a conversion to {name} that overflows")
    high = np.minimum(np.searchsorted(values, size), codes - 1)
    low = np.maximum(high - 1, 0)
    below, above = size - values[low], values[high] - size
    code = np.where((below < above) | ((below == above) & (low % 2 == 0)), low, high)
    code = np.where(size >= values[-1], codes - 1, code)
    return np.where(np.isnan(data), 0x7F, code | np.where(np.signbit(data), 0x80, 0)).astype(np.uint8)


def encode(data, name, truncate=False):
    if name == "bf16":
        return to_bf16(data, truncate)
    if name not in TABLES or truncate:
        raise NotEmulated(f"a conversion to {name}" + (" that rounds to zero" if truncate else ""))
    return to_fp8(data, name)


def bf16(data):
    return Handle(encode(data, "bf16"), tl.bfloat16)


# Conversions.


def cast(self, source, to):
    """Conversions that round to nearest even."""
    data, scalar = floats(source), to.scalar
    if is_narrow(scalar):
        # Integers are converted through float32, as on devices.
        data = data if data.dtype.kind == "f" else data.astype(np.float32)
        return Handle(encode(data, str(scalar)), scalar)
    return Handle(data.astype(interpreter._get_np_dtype(to)), scalar)


def fp_to_fp(self, source, to, rounding):
    if rounding in (None, interpreter._ir.ROUNDING_MODE.RTNE):
        return cast(self, source, to)
    data, scalar = floats(source), to.scalar
    if is_narrow(scalar):
        return Handle(encode(data, str(scalar), truncate=True), scalar)
    if scalar != tl.float16 or data.dtype not in (np.float16, np.float32):
        raise NotEmulated(f"a conversion from {source.dtype.scalar} to {scalar} that rounds to zero")
    near = data.astype(np.float16)
    bits = near.view(np.uint16)
    away = np.abs(near.astype(np.float32)) > np.abs(data)
    away &= np.isfinite(data)
    return Handle(np.where(away, bits - np.uint16(1), bits).view(np.float16), scalar)


# Arithmetic.


def fma(real):
    def create_fma(self, x, y, z):
        if name_of(x) is None:
            return real(self, x, y, z)
        return bf16(fused(*(floats(handle).astype(np.float64) for handle in (x, y, z))))

    return create_fma


def dot(self, a, b, d, input_precision, max_num_imprecise_acc):
    if name_of(d) is not None:
        raise NotEmulated(f"`tl.dot` with a sum of {name_of(d)}")
    # Of sums in f16, only the result is rounded.
    kind = np.float32 if d.data.dtype == np.float16 else d.data.dtype
    total = np.matmul(floats(a).astype(kind), floats(b).astype(kind)) + d.data.astype(kind)
    return Handle(total.astype(d.data.dtype), d.dtype.scalar)


def atomic_rmw(real):
    def create_atomic_rmw(self, operation, pointers, value, mask, sem, scope):
        name, interpreter._interpreter.memory.meant = name_of(value), pointers.attr.get(BUFFER)
        if name is None:
            return real(self, operation, pointers, value, mask, sem, scope)
        if name != "bf16" or operation != interpreter._ir.ATOMIC_OP.FADD:
            raise NotEmulated(f"an atomic operation on {name}")
        memory = interpreter._interpreter
        old = np.zeros_like(value.data)
        kind = Builder.ir_sem_to_interpreter_sem[sem]
        at, kept = np.broadcast_to(pointers.data, old.shape), np.broadcast_to(mask.data, old.shape)
        memory.memory.access("atomic operation", at, kept, 2, True, True, memory.semantics[kind])
        yes = np.ones((1,), dtype=bool)
        for lane in np.ndindex(old.shape):
            if kept[lane]:
                here = at[lane].reshape(1)
                before = memory.real.load(here, yes, np.zeros(1, dtype=np.uint16), np.dtype(np.uint16))
                after = to_bf16(decode(before, "bf16") + decode(value.data[lane].reshape(1), "bf16"))
                memory.real.store(here, after, yes)
                old[lane] = before[0]
        return Handle(old, value.dtype.scalar)

    return create_atomic_rmw


def atomic_cas(real):
    def create_atomic_cas(self, pointers, expected, value, sem, scope):
        interpreter._interpreter.memory.meant = pointers.attr.get(BUFFER)
        if name_of(value) is not None:
            raise NotEmulated(f"an atomic operation on {name_of(value)}")
        return real(self, pointers, expected, value, sem, scope)

    return create_atomic_cas


# Reductions and scans.


def halves(data, axis, name):
    """A sum in which each addition is rounded."""
    data = decode(np.moveaxis(data, axis, 0), name)
    while data.shape[0] > 1:
        half = (data.shape[0] + 1) // 2
        total = data[:half].copy()
        total[: data.shape[0] - half] += data[half:]
        data = decode(encode(total, name), name)
    return data[0]


def reduction(real):
    def apply(self, given):
        first = given[0] if isinstance(given, tuple) else given
        name = name_of(getattr(first, "handle", None))
        if name is None:
            return real(self, given)
        if name != "bf16":
            raise NotEmulated(f"a reduction of {name}")
        if self.combine_fn is tl.standard._sum_combine and not isinstance(given, tuple):
            data, axis = first.handle.data, self.axis
            shape = data.shape
            data, axis = (data.reshape(-1), 0) if axis is None else (data, axis)
            total = encode(halves(data, axis, name), name)
            if self.keep_dims:
                total = total.reshape([1] * len(shape)) if self.axis is None else np.expand_dims(total, axis)
            return self.to_tensor(total if total.shape else total.item(), tl.bfloat16)
        self.check_tensor(given if isinstance(given, tuple) else (given,))
        found = self.generic_reduce(given if isinstance(given, tuple) else (given,))
        return tuple(found) if isinstance(given, tuple) else found[0]

    return apply


def scan(real):
    def scanned(self, given):
        name = name_of(given.handle)
        if name is None:
            return real(self, given)
        if name != "bf16":
            raise NotEmulated(f"a scan of {name}")
        return self.generic_scan((given,))

    return scanned


# What the interpreter lacks.


def binary_op(real):
    """Truth values are integers of one bit in arithmetic."""

    def operation(self, left, right, function):
        if left.data.dtype == np.bool_ and right.data.dtype == np.bool_:
            found = function(left.data.astype(np.int8), right.data.astype(np.int8))
            return Handle((found & 1).astype(np.bool_), left.dtype.scalar)
        return real(self, left, right, function)

    return operation


def lacking(name):
    def missing(*args, **kwargs):
        raise NotEmulated(f"`{name}`")

    return missing


def extern(self, library, path, symbol, arguments, result, is_pure):
    if library or path or symbol not in FUNCTIONS:
        raise NotEmulated(f"`extern_elementwise`: `{symbol}`")
    found = FUNCTIONS[symbol](*(argument.data for argument in arguments))
    return Handle(found.astype(interpreter._get_np_dtype(result.scalar)), result.scalar)


def poll(self, pointers, expected, *rest):
    value = self.create_atomic_load(pointers, None, interpreter._ir.MEM_SEMANTIC.ACQUIRE, None)
    if not (value.data == expected.data).all():
        raise NotEmulated("a program that waits for another one")
    return Handle(np.ones(pointers.data.shape, dtype=bool), tl.int1)


def validate(self):
    """What a tensor descriptor needs. Some releases count strides in elements."""
    size = max(1, self.base.dtype.element_ty.primitive_bitwidth // 8)
    strides = [stride.data.item() for stride in self.strides]
    if self.base.data.item() % 16:
        raise Wrong("a tensor descriptor needs an address that is a multiple of 16")
    if any(stride * size % 16 for stride in strides[:-1]):
        raise Wrong("a tensor descriptor needs strides that are multiples of 16 bytes")
    if not strides or strides[-1] != 1 or len(strides) != self.ndim or len(self.block_shape) != self.ndim:
        raise Wrong("a tensor descriptor needs as many strides and extents as dimensions, and 1 as the last stride")


def padded(real):
    def create_descriptor_load(self, descriptor, *rest, **others):
        element = descriptor.base.dtype.element_ty
        if is_narrow(element) and descriptor.padding == interpreter._ir.PADDING_OPTION.PAD_NAN:
            raise NotEmulated(f"a descriptor of {element} that pads with NaN")
        return real(self, descriptor, *rest, **others)

    return create_descriptor_load


def volatile(real):
    """A load that does not race with other loads and stores of its kind, nor with atomic operations."""
    form = inspect.signature(real)

    @functools.wraps(real)
    def load(*args, **kwargs):
        memory = interpreter._interpreter.memory
        if not form.bind(*args, **kwargs).arguments.get("is_volatile") or memory.atomic:
            return real(*args, **kwargs)
        memory.atomic = "relaxed"
        try:
            return real(*args, **kwargs)
        finally:
            memory.atomic = False

    return load


def atomic(real):
    """An atomic load or store."""
    form = inspect.signature(real)

    @functools.wraps(real)
    def access(*args, **kwargs):
        watched, given = interpreter._interpreter, form.bind(*args, **kwargs).arguments
        if given.get("mask") is None:
            given["mask"] = Handle(np.ones_like(given["ptr"].data, dtype=bool), tl.int1)
        watched.memory.atomic = watched.semantics[Builder.ir_sem_to_interpreter_sem[given["sem"]]]
        try:
            return real(**given)
        finally:
            watched.memory.atomic = False

    return access


def buffer_of(operands):
    """The buffer into which all pointers among some operands point, if that is known."""
    pointers = [found for found in operands if isinstance(found, Handle) and isinstance(found.dtype.scalar, tl.pointer_type)]
    buffers = {found.attr.get(BUFFER) for found in pointers}
    return buffers.pop() if len(buffers) == 1 else None


def guarded(name, real):
    """The operation, if it is correct for its operands."""
    short = name[len("create_") :]

    @functools.wraps(real)
    def operation(self, *args, **kwargs):
        # A pointer stays one into the buffer from which it was made.
        whose = buffer_of(args)
        if whose is not None and short in FOLLOWED:
            interpreter._interpreter.memory.meant = whose
        if short in MOVES:
            found = real(self, *args, **kwargs)
            if whose is not None and isinstance(found, Handle) and isinstance(found.dtype.scalar, tl.pointer_type):
                found.attr[BUFFER] = whose
            return found
        narrow = [found for found in map(name_of, (*args, *kwargs.values())) if found is not None]
        if not narrow:
            return real(self, *args, **kwargs)
        if set(narrow) != {"bf16"} or short not in ROUNDED | COMPARED:
            raise NotEmulated(f"`{short}` of {narrow[0]}")
        widened = lambda arg: Handle(floats(arg), tl.float32) if name_of(arg) is not None else arg
        found = real(self, *map(widened, args), **{name: widened(arg) for name, arg in kwargs.items()})
        return Handle(found.data, tl.int1) if short in COMPARED else bf16(found.data)

    return operation


def mend():
    """Puts all of this in the place of what the interpreter has."""
    own = {
        "create_fma": fma,
        "create_atomic_rmw": atomic_rmw,
        "create_atomic_cas": atomic_cas,
    }
    for name, make in own.items():
        setattr(Builder, name, make(getattr(Builder, name)))
    Builder.binary_op = binary_op(Builder.binary_op)
    Builder.cast_impl, Builder.create_fp_to_fp, Builder.create_dot = cast, fp_to_fp, dot
    for name in [name for name in dir(Builder) if name.startswith("create_") and name[len("create_") :] not in OWN]:
        setattr(Builder, name, guarded(name, getattr(Builder, name)))
    Builder.create_inline_asm, Builder.create_extern_elementwise = lacking("inline_asm"), extern
    Builder.create_dot_scaled, Builder.create_atomic_poll = lacking("dot_scaled"), poll
    Builder.create_descriptor_load = padded(Builder.create_descriptor_load)
    Builder.create_load, Builder.create_masked_load = volatile(Builder.create_load), volatile(Builder.create_masked_load)
    if hasattr(Builder, "create_atomic_load"):
        Builder.create_atomic_load, Builder.create_atomic_store = atomic(Builder.create_atomic_load), atomic(Builder.create_atomic_store)

    def absent(self, name):
        if name.startswith(("create_", "get_")):
            return lambda *args, **kwargs: lacking(name.split("_", 1)[1])(self)
        raise AttributeError(name)

    if not hasattr(Builder, "get_bf16"):
        Builder.get_bf16 = lambda self, value: bf16(np.array([value], dtype=np.float32))
    Builder.__getattr__ = absent
    interpreter.TensorDescHandle.validate = validate
    interpreter.ReduceOps.apply = reduction(interpreter.ReduceOps.apply)
    interpreter.ScanOps.cumsum, interpreter.ScanOps.cumprod = scan(interpreter.ScanOps.cumsum), scan(interpreter.ScanOps.cumprod)
    libraries()


def libraries():
    """Functions of libraries of devices. Those of CUDA's libdevice choose a symbol by the types of their arguments, as when they are compiled; the others are names
    without a body here."""
    importlib.import_module("triton.language.extra.libdevice")
    cuda = importlib.import_module("triton.language.extra.cuda.libdevice")
    chosen = {own: with_semantic(found) for own, found in vars(cuda).items() if tl.core.is_builtin(found)}
    for name, module in list(sys.modules.items()):
        if module is None or not name.startswith("triton.language.extra"):
            continue
        of_cuda = chosen if name.endswith((".extra.libdevice", ".cuda.libdevice")) else {}
        for own, found in list(vars(module).items()):
            if isinstance(found, types.FunctionType) and (name.endswith("libdevice") or tl.core.is_builtin(found)):
                setattr(module, own, of_cuda.get(own) or lacking(f"{name.split('.')[-1]}.{own}"))


def with_semantic(function):
    """A function of Triton's language that the interpreter can call."""
    return lambda *arguments: function(*arguments, _semantic=interpreter.interpreter_semantic)
