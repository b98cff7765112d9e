//! Encodes a launch's by-value arguments as the bytes that a kernel reads. Pure: knows C's layout of structs; does not know buffers and addresses.

use kforge_numerics::reference::{Values, float};
use kforge_types::model::DType;
use kforge_types::model::bound::{Arg, Scalar, StructField};

/// The offsets of the fields in C's layout, and the total size.
pub fn layout(fields: &[StructField]) -> (Vec<u64>, u64) {
    let mut end: u64 = 0;
    let mut widest = 1;
    let offsets = fields
        .iter()
        .map(|f| {
            let size = f.dtype.bytes();
            widest = widest.max(size);
            let at = end.div_ceil(size) * size;
            end = at + size;
            at
        })
        .collect();
    (offsets, end.div_ceil(widest) * widest)
}

/// The bytes of a by-value argument, including the padding of a struct.
pub fn bytes(arg: &Arg) -> Vec<u8> {
    match arg {
        Arg::Scalar { dtype, value } => scalar(*dtype, *value),
        Arg::Struct(fields) => {
            let (offsets, size) = layout(fields);
            let mut all = vec![0; size as usize];
            for (field, offset) in fields.iter().zip(offsets) {
                let value = scalar(field.dtype, field.value);
                all[offset as usize..offset as usize + value.len()].copy_from_slice(&value);
            }
            all
        }
        Arg::Null => vec![0; size_of::<u64>()],
        // The driver defines the bytes of a tensor map.
        Arg::Pointer { .. } | Arg::Pointers(_) | Arg::TensorMap(_) => Vec::new(),
    }
}

/// A scalar encoded in its dtype. A float is rounded once.
fn scalar(dtype: DType, value: Scalar) -> Vec<u8> {
    let float = value.as_f64();
    let values = match dtype {
        DType::Bool => Values::Int(vec![i64::from(float != 0.0)]),
        dtype if dtype.is_float() => Values::Float(vec![float]),
        _ => Values::Int(vec![value.as_i64().unwrap_or(float as i64)]),
    };
    float::encode(dtype, &values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_laid_out_as_c_does() {
        let field = |dtype, value| StructField { dtype, value: Scalar::Int(value) };
        let arg =
            Arg::Struct(vec![field(DType::I8, 1), field(DType::I32, 2), field(DType::I64, 3), field(DType::U8, 4)]);
        let all = bytes(&arg);
        assert_eq!((all.len(), all[0], all[4], all[8], all[16]), (24, 1, 2, 3, 4));
    }
}
