//! The launches of a variant in Triton as an artifact describes them: the arguments that the machine code of one class takes, and what that machine code takes
//! for granted. Knows the rule of [`super::triton`] and the texts of [`super::description`]; knows no binary. Pure.
//!
//! | a compilation has | the launch assumes |
//! |---|---|
//! | a constant from an expression | that the expression has this value |
//! | a constant that is named like a dim or a param | that the dim or the param has this value |
//! | an integer argument without a stated type, as 32 bits | that the value fits |
//! | an argument that vanished | that the value is 1 |
//! | an integer that is a multiple of 16 | that the value is one |
//! | a tensor descriptor | that the expressions of its block have these values; what the tensor must be like, the contract adds |
//! | an address that is a multiple of 16 | that the offset in bytes is one; the tensor's own address is aligned as declared |
//!
//! What machine code assumes follows from the values of its class. Machine code that assumes less also serves values of other classes, because it was compiled
//! for any value.
//!
//! A declared launch that is not made at the shapes of the class, and whose function is therefore not compiled, is left out. That it is not made is then assumed
//! too.

use std::collections::BTreeMap;

use super::bound::{Launch, Problem};
use super::description::{ActionDescription, ArgDescription, LaunchDescription, LaunchSequence};
use super::dtype::DType;
use super::expr::{Expr, parse};
use super::kernel::{ArgDecl, ITERATION, Kernel, LaunchAction};
use super::triton::{
    ConstDecl, JitParam, Specialised, SpecialisedFunction, TritonCompile, TritonConst, TritonDecl, TritonParamKind,
};

/// What an argument divisible by it is specialised for.
const DIVISOR: u64 = 16;

/// Why launches cannot be described without a shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndescribedLaunch {
    /// The repetitions of a launch need several functions.
    #[error("the repetitions of the launch of `{0}` differ in what the function is compiled for")]
    Repetitions(String),
    /// Whether a launch is made depends on the repetition, and its function is not compiled at the shape.
    #[error("`when` of the launch of `{0}` depends on `{ITERATION}`, and some shapes do not launch it")]
    Condition(String),
}

/// What the description of launches in Triton is made of.
pub struct Described<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// A problem at a shape of the class.
    pub problem: &'a Problem,
    /// The parameters of each function, as the source declares them.
    pub functions: &'a BTreeMap<String, Vec<JitParam>>,
    /// The compilations of the class.
    pub specialised: &'a Specialised,
    /// The position of the declaration of each of its launches.
    pub declared: &'a [usize],
}

impl Described<'_> {
    /// The launches with the arguments that the machine code takes, and with what it assumes.
    ///
    /// # Errors
    /// Which machine code a launch needs depends on more than the shape.
    pub fn sequence(&self, mut sequence: LaunchSequence) -> Result<LaunchSequence, UndescribedLaunch> {
        let mut kept = vec![];
        let mut absent = vec![];
        for (at, mut launch) in std::mem::take(&mut sequence.launches).into_iter().enumerate() {
            if let ActionDescription::Kernel { .. } = &launch.action {
                let Some(function) = self.function(at, &launch)? else {
                    absent.extend(not_made(&launch)?);
                    continue;
                };
                self.describe(at, function, &mut launch, &sequence);
            }
            kept.push(launch);
        }
        // There is one: a sequence without a launch has no compilation.
        let first = kept.iter_mut().find_map(|launch| match &mut launch.action {
            ActionDescription::Kernel { assumes, .. } => Some(assumes),
            ActionDescription::Memset { .. } => None,
        });
        if let Some(assumes) = first {
            assumes.extend(absent);
        }
        sequence.launches = kept;
        Ok(sequence)
    }

    /// The function of a declared launch; none if it is not launched at the shapes of the class.
    fn function(
        &self,
        at: usize,
        launch: &LaunchDescription,
    ) -> Result<Option<&SpecialisedFunction>, UndescribedLaunch> {
        let bound = self.specialised.launches.iter().zip(self.declared).filter(|(_, declared)| **declared == at);
        let mut names: Vec<&str> = vec![];
        for (bound, _) in bound {
            if let Launch::Kernel(kernel) = bound
                && !names.contains(&kernel.entry.as_str())
            {
                names.push(&kernel.entry);
            }
        }
        let entry = entry_of(launch);
        match names.as_slice() {
            [one] => Ok(self.specialised.function(one)),
            [] => {
                // Another launch may have had the function compiled.
                let mut same = self.specialised.functions.iter().filter(|known| known.compile.function == entry);
                Ok(same.next().filter(|_| same.next().is_none()))
            }
            _ => Err(UndescribedLaunch::Repetitions(entry.into())),
        }
    }

    fn describe(
        &self,
        at: usize,
        function: &SpecialisedFunction,
        launch: &mut LaunchDescription,
        sequence: &LaunchSequence,
    ) {
        let SpecialisedFunction { entry: own, compile } = function;
        let params = self.functions.get(&compile.function).map_or(&[][..], Vec::as_slice);
        let bytes = |buffer: &str| {
            let workspace = || kernel_workspace(sequence, buffer);
            self.problem.tensor(buffer).map(|tensor| tensor.dtype).or_else(workspace).map_or(1, DType::bytes)
        };
        let decl = self.kernel.launches.get(at).map(|decl| &decl.action);
        let (
            Some(LaunchAction::Kernel { args: decls, triton, .. }),
            ActionDescription::Kernel { entry, block, args, assumes, .. },
        ) = (decl, &mut launch.action)
        else {
            return;
        };
        let mut assumed_here = constants(triton.as_deref(), self.problem, params, compile);
        let mut passed = vec![];
        for ((arg, decl), kind) in args.iter().zip(decls).zip(arguments(params, compile)) {
            assumed_here.extend(assumed(arg, decl, kind, self.problem, &bytes));
            passed.extend(taken(arg, kind));
        }
        *entry = own.clone();
        (*block, *args, *assumes) = (vec![compile.options.threads().to_string()], passed, assumed_here);
    }
}

fn entry_of(launch: &LaunchDescription) -> &str {
    match &launch.action {
        ActionDescription::Kernel { entry, .. } => entry,
        ActionDescription::Memset { .. } => "",
    }
}

/// That a launch is not made.
fn not_made(launch: &LaunchDescription) -> Result<Option<String>, UndescribedLaunch> {
    if let Some(when) = &launch.when {
        let uses_iteration = parse(when).is_ok_and(|tree| tree.names.iter().any(|name| name == ITERATION));
        return match uses_iteration {
            true => Err(UndescribedLaunch::Condition(entry_of(launch).into())),
            false => Ok(Some(format!("not ({when})"))),
        };
    }
    Ok(launch.repeat.as_ref().map(|times| format!("({times}) <= 0")))
}

fn kernel_workspace(sequence: &LaunchSequence, name: &str) -> Option<DType> {
    sequence.workspaces.iter().find(|workspace| workspace.name == name).map(|workspace| workspace.dtype)
}

/// What became of each argument, in order.
fn arguments<'a>(params: &'a [JitParam], compile: &'a TritonCompile) -> impl Iterator<Item = &'a TritonParamKind> {
    params.iter().zip(&compile.params).filter(|(param, _)| !param.constexpr).map(|(_, compiled)| &compiled.kind)
}

/// What is assumed of the values of constants: those that follow from a shape or from a param.
fn constants(
    decl: Option<&TritonDecl>,
    problem: &Problem,
    params: &[JitParam],
    compile: &TritonCompile,
) -> Vec<String> {
    let mut all = vec![];
    for (param, compiled) in params.iter().zip(&compile.params).filter(|(param, _)| param.constexpr) {
        let TritonParamKind::Constant { value } = &compiled.kind else { continue };
        let stated = decl.and_then(|decl| decl.constexprs.iter().find(|(name, _)| name.value == param.name));
        match (stated.map(|(_, stated)| stated), value) {
            (Some(ConstDecl::NextPow2(expr)), TritonConst::Int(power)) if varies(expr, problem) => {
                let text = expr.text();
                if *power > 1 {
                    all.push(format!("({text}) > {}", power / 2));
                }
                all.push(format!("({text}) <= {power}"));
            }
            (Some(ConstDecl::Value(expr)), value) if varies(expr, problem) => all.extend(equals(expr.text(), value)),
            (Some(_), _) => {}
            (None, value) if is_variable(&param.name, problem) => all.extend(equals(&param.name, value)),
            (None, _) => {}
        }
    }
    all
}

/// Whether an expression depends on a shape, a param or the number of a repetition.
fn varies(expr: &Expr, problem: &Problem) -> bool {
    expr.names().any(|name| name == ITERATION || is_variable(name, problem))
}

fn is_variable(name: &str, problem: &Problem) -> bool {
    problem.dims.contains_key(name) || problem.param(name).is_some()
}

/// That an expression has a value.
fn equals(text: &str, value: &TritonConst) -> Option<String> {
    Some(match value {
        TritonConst::Bool(true) => format!("({text})"),
        TritonConst::Bool(false) => format!("not ({text})"),
        TritonConst::Int(value) => format!("({text}) == {value}"),
        TritonConst::Float { float } => format!("({text}) == {float}"),
        TritonConst::Str(value) => format!("({text}) == \"{value}\""),
        TritonConst::Null | TritonConst::Dtype { .. } => return None,
    })
}

/// What is assumed of an argument.
fn assumed(
    arg: &ArgDescription,
    decl: &ArgDecl,
    kind: &TritonParamKind,
    problem: &Problem,
    bytes: &dyn Fn(&str) -> u64,
) -> Vec<String> {
    match (arg, kind) {
        (ArgDescription::Scalar(scalar), kind) => {
            let value = &scalar.value;
            let (is_int, is_divisible) = match kind {
                TritonParamKind::Typed { ty, divisible } => (ty.starts_with(['i', 'u']) && ty != "u1", *divisible),
                TritonParamKind::Constant { .. } => (true, false),
                TritonParamKind::Default { .. } => (false, false),
            };
            let is_wide = matches!(kind, TritonParamKind::Typed { ty, .. } if ty == "i64");
            let mut all = vec![];
            if is_int && !is_wide && is_open(decl, problem) {
                all.push(format!("({value}) >= {} and ({value}) <= {}", i32::MIN, i32::MAX));
            }
            if is_divisible {
                all.push(format!("({value}) % {DIVISOR} == 0"));
            }
            if matches!(kind, TritonParamKind::Constant { .. }) {
                all.push(format!("({value}) == 1"));
            }
            all
        }
        (ArgDescription::Pointer { buffer, offset: Some(offset) }, TritonParamKind::Typed { divisible: true, .. })
            if !bytes(buffer).is_multiple_of(DIVISOR) =>
        {
            vec![format!("({offset}) * {} % {DIVISOR} == 0", bytes(buffer))]
        }
        (ArgDescription::Descriptor { .. }, TritonParamKind::Typed { ty, .. }) => block_of(decl, ty, problem),
        _ => vec![],
    }
}

/// That a descriptor has the block that it was compiled for.
fn block_of(decl: &ArgDecl, ty: &str, problem: &Problem) -> Vec<String> {
    let ArgDecl::TensorMap(map) = decl else { return vec![] };
    let block = ty.split_once('[').map_or("", |(_, block)| block.trim_end_matches("]>"));
    let of_axes = map.tile.iter().rev().zip(block.split(", "));
    of_axes
        .filter(|(expr, _)| varies(expr, problem))
        .map(|(expr, extent)| format!("({}) == {extent}", expr.text()))
        .collect()
}

/// Whether the type of an integer argument is not stated.
fn is_open(decl: &ArgDecl, problem: &Problem) -> bool {
    let ArgDecl::Plain(expr) = decl else { return false };
    expr.as_name().is_none_or(|name| problem.param(name).is_none())
}

/// The argument as the machine code takes it; none if it vanished.
fn taken(arg: &ArgDescription, kind: &TritonParamKind) -> Option<ArgDescription> {
    let TritonParamKind::Typed { ty, .. } = kind else { return None };
    let mut arg = arg.clone();
    if let ArgDescription::Scalar(scalar) = &mut arg
        && scalar.dtype == DType::I32
        && ty == "i64"
    {
        scalar.dtype = DType::I64;
    }
    Some(arg)
}

#[cfg(test)]
#[path = "triton_description_tests.rs"]
mod tests;
