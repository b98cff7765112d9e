//! The rule by which Triton's own launcher specialises functions, for a sequence of launches. Knows arguments, constants and options; does not know the
//! compiler. Pure.
//!
//! | argument | compiled as |
//! |---|---|
//! | an integer that is 1 | a constant: the parameter vanishes |
//! | an integer that is a multiple of 16, also 0 | its type, divisible by 16 |
//! | an integer from 2^31 without a stated type | `i64` |
//! | an address that is a multiple of 16 | its type, divisible by 16 |
//! | a null pointer | the constant `None` |
//! | a tensor descriptor | its element type and block: `tensordesc<fp16[128, 64]>` |
//! | anything else | its type |
//!
//! Launches with one entry, equal constants, equal options and the same types of arguments share one compilation. An argument is then specialised only as far
//! as it is in each of them: one that is 1 in the first and 2 in the second launch is a plain `i32`. All other launches have compilations of their own. The
//! functions of a sequence are in the order in which they are launched first. The second one that a function of the source becomes is called `f#2`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::bound::{Arg, KernelLaunch, Launch, Scalar};
use super::dtype::DType;
use super::triton::{
    DESCRIPTOR, JitParam, Specialize, TritonCall, TritonCompile, TritonConst, TritonOptions, TritonParam,
    TritonParamKind, name_of,
};

/// A sequence of launches with the compilations that it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Specialised {
    /// The launches with the arguments that the binary takes. Their entries are the names of [`Specialised::functions`].
    pub launches: Vec<Launch>,
    /// The functions, in the order in which they are launched first.
    pub functions: Vec<SpecialisedFunction>,
    /// What distinguishes it from other compilations of the variant: `BLOCK=1024,cols%16`. With several functions, what distinguishes each.
    pub class: String,
}

impl Specialised {
    /// The names of the functions, in order.
    pub fn entries(&self) -> Vec<String> {
        self.functions.iter().map(|function| function.entry.clone()).collect()
    }

    /// What the functions are compiled for, in order.
    pub fn compiles(&self) -> Vec<TritonCompile> {
        self.functions.iter().map(|function| function.compile.clone()).collect()
    }

    /// The function of that name.
    pub fn function(&self, entry: &str) -> Option<&SpecialisedFunction> {
        self.functions.iter().find(|function| function.entry == entry)
    }
}

/// A function of a sequence of launches.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecialisedFunction {
    /// Its name in launches.
    pub entry: String,
    /// What it is compiled for.
    pub compile: TritonCompile,
}

/// Why launches do not fit the functions that they launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecialiseError {
    /// No launch is left for this shape.
    #[error("it launches no function at this shape")]
    NoLaunch,
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
    #[error("argument {at} is {what}, which a Triton kernel cannot take")]
    Argument {
        /// The function.
        function: String,
        /// The number of the argument, from 1.
        at: usize,
        /// What it is.
        what: &'static str,
    },
}

impl SpecialiseError {
    /// The function that is concerned.
    pub fn function(&self) -> Option<&str> {
        match self {
            SpecialiseError::NoLaunch => None,
            SpecialiseError::Count { function, .. }
            | SpecialiseError::NoValue { function, .. }
            | SpecialiseError::NoConstant { function, .. }
            | SpecialiseError::Argument { function, .. } => Some(function),
        }
    }
}

/// What the specialisation of a sequence of launches depends on besides the launches.
pub struct Given<'a> {
    /// The parameters of each function, as the source declares them.
    pub functions: &'a BTreeMap<String, Vec<JitParam>>,
    /// The function of the first declared launch. A sequence of it alone needs no name of a function in its class.
    pub first: Option<&'a str>,
    /// Values of tunables, dims, params and types, for constants that are named like them.
    pub names: &'a BTreeMap<String, TritonConst>,
    /// Those of them that differ between the variants of a kernel, which its name shows.
    pub tunables: &'a dyn Fn(&str) -> bool,
    /// Whether options depend on more than tunables.
    pub open_options: bool,
    /// Which arguments count.
    pub specialize: &'a Specialize,
    /// The element type and the alignment of a tensor or workspace.
    pub buffer: &'a dyn Fn(&str) -> Option<(DType, u64)>,
}

impl Given<'_> {
    /// The parameters of a function.
    fn params(&self, function: &str) -> &[JitParam] {
        self.functions.get(function).map_or(&[][..], Vec::as_slice)
    }
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

/// Launches that share a compilation.
struct Group {
    function: String,
    call: TritonCall,
    known: Vec<Known>,
}

/// Specialises a sequence of launches.
///
/// # Errors
/// The launches do not fit the functions.
pub fn specialise(launches: &[Launch], given: &Given<'_>) -> Result<Specialised, SpecialiseError> {
    let mut groups: Vec<Group> = vec![];
    let mut of: Vec<Option<usize>> = vec![];
    for launch in launches {
        of.push(match launch {
            Launch::Kernel(kernel) => Some(grouped(kernel, given, &mut groups)?),
            Launch::Memset { .. } => None,
        });
    }
    if groups.is_empty() {
        return Err(SpecialiseError::NoLaunch);
    }
    let mut functions: Vec<SpecialisedFunction> = vec![];
    for group in &mut groups {
        let takes = given.params(&group.function).iter().filter(|param| !param.constexpr);
        for (param, known) in takes.zip(&mut group.known) {
            match given.specialize {
                Specialize::Jit => {}
                Specialize::None => (known.one, known.divisible) = (false, false),
                Specialize::Only(names) => {
                    known.one = false;
                    known.divisible &= known.ty.starts_with('*') || names.iter().any(|name| name.value == param.name);
                }
            }
        }
        let compile = compilation(group, given)?;
        let before = functions.iter().filter(|known| known.compile.function == group.function).count();
        let entry = if before == 0 { group.function.clone() } else { format!("{}#{}", group.function, before + 1) };
        functions.push(SpecialisedFunction { entry, compile });
    }
    let passed = launches.iter().zip(&of).map(|(launch, at)| match (launch, at) {
        (Launch::Kernel(kernel), Some(at)) => Launch::Kernel(passed(kernel, &groups[*at], &functions[*at].entry)),
        (other, _) => other.clone(),
    });
    Ok(Specialised { launches: passed.collect(), class: class(&functions, given), functions })
}

/// The position of the group of a launch, which may be a new one.
fn grouped(kernel: &KernelLaunch, given: &Given<'_>, groups: &mut Vec<Group>) -> Result<usize, SpecialiseError> {
    let call = kernel.triton.as_deref().cloned().unwrap_or_default();
    let takes = given.params(&kernel.entry).iter().filter(|param| !param.constexpr);
    let takes: Vec<String> = takes.map(|param| param.name.clone()).collect();
    if kernel.args.len() != takes.len() {
        return Err(SpecialiseError::Count { function: kernel.entry.clone(), has: kernel.args.len(), takes });
    }
    let mut known_args = vec![];
    for (at, arg) in kernel.args.iter().enumerate() {
        let typed = call.typed.get(at).copied().unwrap_or(true);
        known_args.push(known(arg, typed, given).map_err(|what| SpecialiseError::Argument {
            function: kernel.entry.clone(),
            at: at + 1,
            what,
        })?);
    }
    let same = |group: &Group| {
        group.function == kernel.entry
            && group.call.constexprs == call.constexprs
            && group.call.options == call.options
            && group.known.iter().zip(&known_args).all(|(a, b)| joined_type(a, b).is_some())
    };
    if let Some(at) = groups.iter().position(same) {
        for (group, own) in groups[at].known.iter_mut().zip(&known_args) {
            join(group, own);
        }
        return Ok(at);
    }
    groups.push(Group { function: kernel.entry.clone(), call, known: known_args });
    Ok(groups.len() - 1)
}

/// What is known of an argument; an error names what a Triton function cannot take.
fn known(arg: &Arg, typed: bool, given: &Given<'_>) -> Result<Known, &'static str> {
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
        Arg::Struct(_) => return Err("a struct"),
        Arg::Pointers(_) => return Err("an array of pointers"),
        Arg::TensorMap(map) if map.descriptor => {
            let block = map.block().map(|extent| extent.to_string()).collect::<Vec<_>>().join(", ");
            let ty = format!("{DESCRIPTOR}{}[{block}]>", name_of(map.dtype));
            Known { ty, open: false, one: false, divisible: false }
        }
        Arg::TensorMap(_) => return Err("a tensor map with a `box`"),
    })
}

/// The type that serves both arguments, if there is one.
fn joined_type(a: &Known, b: &Known) -> Option<String> {
    match (a.ty == b.ty, a.open && b.open) {
        (true, _) => Some(a.ty.clone()),
        (false, true) => Some("i64".into()),
        (false, false) => None,
    }
}

/// Keeps what also holds for the other argument.
fn join(known: &mut Known, other: &Known) {
    if let Some(ty) = joined_type(known, other) {
        known.ty = ty;
    }
    known.open &= other.open;
    known.one &= other.one;
    known.divisible &= other.divisible;
}

fn compilation(group: &Group, given: &Given<'_>) -> Result<TritonCompile, SpecialiseError> {
    let Group { function, call, known } = group;
    let declared = given.params(function);
    let constant = |name: &str| declared.iter().any(|p| p.constexpr && p.name == name);
    if let Some(name) = call.constexprs.keys().find(|name| !constant(name)) {
        return Err(SpecialiseError::NoConstant { function: function.clone(), name: name.clone() });
    }
    let mut arguments = known.iter();
    let mut params = vec![];
    for param in declared {
        let kind = if param.constexpr {
            match call.constexprs.get(&param.name).or_else(|| given.names.get(&param.name)) {
                Some(value) => TritonParamKind::Constant { value: value.clone() },
                None if param.default => TritonParamKind::Default { default: true },
                None => {
                    return Err(SpecialiseError::NoValue { function: function.clone(), name: param.name.clone() });
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
    Ok(TritonCompile { function: function.clone(), params, options: call.options })
}

/// The launch with the arguments that the binary takes. The binary adds its own: see [`crate::record::contract`].
fn passed(kernel: &KernelLaunch, group: &Group, entry: &str) -> KernelLaunch {
    let args = kernel.args.iter().zip(&group.known).filter(|(_, known)| !known.one && !known.ty.is_empty());
    let args = args.map(|(arg, known)| match arg {
        Arg::Scalar { dtype: DType::I32, value } if known.ty == "i64" => {
            Arg::Scalar { dtype: DType::I64, value: *value }
        }
        other => other.clone(),
    });
    KernelLaunch {
        entry: entry.into(),
        block: [group.call.options.threads(), 1, 1],
        args: args.collect(),
        triton: None,
        ..kernel.clone()
    }
}

/// What distinguishes the compilations of a sequence from others of the same variant: `BLOCK=64,n%16`, or `partial(k%16);reduce(n%16)`.
fn class(functions: &[SpecialisedFunction], given: &Given<'_>) -> String {
    if let [only] = functions
        && Some(only.compile.function.as_str()) == given.first
    {
        return of_function(&only.compile, given);
    }
    let each = functions.iter().map(|f| format!("{}({})", f.entry, of_function(&f.compile, given)));
    each.collect::<Vec<_>>().join(";")
}

/// What distinguishes a function's compilation.
fn of_function(compile: &TritonCompile, given: &Given<'_>) -> String {
    let mut parts: Vec<String> = vec![];
    for param in &compile.params {
        let name = &param.name;
        let is_shown = |value: &TritonConst| !(given.tunables)(name) || given.names.get(name) != Some(value);
        let mut part = String::new();
        // Writing to a string cannot fail.
        let _ = match &param.kind {
            TritonParamKind::Constant { value } if is_shown(value) => write!(part, "{name}={value}"),
            TritonParamKind::Typed { ty, divisible } if ty.starts_with('*') => {
                if *divisible {
                    Ok(())
                } else {
                    write!(part, "{name}%1")
                }
            }
            TritonParamKind::Typed { ty, .. } if ty.starts_with(DESCRIPTOR) => {
                let block = ty.split_once('[').map_or("", |(_, block)| block.trim_end_matches("]>"));
                write!(part, "{name}:{}", block.replace(", ", "x"))
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
    if given.open_options {
        let TritonOptions { num_warps, num_stages, num_ctas, maxnreg, enable_fp_fusion } = compile.options;
        parts.push(format!("num_warps={num_warps}"));
        parts.push(format!("num_stages={num_stages}"));
        parts.push(format!("num_ctas={num_ctas}"));
        parts.extend(maxnreg.map(|most| format!("maxnreg={most}")));
        parts.extend((!enable_fp_fusion).then(|| "enable_fp_fusion=false".to_string()));
    }
    parts.join(",")
}

#[cfg(test)]
#[path = "specialise_tests.rs"]
mod tests;
