//! Arguments of a launch against the parameters of its entry, and as the bytes a trampoline reads. Pure but for the addresses it is given.

use super::image::{Parameter, ParameterKind};
use crate::base::count;
use crate::model::DType;
use crate::model::bound::{Arg, Scalar, StructField};
use crate::model::tensor_map;
use crate::reference::{Values, float};

/// Checks count, sizes and kinds; says what is wrong, or nothing.
pub(super) fn check(entry: &str, args: &[Arg], parameters: &[Parameter]) -> Result<(), String> {
    if args.len() != parameters.len() {
        let takes = count(parameters.len(), "parameter");
        return Err(format!("`{entry}` takes {takes}, the launch passes {}", args.len()));
    }
    for (position, (arg, parameter)) in args.iter().zip(parameters).enumerate() {
        let (what, size, fits) = match arg {
            Arg::Pointer { buffer, .. } => {
                (format!("the address of `{buffer}`"), 8, parameter.kind == ParameterKind::Pointer)
            }
            Arg::Pointers(_) => {
                ("the address of an array of addresses".to_owned(), 8, parameter.kind == ParameterKind::Pointer)
            }
            Arg::Scalar { dtype, .. } => {
                (format!("a scalar of type {dtype}"), dtype.bytes(), scalar_fits(*dtype, parameter.kind))
            }
            Arg::Struct(fields) => ("a struct".to_owned(), layout(fields).1, parameter.kind == ParameterKind::Struct),
            Arg::TensorMap(map) => {
                let what = format!("a tensor map of `{}`", map.buffer);
                (what, tensor_map::BYTES, parameter.kind == ParameterKind::Struct)
            }
        };
        if size != u64::from(parameter.size) || !fits {
            let expected = match parameter.kind {
                ParameterKind::Struct => "a struct",
                ParameterKind::Pointer => "a pointer",
                ParameterKind::Integer => "an integer",
                ParameterKind::Float => "a float",
                ParameterKind::Bool => "a truth value",
            };
            return Err(format!(
                "argument {} of `{entry}` is {what} ({}), the parameter {expected} of {}",
                position + 1,
                count(size, "byte"),
                count(parameter.size, "byte")
            ));
        }
    }
    Ok(())
}

fn scalar_fits(dtype: DType, kind: ParameterKind) -> bool {
    match dtype {
        DType::F64 | DType::F32 => kind == ParameterKind::Float,
        DType::Bool => kind == ParameterKind::Bool,
        // The narrow floats are classes in C++, and may be passed as their bits.
        _ if dtype.is_float() => matches!(kind, ParameterKind::Struct | ParameterKind::Integer),
        _ => matches!(kind, ParameterKind::Integer | ParameterKind::Bool),
    }
}

/// Offsets of the fields as C lays them out, and the whole size.
fn layout(fields: &[StructField]) -> (Vec<u64>, u64) {
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

/// The bytes of an argument by value, in whole words.
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
        // What a tensor map is, is the driver's own.
        Arg::Pointer { .. } | Arg::Pointers(_) | Arg::TensorMap(_) => Vec::new(),
    }
}

/// A scalar in its dtype, a float rounded once.
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

    const POINTER: Parameter = Parameter { size: 8, align: 8, kind: ParameterKind::Pointer };
    const INT: Parameter = Parameter { size: 4, align: 4, kind: ParameterKind::Integer };

    fn int(dtype: DType) -> Arg {
        Arg::Scalar { dtype, value: Scalar::Int(7) }
    }

    #[test]
    fn arguments_must_match_in_count_size_and_kind() {
        let x = || Arg::Pointer { buffer: "x".into(), offset: 0 };
        assert_eq!(check("k", &[x(), int(DType::I32)], &[POINTER, INT]), Ok(()));
        assert_eq!(check("k", &[x()], &[POINTER, INT]).unwrap_err(), "`k` takes 2 parameters, the launch passes 1");
        assert!(check("k", &[int(DType::I64), int(DType::I32)], &[POINTER, INT]).unwrap_err().contains("argument 1"));
        assert!(check("k", &[x(), int(DType::I64)], &[POINTER, INT]).unwrap_err().contains("8 bytes"));
        assert!(check("k", &[x(), int(DType::F32)], &[POINTER, INT]).is_err());
    }

    #[test]
    fn structs_are_laid_out_as_c_does() {
        let field = |dtype, value| StructField { dtype, value: Scalar::Int(value) };
        let arg =
            Arg::Struct(vec![field(DType::I8, 1), field(DType::I32, 2), field(DType::I64, 3), field(DType::U8, 4)]);
        let all = bytes(&arg);
        assert_eq!((all.len(), all[0], all[4], all[8], all[16]), (24, 1, 2, 3, 4));
    }
}
