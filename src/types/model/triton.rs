//! Kernels in Triton: what a launch states besides grid and arguments, and what one compilation is made for. Knows the rule by which Triton's own launcher
//! specialises a function; does not know the compiler. Pure.
//!
//! | argument | compiled as |
//! |---|---|
//! | an integer that is 1 | a constant: the parameter vanishes |
//! | an integer that is a multiple of 16, also 0 | its type, divisible by 16 |
//! | an integer from 2^31 without a stated type | `i64` |
//! | an address that is a multiple of 16 | its type, divisible by 16 |
//! | a null pointer | the constant `None` |
//! | anything else | its type |
//!
//! All launches of a sequence launch one function with one signature, because they have one binary. So an argument is specialised only as far as it is in every
//! launch: one that is 1 in the first and 2 in the second launch is a plain `i32`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use super::bound::{Arg, KernelLaunch, Launch, Scalar};
use super::dtype::DType;
use super::expr::Expr;
use super::operator::TypeRef;
use super::{Place, Text};

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

/// What one compilation is made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TritonCompile {
    /// Every parameter of the function, in order.
    pub params: Vec<TritonParam>,
    /// The options.
    pub options: TritonOptions,
}

/// A sequence of launches with the compilation that it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Specialised {
    /// The launches with the arguments that the binary takes.
    pub launches: Vec<Launch>,
    /// The compilation.
    pub compile: TritonCompile,
    /// What distinguishes it from other compilations of the variant: `BLOCK=1024,cols%16`.
    pub class: String,
}

/// Why launches do not fit the function that they launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecialiseError {
    /// No launch is left for this shape.
    #[error("it launches no function at this shape")]
    NoLaunch,
    /// Launches need several binaries.
    #[error("its launches differ in their {0}, and a Triton kernel has one binary")]
    Differ(&'static str),
    /// The number of arguments is wrong.
    #[error("`args` has {has}, and `{function}` takes {} that are not `tl.constexpr`: {}", .takes.len(), .takes.join(", "))]
    Count {
        /// The function.
        function: String,
        /// How many there are.
        has: usize,
        /// The names of the parameters.
        takes: Vec<String>,
    },
    /// A constant has no value.
    #[error("parameter `{name}` of `{function}` is a `tl.constexpr` without a value: state it in `constexprs`")]
    NoValue {
        /// The function.
        function: String,
        /// The parameter.
        name: String,
    },
    /// A constant is declared that is no constant of the function.
    #[error("`{function}` has no `tl.constexpr` parameter `{name}`")]
    NoConstant {
        /// The function.
        function: String,
        /// The name.
        name: String,
    },
    /// An argument that a Triton function cannot take.
    #[error("argument {0} is {1}, which a Triton kernel cannot take")]
    Argument(usize, &'static str),
}

/// What the specialisation of a sequence of launches depends on besides the launches.
pub struct Given<'a> {
    /// The parameters of the function, as its source declares them.
    pub params: &'a [JitParam],
    /// Values of tunables, dims, params and types, for constants that are named like them.
    pub names: &'a BTreeMap<String, TritonConst>,
    /// Those of them that differ between the variants of a kernel, which its name shows.
    pub tunables: &'a dyn Fn(&str) -> bool,
    /// Which arguments count.
    pub specialize: &'a Specialize,
    /// The element type and the alignment of a tensor or workspace.
    pub buffer: &'a dyn Fn(&str) -> Option<(DType, u64)>,
}

/// What is known of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    /// `*fp16`, `i32`; empty for a null pointer.
    ty: String,
    /// Whether the type is not stated, so that an integer may be wider.
    open: bool,
    one: bool,
    divisible: bool,
}

/// Specialises a sequence of launches.
///
/// # Errors
/// The launches do not fit the function, or need several binaries.
pub fn specialise(launches: &[Launch], given: &Given<'_>) -> Result<Specialised, SpecialiseError> {
    let kernels = || launches.iter().filter_map(|l| if let Launch::Kernel(k) = l { Some(k) } else { None });
    let first = kernels().next().ok_or(SpecialiseError::NoLaunch)?;
    let call = first.triton.as_deref().cloned().unwrap_or_default();
    let function = || first.entry.clone();
    let takes: Vec<&JitParam> = given.params.iter().filter(|p| !p.constexpr).collect();
    let mut joined: Option<Vec<Known>> = None;
    for kernel in kernels() {
        let own = kernel.triton.as_deref().cloned().unwrap_or_default();
        if kernel.entry != first.entry {
            return Err(SpecialiseError::Differ("entries"));
        }
        if own.constexprs != call.constexprs {
            return Err(SpecialiseError::Differ("constants"));
        }
        if own.options != call.options {
            return Err(SpecialiseError::Differ("options"));
        }
        if kernel.args.len() != takes.len() {
            let takes = takes.iter().map(|p| p.name.clone()).collect();
            return Err(SpecialiseError::Count { function: function(), has: kernel.args.len(), takes });
        }
        let known: Vec<Known> = kernel
            .args
            .iter()
            .enumerate()
            .map(|(at, arg)| known(at, arg, own.typed.get(at).copied().unwrap_or(true), given))
            .collect::<Result<_, _>>()?;
        joined = Some(match joined {
            None => known,
            Some(before) => before.into_iter().zip(known).map(|(a, b)| join(a, b)).collect::<Result<_, _>>()?,
        });
    }
    let mut joined = joined.unwrap_or_default();
    for (param, known) in takes.iter().zip(&mut joined) {
        match given.specialize {
            Specialize::Jit => {}
            Specialize::None => (known.one, known.divisible) = (false, false),
            Specialize::Only(names) => {
                known.one = false;
                known.divisible &= known.ty.starts_with('*') || names.iter().any(|name| name.value == param.name);
            }
        }
    }
    let compile = compilation(&function(), &call, &joined, given)?;
    let vanish: Vec<bool> = joined.iter().map(|k| k.one || k.ty.is_empty()).collect();
    let wide: Vec<bool> = joined.iter().map(|k| k.ty == "i64").collect();
    let launches = launches.iter().map(|launch| passed(launch, &vanish, &wide, &call.options)).collect();
    let class = class(&compile, given);
    Ok(Specialised { launches, compile, class })
}

fn known(at: usize, arg: &Arg, typed: bool, given: &Given<'_>) -> Result<Known, SpecialiseError> {
    let refused = |what| Err(SpecialiseError::Argument(at + 1, what));
    Ok(match arg {
        Arg::Pointer { buffer, offset } => {
            let (dtype, align) = (given.buffer)(buffer).unwrap_or((DType::U8, 1));
            let divisible = align.is_multiple_of(16) && offset.is_multiple_of(16);
            Known { ty: format!("*{}", name_of(dtype)), open: false, one: false, divisible }
        }
        Arg::Null => Known { ty: String::new(), open: false, one: false, divisible: false },
        Arg::Scalar { dtype, value: Scalar::Int(value) } if !dtype.is_float() && *dtype != DType::Bool => {
            Known { ty: name_of(*dtype).into(), open: !typed, one: *value == 1, divisible: value % 16 == 0 }
        }
        Arg::Scalar { dtype: DType::Bool, .. } => Known { ty: "u1".into(), open: false, one: false, divisible: false },
        Arg::Scalar { dtype, .. } => Known { ty: name_of(*dtype).into(), open: false, one: false, divisible: false },
        Arg::Struct(_) => return refused("a struct"),
        Arg::Pointers(_) => return refused("an array of pointers"),
        Arg::TensorMap(_) => return refused("a tensor map"),
    })
}

/// What holds for both arguments.
fn join(a: Known, b: Known) -> Result<Known, SpecialiseError> {
    let ty = match (a.ty == b.ty, a.open && b.open) {
        (true, _) => a.ty,
        (false, true) => "i64".into(),
        (false, false) => return Err(SpecialiseError::Differ("types of arguments")),
    };
    Ok(Known { ty, open: a.open && b.open, one: a.one && b.one, divisible: a.divisible && b.divisible })
}

fn compilation(
    function: &str,
    call: &TritonCall,
    known: &[Known],
    given: &Given<'_>,
) -> Result<TritonCompile, SpecialiseError> {
    let constant = |name: &str| given.params.iter().any(|p| p.constexpr && p.name == name);
    if let Some(name) = call.constexprs.keys().find(|name| !constant(name)) {
        return Err(SpecialiseError::NoConstant { function: function.into(), name: name.clone() });
    }
    let mut arguments = known.iter();
    let mut params = vec![];
    for param in given.params {
        let kind = if param.constexpr {
            match call.constexprs.get(&param.name).or_else(|| given.names.get(&param.name)) {
                Some(value) => TritonParamKind::Constant { value: value.clone() },
                None if param.default => TritonParamKind::Default { default: true },
                None => {
                    return Err(SpecialiseError::NoValue { function: function.into(), name: param.name.clone() });
                }
            }
        } else {
            match arguments.next() {
                Some(known) if known.one => TritonParamKind::Constant { value: TritonConst::Int(1) },
                Some(known) if known.ty.is_empty() => TritonParamKind::Constant { value: TritonConst::Null },
                Some(known) => TritonParamKind::Typed { ty: known.ty.clone(), divisible: known.divisible },
                None => continue,
            }
        };
        params.push(TritonParam { name: param.name.clone(), kind });
    }
    Ok(TritonCompile { params, options: call.options })
}

/// The launch with the arguments that the binary takes. The binary adds its own: see [`crate::record::contract`].
fn passed(launch: &Launch, vanish: &[bool], wide: &[bool], options: &TritonOptions) -> Launch {
    let Launch::Kernel(kernel) = launch else { return launch.clone() };
    let args = kernel.args.iter().enumerate().filter(|(at, _)| !vanish[*at]);
    let args = args.map(|(at, arg)| match arg {
        Arg::Scalar { dtype: DType::I32, value } if wide[at] => Arg::Scalar { dtype: DType::I64, value: *value },
        other => other.clone(),
    });
    Launch::Kernel(KernelLaunch {
        block: [options.threads(), 1, 1],
        args: args.collect(),
        triton: None,
        ..kernel.clone()
    })
}

/// What distinguishes a compilation from others of the same variant.
fn class(compile: &TritonCompile, given: &Given<'_>) -> String {
    let mut parts: Vec<String> = vec![];
    for param in &compile.params {
        let name = &param.name;
        let mut part = String::new();
        // Writing to a string cannot fail.
        let _ = match &param.kind {
            TritonParamKind::Constant { value } if !(given.tunables)(name) => write!(part, "{name}={value}"),
            TritonParamKind::Typed { ty, divisible } if ty.starts_with('*') => {
                if *divisible {
                    Ok(())
                } else {
                    write!(part, "{name}%1")
                }
            }
            TritonParamKind::Typed { ty, divisible } if ty.starts_with(['i', 'u']) => match (ty.as_str(), divisible) {
                ("i64", true) => write!(part, "{name}:i64%16"),
                ("i64", false) => write!(part, "{name}:i64"),
                (_, true) => write!(part, "{name}%16"),
                (_, false) => Ok(()),
            },
            _ => Ok(()),
        };
        if !part.is_empty() {
            parts.push(part);
        }
    }
    parts.join(",")
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

#[cfg(test)]
#[path = "triton_tests.rs"]
mod tests;
