//! A tensor's logical values, exact: floats as f64, integers as i64. Knows no shapes, layouts or operators.

use std::borrow::Cow;

use kforge_foundation::base::pieces;
use kforge_types::model::{DType, Tensor};

/// The values of a tensor in row-major order of its logical shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Values of a float dtype. Every float dtype is a subset of f64, so nothing is lost.
    Float(Vec<f64>),
    /// Values of an integer dtype or bool (0 and 1). A `u64` is held as its two's complement bits.
    Int(Vec<i64>),
}

impl Values {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Float(v) => v.len(),
            Values::Int(v) => v.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As f64: integers are rounded to the nearest, `u64` by its unsigned value. Floats are not copied.
    pub fn as_f64(&self, dtype: DType) -> Cow<'_, [f64]> {
        match self {
            Values::Float(v) => Cow::Borrowed(v),
            Values::Int(v) if dtype == DType::U64 => v.iter().map(|i| *i as u64 as f64).collect(),
            Values::Int(v) => v.iter().map(|i| *i as f64).collect(),
        }
    }

    /// Like [`Self::as_f64`], but as a new vector.
    pub fn to_f64(&self, dtype: DType) -> Vec<f64> {
        self.as_f64(dtype).into_owned()
    }

    /// The same values in the kind that `dtype` needs: floats become integers by truncation, saturating at 64 bits, as C and CUDA convert.
    pub fn as_kind_of(self, dtype: DType) -> Values {
        match self {
            Values::Float(v) if !dtype.is_float() => Values::Int(
                v.into_iter().map(|x| if dtype == DType::U64 { x as u64 as i64 } else { x as i64 }).collect(),
            ),
            Values::Int(_) if dtype.is_float() => Values::Float(self.to_f64(DType::I64)),
            other => other,
        }
    }

    /// Magnitudes: the scale of values that are moved or chosen, not computed.
    pub(super) fn magnitudes(&self) -> Vec<f64> {
        match self {
            Values::Float(v) => v.iter().map(|x| x.abs()).collect(),
            Values::Int(v) => v.iter().map(|x| x.unsigned_abs() as f64).collect(),
        }
    }

    /// The values at these positions, in their order.
    pub fn take(&self, positions: impl Iterator<Item = usize>) -> Values {
        match self {
            Values::Float(v) => Values::Float(positions.map(|i| v[i]).collect()),
            Values::Int(v) => Values::Int(positions.map(|i| v[i]).collect()),
        }
    }

    /// The values of [`Values::to_le_bytes`] for a tensor of that dtype; trailing bytes that do not form a whole value are ignored.
    pub fn from_le_bytes(dtype: DType, bytes: &[u8]) -> Values {
        fn all<T: Copy + Default + Send>(bytes: &[u8], f: impl Fn([u8; 8]) -> T + Sync) -> Vec<T> {
            let words = bytes.as_chunks::<8>().0;
            let mut values = vec![T::default(); words.len()];
            let copy = |words: &[[u8; 8]], values: &mut [T]| words.iter().zip(values).for_each(|(w, v)| *v = f(*w));
            pieces::fill((words, 1), (&mut values, 1), copy);
            values
        }
        match dtype.is_float() {
            true => Values::Float(all(bytes, f64::from_le_bytes)),
            false => Values::Int(all(bytes, i64::from_le_bytes)),
        }
    }

    /// Eight little-endian bytes per value: digests of expectations are computed from these.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        fn all<T: Copy + Sync>(values: &[T], f: impl Fn(T) -> [u8; 8] + Sync) -> Vec<u8> {
            let mut bytes = vec![0; values.len() * 8];
            pieces::fill((values, 1), (&mut bytes, 8), |values, bytes| {
                values.iter().zip(bytes.as_chunks_mut::<8>().0).for_each(|(v, word)| *word = f(*v));
            });
            bytes
        }
        match self {
            Values::Float(v) => all(v, f64::to_le_bytes),
            Values::Int(v) => all(v, i64::to_le_bytes),
        }
    }
}

/// How many values a stored element holds: two for the packed types, low nibble first.
pub fn per_element(dtype: DType) -> u64 {
    match dtype {
        DType::F4e2m1x2 | DType::I4x2 => 2,
        _ => 1,
    }
}

/// The shape that an operator sees: the declared one, with the last axis twice as long for the packed types (a single packed element has shape `[2]`).
pub fn logical_shape(tensor: &Tensor) -> Vec<usize> {
    let mut shape: Vec<usize> = tensor.shape.iter().map(|extent| *extent as usize).collect();
    if per_element(tensor.dtype) == 2 {
        match shape.last_mut() {
            Some(last) => *last *= 2,
            None => shape.push(2),
        }
    }
    shape
}

/// How many values an operator sees in a tensor.
pub fn logical_len(tensor: &Tensor) -> usize {
    (tensor.elements() * per_element(tensor.dtype)) as usize
}
