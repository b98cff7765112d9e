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
//! | an address that is a multiple of 16 | that the offset in bytes is one; the tensor's own address is aligned as declared |
//!
//! What machine code assumes follows from the values of its class. Machine code that assumes less also serves values of other classes, because it was compiled
//! for any value.

use super::bound::Problem;
use super::description::{ActionDescription, ArgDescription, LaunchSequence};
use super::dtype::DType;
use super::expr::Expr;
use super::kernel::{ArgDecl, ITERATION, Kernel, LaunchAction};
use super::triton::{ConstDecl, JitParam, TritonCompile, TritonConst, TritonDecl, TritonParamKind};

/// What an argument divisible by it is specialised for.
const DIVISOR: u64 = 16;

/// The launches with the arguments that the machine code of a compilation takes, and with what it assumes. `params` are the parameters of the function, as its
/// source declares them, and `problem` is one at a shape of the class.
pub fn described(
    mut sequence: LaunchSequence,
    kernel: &Kernel,
    problem: &Problem,
    params: &[JitParam],
    compile: &TritonCompile,
) -> LaunchSequence {
    let bytes = |buffer: &str| {
        let workspace = || kernel_workspace(&sequence, buffer);
        problem.tensor(buffer).map(|tensor| tensor.dtype).or_else(workspace).map_or(1, DType::bytes)
    };
    let described: Vec<Option<(Vec<ArgDescription>, Vec<String>)>> = kernel
        .launches
        .iter()
        .zip(&sequence.launches)
        .map(|(decl, launch)| {
            let (LaunchAction::Kernel { args: decls, triton, .. }, ActionDescription::Kernel { args, .. }) =
                (&decl.action, &launch.action)
            else {
                return None;
            };
            let mut assumes = constants(triton.as_deref(), problem, params, compile);
            let mut passed = vec![];
            for ((arg, decl), kind) in args.iter().zip(decls).zip(arguments(params, compile)) {
                assumes.extend(assumed(arg, decl, kind, problem, &bytes));
                passed.extend(taken(arg, kind));
            }
            Some((passed, assumes))
        })
        .collect();
    let threads = compile.options.threads().to_string();
    for (launch, found) in sequence.launches.iter_mut().zip(described) {
        if let (ActionDescription::Kernel { block, args, assumes, .. }, Some((own, assumed))) =
            (&mut launch.action, found)
        {
            (*block, *args, *assumes) = (vec![threads.clone()], own, assumed);
        }
    }
    sequence
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
        _ => vec![],
    }
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
