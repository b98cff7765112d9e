//! C's layout of by-value arguments on the platforms of CUDA: each scalar is aligned to its size, an address has eight bytes, and a struct is aligned like its
//! most aligned member and has a multiple of that size. Knows sizes; does not know values and addresses.

use std::fmt;

use super::bound::{Arg, StructField};
use super::tensor_map;

/// Bytes of an address.
pub const ADDRESS: u64 = 8;

/// The offsets of the members of a struct, and its size, in bytes.
pub fn layout(fields: &[StructField]) -> (Vec<u64>, u64) {
    let mut end: u64 = 0;
    let offsets = fields
        .iter()
        .map(|field| {
            let at = end.next_multiple_of(alignment_of(field));
            end = at + size_of(field);
            at
        })
        .collect();
    (offsets, end.next_multiple_of(alignment(fields)))
}

/// The alignment of a struct in bytes.
fn alignment(fields: &[StructField]) -> u64 {
    fields.iter().map(alignment_of).max().unwrap_or(1)
}

fn alignment_of(field: &StructField) -> u64 {
    match field {
        StructField::Member(Arg::Struct(fields)) => alignment(fields),
        other => size_of(other),
    }
}

fn size_of(field: &StructField) -> u64 {
    match field {
        StructField::Scalar { dtype, .. } => dtype.bytes(),
        StructField::Member(arg) => arg.bytes(),
    }
}

impl Arg {
    /// Bytes of the argument as C passes it, including the padding of a struct.
    pub fn bytes(&self) -> u64 {
        match self {
            Arg::Pointer { .. } | Arg::Pointers(_) | Arg::Null => ADDRESS,
            Arg::Scalar { dtype, .. } => dtype.bytes(),
            Arg::Struct(fields) => layout(fields).1,
            Arg::TensorMap(_) => tensor_map::BYTES,
        }
    }
}

/// A struct in messages: its members with their offsets, as `a struct of (i32 at 0, i64 at 8)`. Long structs are shortened.
pub struct Shown<'a>(pub &'a [StructField]);

/// The most members that a message shows.
const MOST_SHOWN: usize = 12;

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offsets = layout(self.0).0;
        f.write_str("a struct of (")?;
        for (position, (field, offset)) in self.0.iter().zip(offsets).enumerate().take(MOST_SHOWN) {
            if position > 0 {
                f.write_str(", ")?;
            }
            match field {
                StructField::Scalar { dtype, .. } => write!(f, "{dtype}")?,
                StructField::Member(Arg::Pointer { buffer, .. }) => write!(f, "`{buffer}`")?,
                StructField::Member(Arg::Pointers(_)) => f.write_str("an array of pointers")?,
                StructField::Member(Arg::Struct(inner)) => write!(f, "{}", Shown(inner))?,
                StructField::Member(_) => f.write_str("a null pointer")?,
            }
            write!(f, " at {offset}")?;
        }
        match self.0.len().saturating_sub(MOST_SHOWN) {
            0 => f.write_str(")"),
            more => write!(f, " and {more} more)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Scalar};

    fn scalar(dtype: DType) -> StructField {
        StructField::Scalar { dtype, value: Scalar::Int(0) }
    }

    #[test]
    fn structs_are_laid_out_as_c_does() {
        let pointer = || StructField::Member(Arg::Pointer { buffer: "x".into(), offset: 0 });
        assert_eq!(layout(&[DType::I8, DType::I32, DType::I64, DType::U8].map(scalar)), (vec![0, 4, 8, 16], 24));
        assert_eq!(layout(&[DType::F16, DType::I8, DType::Bf16, DType::Bool].map(scalar)), (vec![0, 2, 4, 6], 8));
        assert_eq!(layout(&[scalar(DType::U8), pointer(), scalar(DType::F32)]), (vec![0, 8, 16], 24));
        // struct { char a; struct { short b; char c; } d; char e; }: a nested struct has its own alignment and its padding.
        let inner = StructField::Member(Arg::Struct([DType::I16, DType::I8].map(scalar).to_vec()));
        assert_eq!(layout(&[scalar(DType::I8), inner, scalar(DType::I8)]), (vec![0, 2, 6], 8));
        assert_eq!(layout(&[StructField::Member(Arg::Null), scalar(DType::I8)]), (vec![0, 8], 16));
    }

    #[test]
    fn messages_show_members_and_offsets() {
        let inner = StructField::Member(Arg::Struct(vec![scalar(DType::F64)]));
        let fields = [scalar(DType::I32), inner, StructField::Member(Arg::Null)];
        assert_eq!(
            Shown(&fields).to_string(),
            "a struct of (i32 at 0, a struct of (f64 at 0) at 8, a null pointer at 16)"
        );
        assert!(Shown(&[DType::I8; 20].map(scalar)).to_string().ends_with("i8 at 11 and 8 more)"));
    }
}
