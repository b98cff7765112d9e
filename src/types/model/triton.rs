//! Kernels in Triton: what a launch states besides grid and arguments, and what one function is compiled for. The rule that makes the second of the first is in
//! [`super::specialise`]. Does not know the compiler. Pure.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::bound::Scalar;
use super::dtype::DType;
use super::expr::Expr;
use super::operator::TypeRef;
use super::{Place, Text};

pub use super::specialise::{Given, SpecialiseError, Specialised, SpecialisedFunction, specialise};

/// How the type of a tensor descriptor begins: `tensordesc<fp16[128, 64]>`.
pub const DESCRIPTOR: &str = "tensordesc<";
/// Threads of a warp.
const WARP: u32 = 32;

/// The releases of Triton whose launches kforge knows.
pub const RELEASES: [&str; 5] = ["3.5", "3.6", "3.7", "3.8", "3.9"];

/// A constant of a Triton function, as the compiler takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum TritonConst {
    /// `None`.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float, as text that reads back to the same value.
    Float {
        /// The text.
        float: String,
    },
    /// A dtype, by its name in Triton.
    Dtype {
        /// The name.
        dtype: String,
    },
    /// A string.
    Str(String),
}

impl fmt::Display for TritonConst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TritonConst::Null => f.write_str("None"),
            TritonConst::Bool(value) => value.fmt(f),
            TritonConst::Int(value) => value.fmt(f),
            TritonConst::Float { float: text } | TritonConst::Dtype { dtype: text } | TritonConst::Str(text) => {
                f.write_str(text)
            }
        }
    }
}

impl TritonConst {
    /// A float.
    pub fn float(value: f64) -> Self {
        TritonConst::Float { float: format!("{value:?}") }
    }

    /// The constant of a scalar.
    pub fn of(value: Scalar) -> Self {
        match value {
            Scalar::Int(i) => TritonConst::Int(i),
            Scalar::Bool(b) => TritonConst::Bool(b),
            Scalar::Float(f) => TritonConst::float(f),
        }
    }

    /// The constant of a dtype.
    pub fn dtype(dtype: DType) -> Self {
        TritonConst::Dtype { dtype: name_of(dtype).into() }
    }
}

/// The value of a declared constant, before names become numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum ConstDecl {
    /// An expression over dims, params and tunables.
    Value(Expr),
    /// The least power of two that is at least the value.
    NextPow2(Expr),
    /// A dtype, or a type of the operator.
    Dtype(TypeRef, Place),
}

/// The options of a compilation, before names become numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OptionDecls {
    /// Warps of a program.
    pub num_warps: Option<Expr>,
    /// Stages of software pipelines.
    pub num_stages: Option<Expr>,
    /// Blocks of a cluster that run one program.
    pub num_ctas: Option<Expr>,
    /// Most registers of a thread.
    pub maxnreg: Option<Expr>,
    /// Whether products and sums may be fused.
    pub enable_fp_fusion: Option<Expr>,
}

impl OptionDecls {
    /// The names that the options depend on.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = [&self.num_warps, &self.num_stages, &self.num_ctas, &self.maxnreg, &self.enable_fp_fusion];
        all.into_iter().flatten().flat_map(Expr::names)
    }
}

/// What a launch in Triton states in place of a block and shared memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TritonDecl {
    /// The constants by name of the parameter, in declared order.
    pub constexprs: Vec<(Text, ConstDecl)>,
    /// The options.
    pub options: OptionDecls,
}

/// Which arguments a compilation may depend on.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Specialize {
    /// All, as Triton's launcher does it.
    #[default]
    Jit,
    /// None: one compilation serves all values.
    None,
    /// Only these dims, which are multiples of 16 at every shape that the kernel serves.
    Only(Vec<Text>),
}

/// The options of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TritonOptions {
    /// Warps of a program.
    pub num_warps: u32,
    /// Stages of software pipelines.
    pub num_stages: u32,
    /// Blocks of a cluster that run one program.
    pub num_ctas: u32,
    /// Most registers of a thread; none for the compiler's choice.
    pub maxnreg: Option<u32>,
    /// Whether products and sums may be fused.
    pub enable_fp_fusion: bool,
}

impl Default for TritonOptions {
    fn default() -> Self {
        TritonOptions { num_warps: 4, num_stages: 3, num_ctas: 1, maxnreg: None, enable_fp_fusion: true }
    }
}

impl TritonOptions {
    /// Threads of a program, as far as the options say.
    pub fn threads(&self) -> u32 {
        self.num_warps.saturating_mul(WARP)
    }
}

/// What a bound launch in Triton needs besides grid and arguments. [`specialise`] takes it out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TritonCall {
    /// The declared constants.
    pub constexprs: BTreeMap<String, TritonConst>,
    /// The options.
    pub options: TritonOptions,
    /// Which integer arguments, by position, keep a type of their own whatever their value is.
    pub typed: Vec<bool>,
}

/// A parameter of a jitted function, as its source declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitParam {
    /// Its name.
    pub name: String,
    /// Whether it is a `tl.constexpr`.
    pub constexpr: bool,
    /// Whether it has a default.
    pub default: bool,
}

/// A parameter of a compilation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TritonParam {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: TritonParamKind,
}

/// What a parameter of a compilation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TritonParamKind {
    /// A parameter of the binary.
    Typed {
        /// Its type in Triton: `*fp16`, `i32`.
        #[serde(rename = "type")]
        ty: String,
        /// Whether its value is a multiple of 16.
        divisible: bool,
    },
    /// A constant.
    Constant {
        /// Its value.
        value: TritonConst,
    },
    /// A constant whose value is the function's default.
    Default {
        /// Always true.
        default: bool,
    },
}

/// What one function is compiled for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TritonCompile {
    /// The function.
    pub function: String,
    /// Every parameter of the function, in order.
    pub params: Vec<TritonParam>,
    /// The options.
    pub options: TritonOptions,
}

/// A dtype's name in Triton. Types that Triton does not have are bytes.
pub fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "fp64",
        DType::F32 => "fp32",
        DType::F16 => "fp16",
        DType::Bf16 => "bf16",
        DType::F8e4m3 => "fp8e4nv",
        DType::F8e5m2 => "fp8e5",
        DType::I64 => "i64",
        DType::U64 => "u64",
        DType::I32 => "i32",
        DType::U32 => "u32",
        DType::I16 => "i16",
        DType::U16 => "u16",
        DType::I8 => "i8",
        DType::Bool => "i1",
        DType::U8 | DType::F8e8m0 | DType::F4e2m1x2 | DType::I4x2 => "u8",
    }
}
