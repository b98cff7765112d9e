//! Conversions between f64 (or i64) and the bytes of every dtype. Rounds to nearest, ties to even, and only once: never through a narrower type in between.
//! Does not know tensors.
//!
//! | dtype | exponent, mantissa bits | beyond the largest value |
//! |---|---|---|
//! | `f32`, `f16`, `bf16` | 8+23, 5+10, 8+7 (IEEE 754) | infinity, from half a unit beyond the largest |
//! | `f8e4m3` (OCP, no infinity, one NaN per sign) | 4+3 | saturates at 448, infinities too |
//! | `f8e5m2` (OCP, IEEE-like) | 5+2 | saturates at 57344, infinities too |
//! | `f4e2m1x2` (OCP MX, neither infinity nor NaN) | 2+1 | saturates at 6; NaN becomes +6 |
//! | `f8e8m0` (OCP MX scale, a power of two, no sign, no zero) | 8+0 | saturates at 2^127, below at 2^-127; negative values become NaN |
//!
//! Saturation of the 4- and 8-bit types matches CUDA's own conversions (`__nv_fp8_e4m3(float)` and similar use `__NV_SATFINITE`), so that a reference rounded
//! here and a kernel that stores through these types agree. Decoding keeps the infinities that an `f8e5m2` may hold.

use super::error::Error;
use super::values::{Values, per_element};
use kforge_foundation::base::pieces;
use kforge_types::model::DType;

/// A binary float format narrower than f64.
struct Format {
    mantissa: i32,
    bias: i32,
    /// Total bits.
    bits: u32,
    /// Largest finite value.
    max: f64,
    /// How larger values are converted.
    overflow: Overflow,
}

#[derive(PartialEq)]
enum Overflow {
    Infinity,
    Saturate,
}

const F32: Format = Format { mantissa: 23, bias: 127, bits: 32, max: f32::MAX as f64, overflow: Overflow::Infinity };
const F16: Format = Format { mantissa: 10, bias: 15, bits: 16, max: 65504.0, overflow: Overflow::Infinity };
/// The largest value is (2 - 2^-7) * 2^127.
const BF16: Format =
    Format { mantissa: 7, bias: 127, bits: 16, max: 3.3895313892515355e38, overflow: Overflow::Infinity };
const E4M3: Format = Format { mantissa: 3, bias: 7, bits: 8, max: 448.0, overflow: Overflow::Saturate };
const E5M2: Format = Format { mantissa: 2, bias: 15, bits: 8, max: 57344.0, overflow: Overflow::Saturate };
const E2M1: Format = Format { mantissa: 1, bias: 1, bits: 4, max: 6.0, overflow: Overflow::Saturate };

fn format(dtype: DType) -> Option<&'static Format> {
    match dtype {
        DType::F32 => Some(&F32),
        DType::F16 => Some(&F16),
        DType::Bf16 => Some(&BF16),
        DType::F8e4m3 => Some(&E4M3),
        DType::F8e5m2 => Some(&E5M2),
        DType::F4e2m1x2 => Some(&E2M1),
        _ => None,
    }
}

/// 2^exponent, exact for every exponent used here (-1022 to 1023).
pub(super) fn exp2i(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The exponent e of a finite nonzero x with 2^e <= |x| < 2^(e+1); -1023 for f64's subnormals, which are below every narrower format.
fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

impl Format {
    /// The distance between neighboring values in the binade of x.
    fn quantum(&self, x: f64) -> f64 {
        exp2i(exponent(x).max(1 - self.bias) - self.mantissa)
    }

    fn round(&self, x: f64) -> f64 {
        if x.is_nan() {
            return if self.bits == 4 { self.max } else { x };
        }
        if x.is_infinite() {
            return if self.overflow == Overflow::Saturate { self.max.copysign(x) } else { x };
        }
        // Adding a number so large that neighbors are one quantum apart rounds to a quantum (within 2^51 quanta, ties to the even multiple). Subtracting it
        // again is exact. An x that is beyond every format needs no rounding.
        let quantum = self.quantum(x);
        let shift = 1.5 * 4_503_599_627_370_496.0 * quantum;
        let rounded = if quantum < exp2i(512) { (x + shift) - shift } else { x };
        if rounded.abs() <= self.max {
            rounded.copysign(x)
        } else {
            match self.overflow {
                Overflow::Infinity => f64::INFINITY.copysign(x),
                Overflow::Saturate => self.max.copysign(x),
            }
        }
    }

    /// The bits of x, rounded.
    fn bits_of(&self, x: f64) -> u32 {
        let x = self.round(x);
        let sign = u32::from(x.is_sign_negative()) << (self.bits - 1);
        let exponent_mask = (1u32 << (self.bits - 1 - self.mantissa as u32)) - 1;
        if x.is_nan() {
            // The quiet NaN has the leading mantissa bit set; the only NaN of E4M3 is all ones.
            let all = (1u32 << (self.bits - 1)) - 1;
            let quiet = (exponent_mask << self.mantissa) | (1 << (self.mantissa - 1));
            return sign | if self.max == E4M3.max { all } else { quiet };
        }
        if x.is_infinite() {
            return sign | (exponent_mask << self.mantissa);
        }
        if x == 0.0 {
            return sign;
        }
        let e = exponent(x).max(1 - self.bias);
        let units = (x.abs() / exp2i(e - self.mantissa)) as u32;
        // A normal value's leading bit carries into the exponent field, which turns e + bias - 1 into e + bias.
        sign | ((((e + self.bias - 1) as u32) << self.mantissa) + units)
    }

    fn value_of(&self, bits: u32) -> f64 {
        let sign = if bits >> (self.bits - 1) & 1 == 1 { -1.0 } else { 1.0 };
        let exponent_mask = (1u32 << (self.bits - 1 - self.mantissa as u32)) - 1;
        let field = bits >> self.mantissa & exponent_mask;
        let mantissa = bits & ((1 << self.mantissa) - 1);
        let all_ones = mantissa == (1 << self.mantissa) - 1;
        if field == exponent_mask && self.bits > 4 {
            if self.max == E4M3.max {
                if all_ones {
                    return f64::NAN.copysign(sign);
                }
            } else {
                return if mantissa == 0 { sign * f64::INFINITY } else { f64::NAN.copysign(sign) };
            }
        }
        let (units, e) = if field == 0 {
            (mantissa, 1 - self.bias)
        } else {
            (mantissa | 1 << self.mantissa, field as i32 - self.bias)
        };
        sign * f64::from(units) * exp2i(e - self.mantissa)
    }
}

/// The code of a power-of-two scale: nearest, ties to the even code.
fn e8m0_code(x: f64) -> u8 {
    if x.is_nan() || x < 0.0 {
        return 0xff;
    }
    if x >= exp2i(127) {
        return 0xfe;
    }
    if x <= exp2i(-127) {
        return 0;
    }
    let e = exponent(x);
    let fraction = x / exp2i(e) - 1.0;
    let code = (e + 127) as u8;
    let up = fraction > 0.5 || (fraction == 0.5 && code % 2 == 1);
    (code + u8::from(up)).min(0xfe)
}

/// The value of a dtype nearest to x, as f64. For integer dtypes, x truncated and wrapped to the width, as storing it would.
pub fn round_to(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F64 => x,
        // Rust's conversion rounds to nearest, ties to even.
        DType::F32 => f64::from(x as f32),
        DType::F8e8m0 => e8m0_value(e8m0_code(x)),
        _ => match format(dtype) {
            Some(format) => format.round(x),
            None => wrap(dtype, x as i64) as f64,
        },
    }
}

fn e8m0_value(code: u8) -> f64 {
    if code == 0xff { f64::NAN } else { exp2i(i32::from(code) - 127) }
}

/// The distance between neighboring values of a dtype at x rounded to the dtype, towards larger magnitudes at a power of two. At zero it is the least positive
/// value; at infinity (or beyond the largest value), that of the largest value; at NaN, NaN; for integers, 1.
pub fn ulp(dtype: DType, x: f64) -> f64 {
    if !dtype.is_float() {
        return 1.0;
    }
    let x = round_to(dtype, x).abs();
    if x.is_nan() {
        return f64::NAN;
    }
    match dtype {
        DType::F64 if x == 0.0 || x < f64::MIN_POSITIVE => f64::from_bits(1),
        DType::F64 => {
            let e = exponent(x.min(f64::MAX)) - 52;
            if e < -1022 { f64::from_bits(1u64 << (e + 1074)) } else { exp2i(e) }
        }
        DType::F8e8m0 => x,
        _ => match format(dtype) {
            Some(format) if x == 0.0 => exp2i(1 - format.bias - format.mantissa),
            Some(format) => format.quantum(x.min(format.max)),
            None => 1.0,
        },
    }
}

/// An integer wrapped to the width of an integer dtype; any nonzero value is true for bool.
pub fn wrap(dtype: DType, x: i64) -> i64 {
    match dtype {
        DType::I32 => i64::from(x as i32),
        DType::U32 => i64::from(x as u32),
        DType::I16 => i64::from(x as i16),
        DType::U16 => i64::from(x as u16),
        DType::I8 => i64::from(x as i8),
        DType::U8 => i64::from(x as u8),
        DType::I4x2 => x << 60 >> 60,
        DType::Bool => i64::from(x != 0),
        _ => x,
    }
}

/// Values after storing them in a dtype: floats rounded, integers wrapped, and converted between the two kinds if necessary.
pub fn round_values(dtype: DType, values: &Values) -> Values {
    match values {
        Values::Float(v) if dtype.is_float() => Values::Float(each(v, |x| round_to(dtype, *x))),
        Values::Int(v) if !dtype.is_float() => Values::Int(each(v, |x| wrap(dtype, *x))),
        other => round_values(dtype, &other.clone().as_kind_of(dtype)),
    }
}

/// The result of `f` for each element.
fn each<A: Sync, B: Copy + Default + Send>(of: &[A], f: impl Fn(&A) -> B + Sync) -> Vec<B> {
    let mut made = vec![B::default(); of.len()];
    pieces::fill((of, 1), (&mut made, 1), |of, made| of.iter().zip(made).for_each(|(a, b)| *b = f(a)));
    made
}

/// The little-endian bytes of values, rounded to nearest, ties to even (integers wrap). Packed types hold two values per byte, low nibble first; for an odd
/// number of values, the last byte's high nibble is zero.
pub fn encode(dtype: DType, values: &Values) -> Vec<u8> {
    match values {
        Values::Float(v) if dtype.is_float() => encoded(dtype, v, |v, bytes| encode_floats(dtype, v, bytes)),
        Values::Int(v) if !dtype.is_float() => encoded(dtype, v, |v, bytes| encode_ints(dtype, v, bytes)),
        other => encode(dtype, &other.clone().as_kind_of(dtype)),
    }
}

fn encoded<T: Sync>(dtype: DType, values: &[T], f: impl Fn(&[T], &mut [u8]) + Sync) -> Vec<u8> {
    let (per, width) = (per_element(dtype) as usize, dtype.bytes() as usize);
    let mut bytes = vec![0; values.len().div_ceil(per) * width];
    pieces::fill((values, per), (&mut bytes, width), f);
    bytes
}

fn encode_floats(dtype: DType, values: &[f64], bytes: &mut [u8]) {
    match dtype {
        DType::F64 => put(values, bytes, |x: f64| x.to_le_bytes()),
        DType::F32 => put(values, bytes, |x: f64| (x as f32).to_le_bytes()),
        DType::F16 => put(values, bytes, |x| (F16.bits_of(x) as u16).to_le_bytes()),
        DType::Bf16 => put(values, bytes, |x| (BF16.bits_of(x) as u16).to_le_bytes()),
        DType::F8e4m3 => put(values, bytes, |x| [E4M3.bits_of(x) as u8]),
        DType::F8e5m2 => put(values, bytes, |x| [E5M2.bits_of(x) as u8]),
        DType::F4e2m1x2 => pack(values, bytes, |x| E2M1.bits_of(x) as u8),
        _ => put(values, bytes, |x| [e8m0_code(x)]),
    }
}

fn encode_ints(dtype: DType, values: &[i64], bytes: &mut [u8]) {
    match (dtype, dtype.bytes()) {
        (DType::I4x2, _) => pack(values, bytes, |x| x as u8 & 15),
        (_, 1) => put(values, bytes, |x| [wrap(dtype, x) as u8]),
        (_, 2) => put(values, bytes, |x| (x as u16).to_le_bytes()),
        (_, 4) => put(values, bytes, |x| (x as u32).to_le_bytes()),
        _ => put(values, bytes, |x: i64| x.to_le_bytes()),
    }
}

fn put<T: Copy, const N: usize>(values: &[T], bytes: &mut [u8], f: impl Fn(T) -> [u8; N]) {
    values.iter().zip(bytes.as_chunks_mut::<N>().0).for_each(|(x, chunk)| *chunk = f(*x));
}

/// Packs two values into each byte; the bytes must be zero.
fn pack<T: Copy>(values: &[T], bytes: &mut [u8], nibble: impl Fn(T) -> u8) {
    values.iter().enumerate().for_each(|(i, x)| bytes[i / 2] |= nibble(*x) << (4 * (i % 2)));
}

/// The values of little-endian bytes; trailing bytes that do not form a whole element are ignored.
pub fn decode(dtype: DType, bytes: &[u8]) -> Values {
    fn all<const N: usize, T: Copy + Default + Send>(bytes: &[u8], f: impl Fn([u8; N]) -> T + Sync) -> Vec<T> {
        each(bytes.as_chunks::<N>().0, |chunk| f(*chunk))
    }
    fn nibbles<T: Copy + Default + Send>(bytes: &[u8], f: impl Fn(u8) -> T + Sync) -> Vec<T> {
        let mut values = vec![T::default(); bytes.len() * 2];
        let unpack = |bytes: &[u8], values: &mut [T]| {
            let pairs = values.as_chunks_mut::<2>().0;
            bytes.iter().zip(pairs).for_each(|(b, pair)| *pair = [f(b & 15), f(b >> 4)]);
        };
        pieces::fill((bytes, 1), (&mut values, 2), unpack);
        values
    }
    match dtype {
        DType::F64 => Values::Float(all(bytes, f64::from_le_bytes)),
        DType::F32 => Values::Float(all(bytes, |b| f64::from(f32::from_le_bytes(b)))),
        DType::F16 => Values::Float(all(bytes, |b| F16.value_of(u32::from(u16::from_le_bytes(b))))),
        DType::Bf16 => Values::Float(all(bytes, |b| BF16.value_of(u32::from(u16::from_le_bytes(b))))),
        DType::F8e4m3 => Values::Float(all(bytes, |[b]| E4M3.value_of(u32::from(b)))),
        DType::F8e5m2 => Values::Float(all(bytes, |[b]| E5M2.value_of(u32::from(b)))),
        DType::F8e8m0 => Values::Float(all(bytes, |[b]| e8m0_value(b))),
        DType::F4e2m1x2 => Values::Float(nibbles(bytes, |n| E2M1.value_of(u32::from(n)))),
        DType::I4x2 => Values::Int(nibbles(bytes, |n| wrap(DType::I4x2, i64::from(n)))),
        DType::I64 | DType::U64 => Values::Int(all(bytes, i64::from_le_bytes)),
        DType::I32 => Values::Int(all(bytes, |b| i64::from(i32::from_le_bytes(b)))),
        DType::U32 => Values::Int(all(bytes, |b| i64::from(u32::from_le_bytes(b)))),
        DType::I16 => Values::Int(all(bytes, |b| i64::from(i16::from_le_bytes(b)))),
        DType::U16 => Values::Int(all(bytes, |b| i64::from(u16::from_le_bytes(b)))),
        DType::I8 => Values::Int(all(bytes, |[b]| i64::from(b as i8))),
        DType::U8 | DType::Bool => Values::Int(all(bytes, |[b]| i64::from(b))),
    }
}

/// The bytes of a tensor's buffer: logical values at their strided positions, with zeros in gaps.
pub fn encode_strided(tensor: &kforge_types::model::Tensor, values: &Values) -> Vec<u8> {
    let dense = encode(tensor.dtype, values);
    if tensor.is_contiguous() {
        return dense;
    }
    let width = tensor.dtype.bytes() as usize;
    let mut bytes = vec![0; tensor.bytes() as usize];
    for (index, element) in dense.chunks_exact(width).enumerate() {
        let at = tensor.offset_of(index as u64) as usize * width;
        bytes[at..at + width].copy_from_slice(element);
    }
    bytes
}

/// The logical values of a tensor's buffer. Errors: the buffer is shorter than the tensor's span.
pub fn gather_strided(tensor: &kforge_types::model::Tensor, bytes: &[u8]) -> Result<Values, Error> {
    if (bytes.len() as u64) < tensor.bytes() {
        return Err(Error::ShortBuffer { tensor: tensor.name.clone(), found: bytes.len(), expected: tensor.bytes() });
    }
    if tensor.is_contiguous() {
        return Ok(decode(tensor.dtype, &bytes[..tensor.bytes() as usize]));
    }
    let stored = decode(tensor.dtype, bytes);
    let per = per_element(tensor.dtype) as usize;
    Ok(stored.take((0..tensor.elements()).flat_map(|i| (0..per).map(move |p| tensor.offset_of(i) as usize * per + p))))
}
