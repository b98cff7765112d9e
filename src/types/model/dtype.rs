//! Element types of tensors and scalars. Knows names, sizes and CUDA spellings; does not convert values (`measure::float` does).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use kforge_foundation::base::Diagnostic;

/// An element type. A packed type holds two values in a byte, and its unit of storage is the byte.
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

    /// Bytes of one stored element. For a packed type this is one byte, which holds two values.
    pub fn bytes(self) -> u64 {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::Bf16 | DType::I16 | DType::U16 => 2,
            _ => 1,
        }
    }

    /// Whether the type has this value, if the value is infinite or NaN. True of every finite value.
    pub fn has_value_of_class(self, value: f64) -> bool {
        match self {
            DType::F64 | DType::F32 | DType::F16 | DType::Bf16 | DType::F8e5m2 => true,
            DType::F8e4m3 | DType::F8e8m0 => !value.is_infinite(),
            _ => value.is_finite(),
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

    /// The number of stored bits of the significand, and the exponent of the smallest normal number. None for integers.
    pub fn precision(self) -> Option<(i32, i32)> {
        Some(match self {
            DType::F64 => (52, -1022),
            DType::F32 => (23, -126),
            DType::F16 => (10, -14),
            DType::Bf16 => (7, -126),
            DType::F8e4m3 => (3, -6),
            DType::F8e5m2 => (2, -14),
            DType::F8e8m0 => (0, -127),
            DType::F4e2m1x2 => (1, 0),
            _ => return None,
        })
    }

    /// The distance from 1 to the next larger value; 0 for integers.
    pub fn epsilon(self) -> f64 {
        self.precision().map_or(0.0, |(bits, _)| power_of_two(-bits))
    }

    /// The unit in the last place at `x`: the distance to the next value of this type away from zero, for a finite `x`; 0 for integers.
    pub fn ulp(self, x: f64) -> f64 {
        let Some((bits, least)) = self.precision() else { return 0.0 };
        if !x.is_finite() {
            return 0.0;
        }
        // The unbiased exponent of the f64. Subnormals of f64 are far below the smallest normal number of every other type.
        let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        power_of_two(exponent.max(least) - bits)
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

/// The type that CUDA C++, NumPy, PyTorch or Triton call `text`.
fn meant(text: &str) -> Option<DType> {
    let name = text.rsplit('.').next().unwrap_or(text).to_ascii_lowercase();
    if let Some(dtype) = DType::ALL.into_iter().find(|d| d.cuda_name() == name) {
        return Some(dtype);
    }
    Some(match name.trim_start_matches("__").trim_start_matches("nv_").trim_end_matches("_t") {
        "float64" | "fp64" => DType::F64,
        "float32" | "fp32" | "single" => DType::F32,
        "float16" | "fp16" | "half" => DType::F16,
        "bfloat16" | "bfloat" => DType::Bf16,
        "float8_e4m3fn" | "float8_e4m3" | "float8e4nv" | "fp8_e4m3" | "fp8e4m3" | "e4m3" => DType::F8e4m3,
        "float8_e5m2" | "float8e5" | "fp8_e5m2" | "fp8e5m2" | "e5m2" => DType::F8e5m2,
        "float8_e8m0fnu" | "fp8_e8m0" | "e8m0" => DType::F8e8m0,
        "float4_e2m1fn_x2" | "fp4x2_e2m1" => DType::F4e2m1x2,
        "int64" | "long" => DType::I64,
        "uint64" | "size" => DType::U64,
        "int32" => DType::I32,
        "uint32" | "uint" | "unsigned" => DType::U32,
        "int16" => DType::I16,
        "uint16" => DType::U16,
        "int8" => DType::I8,
        "uint8" | "byte" => DType::U8,
        "boolean" => DType::Bool,
        _ => return None,
    })
}

/// Adds `did you mean` to an error about a dtype name that is not in `known`. Suggests the kforge name of a type that has this name in another tool, or a close
/// name.
pub(super) fn suggest<'a>(error: Diagnostic, got: &str, known: impl IntoIterator<Item = &'a str>) -> Diagnostic {
    error.suggest(meant(got).map_or(got, |dtype| dtype.name()), known)
}

/// Two to the power `e`, exact down to the smallest subnormal. `powi` divides, and so loses subnormals.
fn power_of_two(e: i32) -> f64 {
    if e >= -1022 { f64::from_bits(((e + 1023) as u64) << 52) } else { f64::from_bits(1 << (e + 1074).max(0)) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_in_the_last_place_are_those_of_the_formats() {
        assert_eq!(DType::F32.ulp(1.5), f64::from(f32::EPSILON));
        assert_eq!(DType::F64.ulp(1.0), f64::EPSILON);
        assert_eq!(DType::F16.ulp(2048.0), 2.0);
        assert_eq!(DType::F16.ulp(0.0), f64::powi(2.0, -24));
        assert_eq!(DType::F64.ulp(0.0), f64::from_bits(1));
        assert_eq!(DType::I32.ulp(7.0), 0.0);
    }

    #[test]
    fn words_of_others_mean_a_type() {
        for dtype in DType::ALL {
            // Two types are stored as unsigned characters.
            assert!(meant(dtype.cuda_name()) == Some(dtype) || dtype == DType::I4x2, "{dtype}");
        }
        let words = [
            "torch.float32",
            "half",
            "half_t",
            "bfloat16",
            "nv_bfloat16",
            "int64_t",
            "np.uint8",
            "Float",
            "tl.float8e5",
        ];
        let types = [
            DType::F32,
            DType::F16,
            DType::F16,
            DType::Bf16,
            DType::Bf16,
            DType::I64,
            DType::U8,
            DType::F32,
            DType::F8e5m2,
        ];
        assert_eq!(words.map(meant), types.map(Some));
        assert_eq!(meant("complex64"), None);
    }
}
