//! Element types of tensors and scalars. Knows names, sizes and CUDA spellings; does not convert values (that is `measure::float`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An element type. The packed types hold two values a byte: their unit of storage is the byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DType {
    F64,
    F32,
    F16,
    Bf16,
    F8e4m3,
    F8e5m2,
    F8e8m0,
    F4e2m1x2,
    I64,
    U64,
    I32,
    U32,
    I16,
    U16,
    I8,
    U8,
    I4x2,
    Bool,
}

impl DType {
    /// Every type, in the order of the manifest's reference.
    pub const ALL: [DType; 18] = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::Bf16,
        DType::F8e4m3,
        DType::F8e5m2,
        DType::F8e8m0,
        DType::F4e2m1x2,
        DType::I64,
        DType::U64,
        DType::I32,
        DType::U32,
        DType::I16,
        DType::U16,
        DType::I8,
        DType::U8,
        DType::I4x2,
        DType::Bool,
    ];

    /// The name in manifests: `f32`, `bf16`, `f8e4m3`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F64 => "f64",
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F8e4m3 => "f8e4m3",
            DType::F8e5m2 => "f8e5m2",
            DType::F8e8m0 => "f8e8m0",
            DType::F4e2m1x2 => "f4e2m1x2",
            DType::I64 => "i64",
            DType::U64 => "u64",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I4x2 => "i4x2",
            DType::Bool => "bool",
        }
    }

    /// Bytes one stored element takes (one, for the packed types, which hold two values).
    pub fn bytes(self) -> u64 {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::Bf16 | DType::I16 | DType::U16 => 2,
            _ => 1,
        }
    }

    /// Whether values are floating point.
    pub fn is_float(self) -> bool {
        matches!(
            self,
            DType::F64
                | DType::F32
                | DType::F16
                | DType::Bf16
                | DType::F8e4m3
                | DType::F8e5m2
                | DType::F8e8m0
                | DType::F4e2m1x2
        )
    }

    /// The type's name in CUDA C++: what `T` becomes in an entry.
    pub fn cuda_name(self) -> &'static str {
        match self {
            DType::F64 => "double",
            DType::F32 => "float",
            DType::F16 => "__half",
            DType::Bf16 => "__nv_bfloat16",
            DType::F8e4m3 => "__nv_fp8_e4m3",
            DType::F8e5m2 => "__nv_fp8_e5m2",
            DType::F8e8m0 => "__nv_fp8_e8m0",
            DType::F4e2m1x2 => "__nv_fp4x2_e2m1",
            DType::I64 => "long long",
            DType::U64 => "unsigned long long",
            DType::I32 => "int",
            DType::U32 => "unsigned int",
            DType::I16 => "short",
            DType::U16 => "unsigned short",
            DType::I8 => "signed char",
            DType::U8 | DType::I4x2 => "unsigned char",
            DType::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        DType::ALL.into_iter().find(|d| d.name() == text).ok_or(())
    }
}
