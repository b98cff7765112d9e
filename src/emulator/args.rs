//! Checks the arguments of a launch against the parameters of its entry. Pure.

use super::error::ArgumentError;
use super::image::{Parameter, ParameterKind};
use kforge_types::model::DType;
use kforge_types::model::bound::Arg;
use kforge_types::model::layout::Shown;
use kforge_types::model::tensor_map;

/// Checks the number, sizes and kinds of the arguments.
pub(super) fn check(entry: &str, args: &[Arg], parameters: &[Parameter]) -> Result<(), ArgumentError> {
    if args.len() != parameters.len() {
        let (takes, passed) = (parameters.len(), args.len());
        return Err(ArgumentError::Count { entry: entry.to_owned(), takes, passed });
    }
    for (position, (arg, parameter)) in args.iter().zip(parameters).enumerate() {
        let (what, size, fits) = match arg {
            Arg::Pointer { buffer, .. } => {
                (format!("the address of `{buffer}`"), 8, parameter.kind == ParameterKind::Pointer)
            }
            Arg::Pointers(_) => {
                ("the address of an array of addresses".to_owned(), 8, parameter.kind == ParameterKind::Pointer)
            }
            Arg::Null => ("a null pointer".to_owned(), 8, parameter.kind == ParameterKind::Pointer),
            Arg::Scalar { dtype, .. } => {
                (format!("a scalar of type {dtype}"), dtype.bytes(), scalar_fits(*dtype, parameter.kind))
            }
            Arg::Struct(fields) => (Shown(fields).to_string(), arg.bytes(), parameter.kind == ParameterKind::Struct),
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
            return Err(ArgumentError::Mismatch {
                entry: entry.to_owned(),
                number: position + 1,
                what,
                size,
                expected,
                parameter: parameter.size,
                wants_null: matches!(arg, Arg::Scalar { .. }) && parameter.kind == ParameterKind::Pointer,
            });
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

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::bound::{Scalar, StructField};

    const POINTER: Parameter = Parameter { size: 8, align: 8, kind: ParameterKind::Pointer };
    const INT: Parameter = Parameter { size: 4, align: 4, kind: ParameterKind::Integer };

    fn int(dtype: DType) -> Arg {
        Arg::Scalar { dtype, value: Scalar::Int(7) }
    }

    #[test]
    fn arguments_must_match_in_count_size_and_kind() {
        let x = || Arg::Pointer { buffer: "x".into(), offset: 0 };
        assert_eq!(check("k", &[x(), int(DType::I32)], &[POINTER, INT]), Ok(()));
        assert_eq!(
            check("k", &[x()], &[POINTER, INT]).unwrap_err().to_string(),
            "`k` takes 2 parameters, the launch passes 1"
        );
        assert!(
            check("k", &[int(DType::I64), int(DType::I32)], &[POINTER, INT])
                .unwrap_err()
                .to_string()
                .contains("argument 1")
        );
        assert!(check("k", &[x(), int(DType::I64)], &[POINTER, INT]).unwrap_err().to_string().contains("8 bytes"));
        assert!(check("k", &[x(), int(DType::F32)], &[POINTER, INT]).is_err());
    }

    #[test]
    fn a_struct_of_another_size_is_shown_with_its_members() {
        let members = [DType::I32, DType::I64].map(|dtype| StructField::Scalar { dtype, value: Scalar::Int(0) });
        let of = |size| Parameter { size, align: 8, kind: ParameterKind::Struct };
        let arg = || [Arg::Struct(members.to_vec())];
        assert_eq!(check("k", &arg(), &[of(16)]), Ok(()));
        assert_eq!(
            check("k", &arg(), &[of(24)]).unwrap_err().to_string(),
            "argument 1 of `k` is a struct of (i32 at 0, i64 at 8) (16 bytes), the parameter a struct of 24 bytes"
        );
    }
}
