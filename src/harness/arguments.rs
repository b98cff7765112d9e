//! Encodes a launch's by-value arguments as the bytes that a kernel reads. Pure: the caller knows buffers and addresses.

use kforge_numerics::reference::{Values, float};
use kforge_types::model::DType;
use kforge_types::model::bound::{Arg, Scalar, StructField};
use kforge_types::model::layout::layout;

/// The bytes of an argument, including the padding of a struct, which is zero. `address` gives the address of a pointer, or of an array of pointers, and its
/// error is returned. The driver defines the bytes of a tensor map, so there are none here.
///
/// # Errors
/// Those of `address`.
pub fn bytes<E>(arg: &Arg, address: &mut dyn FnMut(&Arg) -> Result<u64, E>) -> Result<Vec<u8>, E> {
    Ok(match arg {
        Arg::Scalar { dtype, value } => scalar(*dtype, *value),
        Arg::Struct(fields) => {
            let (offsets, size) = layout(fields);
            let mut all = vec![0; size as usize];
            for (field, offset) in fields.iter().zip(offsets) {
                let value = match field {
                    StructField::Scalar { dtype, value } => scalar(*dtype, *value),
                    StructField::Member(arg) => bytes(arg, address)?,
                };
                all[offset as usize..offset as usize + value.len()].copy_from_slice(&value);
            }
            all
        }
        Arg::Null => vec![0; size_of::<u64>()],
        Arg::Pointer { .. } | Arg::Pointers(_) => address(arg)?.to_le_bytes().to_vec(),
        Arg::TensorMap(_) => Vec::new(),
    })
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
    fn structs_hold_scalars_addresses_and_structs() {
        let field = |dtype, value| StructField::Scalar { dtype, value: Scalar::Int(value) };
        let inner = Arg::Struct(vec![field(DType::I16, 5), StructField::Member(Arg::Null), field(DType::I8, -1)]);
        let pointer = Arg::Pointer { buffer: "x".into(), offset: 16 };
        let fields = vec![
            field(DType::I8, 1),
            field(DType::I32, 2),
            StructField::Member(inner),
            StructField::Member(pointer),
            StructField::Scalar { dtype: DType::F16, value: Scalar::Float(f64::NEG_INFINITY) },
        ];
        let mut address = |arg: &Arg| match arg {
            Arg::Pointer { buffer, offset } if buffer == "x" => Ok(0x1000 + offset),
            other => Err(other.clone()),
        };
        let all = bytes(&Arg::Struct(fields), &mut address).unwrap();
        assert_eq!((all.len(), all[0], all[4], all[8], all[24]), (48, 1, 2, 5, 255));
        assert_eq!(all[16..24], [0; 8]);
        assert_eq!(all[32..40], 0x1010u64.to_le_bytes());
        assert_eq!(all[40..42], 0xfc00u16.to_le_bytes());
        let unknown = StructField::Member(Arg::Pointers(vec!["x".into()]));
        assert_eq!(bytes(&Arg::Struct(vec![unknown]), &mut address), Err(Arg::Pointers(vec!["x".into()])));
    }
}
