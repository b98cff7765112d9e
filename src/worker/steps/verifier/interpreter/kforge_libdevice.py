"""Functions of CUDA's libdevice on numpy arrays, by symbol.

Those of floats compute in float64 and round once to the type of the symbol (CUDA Math API, "Mathematical Functions"). Where the documentation leaves a result
open, it is the one that Triton 3.6 gave on an H200 (`tests/gpu/run --only libdevice` compares them). Triton links libdevice such that most functions of f32 take
subnormal numbers for zero and give zero in their place. Directed roundings, Bessel functions, `erfcx`, `rcp64h`, `nextafter` of f32 and other symbols that are
not listed here are not emulated.
"""

import math
import statistics

import numpy as np

NORMAL = statistics.NormalDist()


def each(function, *, pole=math.nan, overflow=math.inf):
    """A function of Python's numbers on arrays. `pole` is the result where Python refuses the argument."""

    def guarded(*arguments):
        try:
            return float(function(*arguments))
        except OverflowError:
            return overflow
        except ValueError:
            return pole

    applied = np.frompyfunc(guarded, function_arity(function), 1)
    return lambda *arrays: np.asarray(applied(*arrays), dtype=np.float64)


def function_arity(function):
    return 2 if function is math.remainder else 1


def fused(x, y, z):
    """`x * y + z` of values with at most 26 significant bits, in float64 and rounded to odd: rounding once more is then rounding once."""
    product = x * y
    total = product + z
    # The product is exact. What the sum loses is kept in its last bit.
    part = total - product
    lost = (product - (total - part)) + (z - part)
    bits = total.view(np.int64)
    inexact = (lost != 0) & np.isfinite(total)
    toward = np.where((lost > 0) == (total > 0), 0, -1)
    return np.where(inexact, (bits + toward) | 1, bits).view(np.float64)


# Floats.


def quadrant(x):
    """How many quarters of a turn are nearest to `x` half turns, and the rest as an angle of at most an eighth of a turn."""
    x = np.fmod(x, 2.0)
    quarters = np.rint(2 * x)
    return np.nan_to_num(quarters).astype(np.int64) % 4, np.pi * (x - quarters / 2)


def sinpi(x):
    at, rest = quadrant(x)
    found = np.choose(at, [np.sin(rest), np.cos(rest), -np.sin(rest), -np.cos(rest)])
    return np.where(np.isfinite(x) & (x == np.rint(x)), np.copysign(0.0, x), found)


def cospi(x):
    at, rest = quadrant(x)
    found = np.choose(at, [np.cos(rest), -np.sin(rest), -np.cos(rest), np.sin(rest)])
    return np.where(found == 0, 0.0, found)


def rounded_away(x):
    """The nearest integer, halfway cases away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def logb(x):
    power = np.frexp(x)[1] - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), power, np.abs(x)))


def gamma(x):
    negative = x == -np.inf
    # Below this, the reciprocal overflows.
    tiny = np.abs(x) < 2.0**-1024
    return np.where(tiny, np.copysign(np.inf, x), np.where(negative, np.nan, GAMMA(np.where(negative | tiny, 1.0, x))))


GAMMA = each(math.gamma)
ERF, ERFC = each(math.erf), each(math.erfc)
QUANTILE = each(NORMAL.inv_cdf)


def quantile(p):
    """The inverse of the normal distribution: infinite at 0 and 1."""
    inside = (p > 0) & (p < 1)
    ends = np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan))
    return np.where(inside, QUANTILE(np.where(inside, p, 0.5)), ends)


def erfinv(x):
    # Half of 1 - x loses the low bits of a small x, so small values begin with the first term of the series and are improved by Newton's method.
    small = np.abs(x) < 0.5
    y = np.where(small, x, 0.0) * (math.sqrt(math.pi) / 2)
    for _ in range(6):
        y = y - (ERF(y) - np.where(small, x, 0.0)) * (math.sqrt(math.pi) / 2) * np.exp(y * y)
    return np.where(small, y, np.copysign(quantile((1.0 - np.abs(x)) / 2) / math.sqrt(2), x))


def fdim(x, y):
    return np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0))


UNARY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh, "cbrt": np.cbrt,
    "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "cospi": cospi, "erf": ERF, "erfc": ERFC, "erfcinv": lambda x: 0.0 - quantile(x / 2) / math.sqrt(2),
    "erfinv": erfinv, "exp": np.exp, "exp10": lambda x: np.power(10.0, x), "exp2": np.exp2, "expm1": np.expm1, "fabs": np.abs, "floor": np.floor,
    "lgamma": each(math.lgamma, pole=math.inf), "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logb": logb,
    "nearbyint": np.rint, "normcdf": lambda x: ERFC(-x / math.sqrt(2)) / 2, "normcdfinv": quantile, "rcbrt": lambda x: 1 / np.cbrt(x), "rint": np.rint,
    "round": rounded_away, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh, "sinpi": sinpi, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "tgamma": gamma, "trunc": np.trunc,
}
BINARY = {
    "atan2": np.arctan2, "copysign": np.copysign, "fdim": fdim, "fmod": np.fmod, "hypot": np.hypot, "pow": np.power,
    "remainder": each(math.remainder), "rhypot": lambda x, y: 1 / np.hypot(x, y),
}
NORMS = {
    "norm3d": 3, "norm4d": 4, "rnorm3d": 3, "rnorm4d": 4,
}
# Approximations on a device, which are computed exactly here.
FAST = {
    "cosf": np.cos, "exp10f": UNARY["exp10"], "expf": np.exp, "fdividef": np.divide, "log10f": np.log10, "log2f": np.log2, "logf": np.log,
    "powf": lambda x, y: np.exp2(y * np.log2(x)), "sinf": np.sin, "tanf": np.tan,
}


def norm(reciprocal):
    def computed(first, *more):
        total = first
        for one in more:
            total = np.hypot(total, one)
        return 1 / total if reciprocal else np.abs(total)

    return computed


# Symbols of f32 that keep subnormal numbers.
KEEPING = {"copysignf", "erfinvf", "exp10f", "expf", "fdimf", "ldexpf", "log10f", "log2f", "logbf", "logf", "normcdff", "powf", "scalbnf"}


def flushed(array):
    """The same with zeros, of the same sign, in the place of subnormal numbers of f32."""
    if array.dtype != np.float32:
        return array
    return np.where(np.abs(array) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), array), array)


def as_float(function, dtype, keeps=False):
    """A function of float64 as one of `dtype`, which keeps subnormal numbers of f32 if `keeps` is set."""
    flush = (lambda array: array) if keeps else flushed

    def computed(*arrays):
        with np.errstate(all="ignore"):
            return flush(np.asarray(function(*(flush(array).astype(np.float64) for array in arrays))).astype(dtype))

    return computed


# Floats and integers.


def scaled(x, power):
    return np.ldexp(x, np.clip(power, -4096, 4096).astype(np.int32))


def whole_power(dtype):
    """A power by products in `dtype`, which overflow and underflow before a negative exponent inverts them."""

    def computed(x, power):
        with np.errstate(all="ignore"):
            found = flushed(np.power(flushed(x).astype(np.float64), np.abs(power.astype(np.float64))).astype(dtype))
            return flushed(np.where(power < 0, dtype(1) / found, found))

    return computed


def exponent(x):
    least, most = -(2**31), 2**31 - 1
    usual = np.isfinite(x) & (x != 0)
    return np.where(usual, np.frexp(np.where(usual, x, 1.0))[1] - 1, np.where(np.isinf(x), most, least)).astype(np.int32)


def to_integer(toward, dtype, nan=None):
    """A conversion that saturates. What is no number has the bits `nan`, or else only the highest bit."""
    limits = np.iinfo(dtype)
    width = limits.bits
    nan = np.array([1 << (width - 1) if nan is None else nan], dtype=f"u{width // 8}").view(dtype)[0]

    def converted(x):
        with np.errstate(all="ignore"):
            x = toward(flushed(x).astype(np.float64))
            # The largest integer of 64 bits is no float64, so it is set apart.
            high, low = x >= float(limits.max), x <= float(limits.min)
            inside = np.where(high | low | np.isnan(x), 0.0, x).astype(dtype)
        return np.where(np.isnan(x), nan, np.where(high, dtype(limits.max), np.where(low, dtype(limits.min), inside)))

    return converted


def to_float(dtype):
    return lambda x: x.astype(dtype)


def bits(dtype):
    return lambda x: np.ascontiguousarray(x).view(dtype)


def joined(high, low):
    return ((high.astype(np.uint32).astype(np.uint64) << np.uint64(32)) | low.astype(np.uint32).astype(np.uint64)).view(np.float64)


# Integers.


def integers(function, dtype, count):
    """A function of Python's integers. The result is cut to the bits of `dtype`."""
    width = np.dtype(dtype).itemsize * 8
    unsigned = np.dtype(f"u{width // 8}")
    applied = np.frompyfunc(lambda *values: function(*values) & ((1 << width) - 1), count, 1)
    return lambda *arrays: np.asarray(applied(*(array.astype(object) for array in arrays))).astype(unsigned).view(dtype)


def leading(width):
    return lambda x: width - (x % (1 << width)).bit_length()


def ones(width):
    return lambda x: bin(x % (1 << width)).count("1")


def turned(width):
    return lambda x: int(f"{x % (1 << width):0{width}b}"[::-1], 2)


def first(x):
    return (x & -x).bit_length()


def low24(x):
    """The low 24 bits with their sign."""
    return ((x & 0xFFFFFF) ^ 0x800000) - 0x800000


def permuted(x, y, selector):
    """The bytes of two words that the low three bits of each digit of `selector` choose."""
    source = (x & 0xFFFFFFFF) | ((y & 0xFFFFFFFF) << 32)
    found = 0
    for at in range(4):
        choice = (selector >> (4 * at)) & 7
        found |= ((source >> (8 * choice)) & 0xFF) << (8 * at)
    return found


def functions():
    found = {}
    for suffix, dtype in (("f", np.float32), ("", np.float64)):
        for name, function in (UNARY | BINARY).items():
            found[name + suffix] = as_float(function, dtype, name + suffix in KEEPING)
        for name, _ in NORMS.items():
            found[name + suffix] = as_float(norm(name.startswith("r")), dtype)
        for name in ("ldexp", "scalbn"):
            found[name + suffix] = as_float(scaled, dtype, name + suffix in KEEPING)
        found["powi" + suffix] = whole_power(dtype)
        found["ilogb" + suffix] = exponent
        found["llrint" + suffix] = to_integer(np.rint, np.int64)
        found["llround" + suffix] = to_integer(rounded_away, np.int64)
    for name, function in FAST.items():
        found["fast_" + name] = as_float(function, np.float32)
    found["saturatef"] = as_float(lambda x: np.where(x > 0, np.minimum(x, 1.0), 0.0), np.float32)
    # That of f32 steps over subnormal numbers.
    found["nextafter"] = np.nextafter
    for name in ("fmaf", "fmaf_rn"):
        found[name] = as_float(fused, np.float32)
    for letter, dtype in (("f", np.float32), ("d", np.float64)):
        for name, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
            found[f"{letter}{name}_rn"] = in_type(function)
        found[f"{letter}sqrt_rn"] = in_type(np.sqrt)
        found[f"{letter}rcp_rn"] = in_type(np.reciprocal)
    found["frsqrt_rn"] = found["rsqrtf"]
    for names, function in (
        (("isnanf", "isnand"), np.isnan), (("isinff", "isinfd"), np.isinf), (("finitef", "isfinited"), np.isfinite), (("signbitf", "signbitd"), np.signbit),
    ):
        for name in names:
            found[name] = function
    for of in ("float", "double"):
        for to, dtype in (("int", np.int32), ("uint", np.uint32), ("ll", np.int64), ("ull", np.uint64)):
            for mode, toward in (("rn", np.rint), ("rz", np.trunc), ("ru", np.ceil), ("rd", np.floor)):
                found[f"{of}2{to}_{mode}"] = to_integer(toward, dtype, 0 if of == "float" and dtype in (np.int32, np.uint32) else None)
    for of in ("int", "uint", "ll", "ull"):
        found[f"{of}2float_rn"], found[f"{of}2double_rn"] = to_float(np.float32), to_float(np.float64)
    found["double2float_rn"] = as_float(lambda x: x, np.float32)
    found |= {
        "float_as_int": bits(np.int32), "float_as_uint": bits(np.uint32), "int_as_float": bits(np.float32), "uint_as_float": bits(np.float32),
        "double_as_longlong": bits(np.int64), "longlong_as_double": bits(np.float64), "hiloint2double": joined,
        "double2hiint": lambda x: (bits(np.uint64)(x) >> np.uint64(32)).astype(np.uint32).view(np.int32),
        "double2loint": lambda x: bits(np.uint64)(x).astype(np.uint32).view(np.int32),
    }
    for sign, name, dtype, wide in (("", "", np.int32, np.int64), ("u", "u", np.uint32, np.uint64)):
        found[f"{name}mulhi"] = integers(lambda x, y: (x * y) >> 32, dtype, 2)
        found[f"{sign}mul64hi"] = integers(lambda x, y: (x * y) >> 64, wide, 2)
        found[f"{sign}hadd"] = integers(lambda x, y: (x + y) >> 1, dtype, 2)
        found[f"{sign}rhadd"] = integers(lambda x, y: (x + y + 1) >> 1, dtype, 2)
        found[f"{sign}sad"] = integers(lambda x, y, z: abs(x - y) + z, dtype, 3)
    found |= {
        "abs": integers(abs, np.int32, 1), "llabs": integers(abs, np.int64, 1),
        "clz": integers(leading(32), np.int32, 1), "clzll": integers(leading(64), np.int32, 1),
        "popc": integers(ones(32), np.int32, 1), "popcll": integers(ones(64), np.int32, 1),
        "ffs": integers(first, np.int32, 1), "ffsll": integers(first, np.int32, 1),
        "brev": integers(turned(32), np.int32, 1), "brevll": integers(turned(64), np.int64, 1),
        "mul24": integers(lambda x, y: low24(x) * low24(y), np.int32, 2),
        "umul24": integers(lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF), np.uint32, 2),
        "byte_perm": integers(permuted, np.int32, 3),
    }
    return {"__nv_" + name: function for name, function in found.items()}


def in_type(function):
    """A function that numpy rounds once in the type of its arguments."""

    def computed(*arrays):
        with np.errstate(all="ignore"):
            return flushed(function(*map(flushed, arrays)))

    return computed


FUNCTIONS = functions()
