//! Checks a kernel against its package: the operator and targets that it names, the names in its expressions, and whether every shape is served and binds.

use super::operator::{declared, duplicates, identifier};
use crate::model::agent::RULES;
use crate::model::expr::{Expr, Value, list};
use crate::model::grid::{OCCUPANCY, SM_COUNT};
use crate::model::kernel::{ArgDecl, ITERATION, Kernel, LaunchAction, LaunchDecl, Per};
use crate::model::launch::{BLOCK_LIMITS, block_too_large};
use crate::model::operator::{Operator, Shape, TypeChoice};
use crate::model::package::Package;
use crate::model::search::Strategy;
use crate::model::target::Target;
use crate::model::variant::Variant;
use crate::model::{Arch, Place, Role, Text, dtype};
use kforge_foundation::base::{Diagnostic, Severity};

/// Errors for operators and targets that a kernel names but that do not exist.
pub(super) fn tables(package: &Package, kernel: &Kernel) -> Vec<Diagnostic> {
    let mut found = targets(package, kernel);
    if package.operator(&kernel.operator).is_none() && !kernel.operator.is_empty() {
        let known: Vec<&str> = package.operators.iter().map(|o| o.name.as_str()).collect();
        let message = format!("unknown operator `{}`", kernel.operator);
        let error = kernel.operator_place.error("manifest.unknown-operator", message);
        let expected = if known.is_empty() {
            "an `[operator.*]` of this manifest".into()
        } else {
            format!("one of {}", list(&known))
        };
        found.push(error.expected(expected).suggest(&kernel.operator, known));
    }
    found
}

/// Errors of a kernel together with its operator.
pub(super) fn kernel(package: &Package, kernel: &Kernel) -> Vec<Diagnostic> {
    let mut found = vec![];
    let Some(operator) = package.operator(&kernel.operator) else {
        // The names in its expressions cannot be checked, because they may belong to the operator.
        if !(kernel.partial || kernel.is_ungenerated() || kernel.is_unstarted()) {
            methods(kernel, &mut found);
        }
        return found;
    };
    rounds(package, kernel, &mut found);
    found.extend(with_operator(package, operator, kernel, kernel.rounds.is_some()));
    found
}

/// Errors for shapes that no kernel of their operator serves, on any target. A kernel may leave shapes to other kernels with `requires`.
pub(super) fn unserved(package: &Package, operator: &Operator) -> Vec<Diagnostic> {
    let kernels: Vec<&Kernel> = package.kernels.iter().filter(|k| k.operator == operator.name).collect();
    let unknown = |k: &&Kernel| k.partial || k.broken || k.rounds.is_some() || k.is_ungenerated() || k.is_unstarted();
    // A kernel without conditions serves all, and what a kernel serves that is not known or not written yet, is not known either.
    if operator.partial || operator.broken || kernels.iter().any(|k| unknown(k) || k.requires.is_empty()) {
        return vec![];
    }
    let mut found = vec![];
    for choice in operator.choices() {
        let mut served = vec![false; operator.shapes.len()];
        for kernel in &kernels {
            for target in kernel.targets.iter().filter_map(|name| package.targets.get(name)) {
                // An error in a condition has been reported for its kernel.
                let Ok(own) = kernel.served(target, operator, &choice) else { return vec![] };
                served.iter_mut().zip(own).for_each(|(any, own)| *any |= own);
            }
        }
        let left = operator.shapes.iter().zip(served).filter(|(_, served)| !served && !kernels.is_empty());
        found.extend(left.map(|(shape, _)| {
            let types = if choice.label.is_empty() { String::new() } else { format!(" with {}", choice.label) };
            let message = match kernels.as_slice() {
                [only] => format!("no variant of kernel `{}` serves shape `{}`{types}", only.name, shape.name),
                _ => format!("no kernel of operator `{}` serves shape `{}`{types}", operator.name, shape.name),
            };
            let conditions = kernels.iter().flat_map(|kernel| &kernel.requires);
            unserved_shape(shape, message, conditions, "`requires` of at least one kernel holds for every shape")
        }));
    }
    found
}

/// The error for a shape that the conditions of kernels exclude.
fn unserved_shape<'a>(
    shape: &Shape,
    message: String,
    conditions: impl Iterator<Item = &'a Expr>,
    expected: &str,
) -> Diagnostic {
    let mut error = shape.place.error("manifest.unserved-shape", message);
    for condition in conditions {
        error = error.see(&condition.place().file, condition.place().span.clone(), "required here");
    }
    error.expected(expected).hint("add a variant or a kernel that serves it, or relax `requires`")
}

/// Errors of a kernel together with an operator, whoever wrote the kernel.
pub fn written(package: &Package, operator: &Operator, kernel: &Kernel) -> Vec<Diagnostic> {
    with_operator(package, operator, kernel, true)
}

/// Errors of a kernel together with an operator. If `all`, the kernel must serve every shape, otherwise at least one.
fn with_operator(package: &Package, operator: &Operator, kernel: &Kernel, all: bool) -> Vec<Diagnostic> {
    let mut found = vec![];
    // A kernel that is not generated yet has nothing to check. Errors of its template have been reported.
    if operator.partial || kernel.partial || kernel.is_ungenerated() || kernel.is_unstarted() {
        return found;
    }
    names(kernel, operator, &mut found);
    found.extend(emulated_host(package, kernel));
    found.extend(super::triton::kernel(package, operator, kernel));
    found.extend(super::torch::kernel(operator, kernel));
    launches(kernel, operator, &mut found);
    methods(kernel, &mut found);
    if kernel.broken || operator.broken || found.iter().any(|d| d.severity == Severity::Error) {
        return found;
    }
    for target in kernel.targets.iter().filter_map(|t| package.targets.get(t)) {
        for choice in operator.choices() {
            if let Err(error) = serves(kernel, operator, target, &choice, all, &mut found) {
                found.push(error);
            }
        }
    }
    found
}

/// A kernel's own launcher calls CUDA's runtime, which the emulator does not have.
fn emulated_host(package: &Package, kernel: &Kernel) -> Option<Diagnostic> {
    let host = kernel.host.as_ref()?;
    let named = |name: &&String| package.targets.get(*name).is_some_and(|target| target.arch == Arch::Cpu);
    let target = kernel.targets.iter().find(named)?;
    let message = format!("kernel `{}` has its own launcher, but target `{target}` is emulated", kernel.name);
    let error = host.place.error("manifest.host", message).expected("targets with a GPU's architecture");
    Some(error.hint("list the other targets in `targets`"))
}

fn targets(package: &Package, kernel: &Kernel) -> Vec<Diagnostic> {
    let mut found = vec![];
    let known: Vec<&str> = package.targets.keys().map(String::as_str).collect();
    for (i, (name, place)) in kernel.targets.iter().zip(&kernel.target_places).enumerate() {
        if !known.contains(&name.as_str()) {
            let error = place.error("manifest.unknown-target", format!("unknown target `{name}`"));
            found.push(error.expected(format!("one of {}", list(&known))).suggest(name, known.iter().copied()));
        } else if kernel.targets[..i].contains(name) {
            found.push(
                place
                    .error("manifest.duplicate-name", format!("target `{name}` is named twice"))
                    .expected("each target once"),
            );
        }
    }
    found
}

/// Checks the agents that rounds name, and the variant from which they start.
fn rounds(package: &Package, kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let Some(rounds) = &kernel.rounds else { return };
    let known: Vec<&str> = std::iter::once(RULES).chain(package.agents.iter().map(|a| a.name.as_str())).collect();
    for named in std::iter::once(&rounds.agent).chain(&rounds.judge).filter(|n| !known.contains(&n.as_str())) {
        let error = named.place.error("manifest.unknown-agent", format!("unknown agent `{named}`"));
        found.push(error.expected(format!("one of {}", list(&known))).suggest(&named.value, known.iter().copied()));
    }
    if kernel.search.strategy != Strategy::Exhaustive {
        let message = format!("kernel `{}` has rounds and a search over its tunables", kernel.name);
        let error = rounds.agent.place.error("manifest.conflict", message);
        found.push(error.expected("`generate.agent` or `tune.strategy`: each says which variants are tried"));
    }
    if kernel.is_ungenerated() || kernel.is_unstarted() {
        return;
    }
    let tunables: Vec<&str> = kernel.tune.iter().map(|t| t.0.as_str()).collect();
    for (name, value) in rounds.start.values() {
        match kernel.tune.iter().find(|(own, _)| own.value == name.value) {
            None => {
                let error = name.place.error("manifest.unknown-tunable", format!("`start` names no tunable: `{name}`"));
                let expected = format!("one of {}", list(&tunables));
                found.push(error.expected(expected).suggest(&name.value, tunables.iter().copied()));
            }
            Some((_, values)) if !values.contains(value) => {
                let error = name.place.error("manifest.value", format!("`{name}` is never `{value}`"));
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                found.push(error.expected(format!("one of {}", list(&values))));
            }
            Some(_) => {}
        }
    }
}

fn names(kernel: &Kernel, operator: &Operator, found: &mut Vec<Diagnostic>) {
    found.extend(kernel.tune.iter().filter_map(|(name, _)| identifier(name)));
    let tunables = kernel.tune.iter().map(|(name, _)| ("tunable", name));
    let buffers = kernel.workspace.iter().map(|b| ("workspace", &b.name));
    // Names that the operator declares twice were reported when the operator was read.
    let own = duplicates(declared(operator)).len();
    found.extend(duplicates(declared(operator).into_iter().chain(tunables).chain(buffers)).into_iter().skip(own));
    let types: Vec<&str> = operator.types.iter().map(|t| t.0.as_str()).collect();
    for text in kernel.type_uses.iter().filter(|t| !types.contains(&t.as_str())) {
        let known: Vec<&str> = types.iter().copied().chain(crate::model::DType::ALL.iter().map(|d| d.name())).collect();
        let error = text.place.error("manifest.dtype", format!("unknown dtype `{text}`"));
        found.push(dtype::suggest(error.expected(format!("one of {}", list(&known))), &text.value, known));
    }
    let tunables: Vec<&str> = kernel.tune.iter().map(|t| t.0.as_str()).collect();
    let of_where: Vec<&str> = tunables.iter().copied().chain(types).chain(["target", "arch"]).collect();
    found.extend(kernel.conditions.iter().flat_map(|e| e.check_names(&of_where)));
    let all = scope_names(kernel, operator);
    found.extend(kernel.requires.iter().flat_map(|e| e.check_names(&all)));
    found.extend(kernel.workspace.iter().flat_map(|b| &b.shape).flat_map(|e| e.check_names(&all)));
    if let Per::Value(expr) = &kernel.select.per {
        found.extend(expr.check_names(&operator.names()));
    }
    let inputs: Vec<&str> =
        operator.tensors.iter().filter(|t| t.role == Role::Input).map(|t| t.name.as_str()).collect();
    for (_, buffer) in kernel.constants.iter().filter(|(_, b)| !inputs.contains(&b.as_str())) {
        let error = buffer.place.error("manifest.unknown-tensor", format!("no input is called `{buffer}`"));
        found.push(error.expected(format!("one of {}", list(&inputs))).suggest(&buffer.value, inputs.iter().copied()));
    }
}

/// Names that expressions over dims in a kernel may use.
fn scope_names<'a>(kernel: &'a Kernel, operator: &'a Operator) -> Vec<&'a str> {
    operator.names().into_iter().chain(kernel.tune.iter().map(|t| t.0.as_str())).collect()
}

fn launches(kernel: &Kernel, operator: &Operator, found: &mut Vec<Diagnostic>) {
    let scope = scope_names(kernel, operator);
    let buffers: Vec<&str> = operator
        .tensors
        .iter()
        .map(|t| t.name.as_str())
        .chain(kernel.workspace.iter().map(|b| b.name.as_str()))
        .collect();
    let before = |at: usize| at.checked_sub(1).and_then(|at| kernel.launches.get(at));
    for (launch, before) in kernel.launches.iter().enumerate().map(|(at, launch)| (launch, before(at))) {
        let mut known = scope.clone();
        found.extend(launch.repeat.iter().flat_map(|e| e.check_names(&known)));
        if launch.repeat.is_some() {
            known.push(ITERATION);
        }
        found.extend(launch.when.iter().flat_map(|e| e.check_names(&known)));
        match &launch.action {
            LaunchAction::Memset { buffer, .. } => {
                found.extend(no_buffer(buffer, &buffers));
                if operator.tensors.iter().any(|t| t.role == Role::Input && t.name.value == buffer.value) {
                    let error =
                        buffer.place.error("manifest.input-written", format!("input `{buffer}` must not be written"));
                    found.push(error.expected("an output, an inout or a workspace"));
                }
            }
            LaunchAction::Kernel { entry, grid, block, shared, args, attributes, triton } => {
                let of_grid: Vec<&str> = known.iter().copied().chain([SM_COUNT, OCCUPANCY]).collect();
                found.extend(grid.iter().flat_map(|e| e.check_names(&of_grid)));
                let extents = block.iter().chain(shared).chain(&attributes.cluster);
                found.extend(extents.flat_map(|e| e.check_names(&known)));
                found.extend(attributes.pdl.as_ref().and_then(|place| waits_for_none(place, launch, before)));
                literal_block(block, found);
                match triton {
                    Some(triton) => {
                        found.extend(super::triton::launch(entry, triton, args, &launch.arg_places, &known))
                    }
                    None => found.extend(args.iter().filter_map(descriptor)),
                }
                for arg in args {
                    argument(arg, &known, &buffers, found);
                }
            }
        }
    }
}

/// The error for a launch that is to begin before a kernel ends, although no kernel is launched right before it.
fn waits_for_none(place: &Place, launch: &LaunchDecl, before: Option<&LaunchDecl>) -> Option<Diagnostic> {
    let why = match before {
        _ if launch.repeat.is_some() => return None,
        None => "no kernel is launched before it",
        Some(LaunchDecl { action: LaunchAction::Memset { .. }, when: None, .. }) => "a memset is launched before it",
        Some(_) => return None,
    };
    let error = place.error("manifest.conflict", format!("`pdl` has no effect here: {why}"));
    Some(error.expected("`pdl` on the launch that follows a kernel"))
}

/// Checks blocks that are literal numbers. Blocks with expressions are checked for each variant.
fn literal_block(block: &[Expr], found: &mut Vec<Diagnostic>) {
    let numbers: Vec<i64> =
        block.iter().filter_map(|e| if let Some(Value::Int(i)) = e.as_literal() { Some(i) } else { None }).collect();
    let all = numbers.iter().try_fold(1u64, |n, i| n.checked_mul(u64::try_from(*i).ok()?)).unwrap_or(u64::MAX);
    if numbers.len() == block.len() && all > BLOCK_LIMITS.1 && numbers.iter().all(|n| *n > 0) {
        found.push(block_too_large(block, all));
    }
}

/// The error of a tensor descriptor in a launch that is not in Triton.
fn descriptor(arg: &ArgDecl) -> Option<Diagnostic> {
    let ArgDecl::TensorMap(map) = arg else { return None };
    map.descriptor.then(|| {
        let error =
            map.tile_place.error("manifest.arg", "only kernels in Triton take descriptors with a `block_shape`");
        error.expected("`box`: elements that one copy moves, the innermost axis first")
    })
}

fn argument(arg: &ArgDecl, known: &[&str], buffers: &[&str], found: &mut Vec<Diagnostic>) {
    match arg {
        ArgDecl::Plain(expr) => {
            let all: Vec<&str> =
                if expr.as_name().is_some() { known.iter().chain(buffers).copied().collect() } else { known.to_vec() };
            found.extend(expr.check_names(&all).into_iter().map(|e| as_argument(e, expr, buffers)));
        }
        ArgDecl::Value { value, .. } => {
            found.extend(value.check_names(known).into_iter().map(|e| as_argument(e, value, buffers)))
        }
        ArgDecl::Ptr { buffer, offset } => {
            found.extend(no_buffer(buffer, buffers));
            found.extend(offset.iter().flat_map(|e| e.check_names(known)));
        }
        ArgDecl::Struct(members) => members.iter().for_each(|member| argument(member, known, buffers, found)),
        ArgDecl::TensorMap(map) => {
            found.extend(no_buffer(&map.buffer, buffers));
            let numbers = map.tile.iter().chain(&map.swizzle).chain(&map.l2_promotion);
            found.extend(numbers.flat_map(|e| e.check_names(known)));
        }
        ArgDecl::Pointers(names) => found.extend(names.iter().filter_map(|n| no_buffer(n, buffers))),
        ArgDecl::Null => {}
    }
}

/// Adds advice if an expression uses a tensor.
fn as_argument(error: Diagnostic, expr: &Expr, buffers: &[&str]) -> Diagnostic {
    match expr.names().find(|n| buffers.contains(n)) {
        Some(name) => error
            .hint(format!("`{name}` is an address: pass only `{name}`, or `{{ ptr = \"{name}\", offset = \"...\" }}`")),
        None => error,
    }
}

fn no_buffer(name: &Text, buffers: &[&str]) -> Option<Diagnostic> {
    (!buffers.contains(&name.as_str())).then(|| {
        let error = name.place.error("manifest.unknown-tensor", format!("no tensor or workspace is called `{name}`"));
        error.expected(format!("one of {}", list(buffers))).suggest(&name.value, buffers.iter().copied())
    })
}

fn methods(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let known: Vec<&str> = kernel.tune.iter().map(|t| t.0.as_str()).collect();
    for (name, values) in kernel.methods.iter().flat_map(|m| &m.on) {
        let Some((_, all)) = kernel.tune.iter().find(|t| t.0.value == name.value) else {
            let error = name
                .place
                .error("manifest.unknown-tunable", format!("kernel `{}` has no tunable `{name}`", kernel.name));
            let expected = if known.is_empty() { "no `on`".into() } else { format!("one of {}", list(&known)) };
            found.push(error.expected(expected).suggest(&name.value, known.iter().copied()));
            continue;
        };
        if values.is_empty() {
            let error = name.place.error("manifest.value", format!("`{name}` has no value that chooses the method"));
            found.push(error.expected("a value or a list of values of the tunable"));
        }
        for value in values.iter().filter(|value| !all.contains(value)) {
            let error = name.place.error("manifest.value", format!("`{name}` is never `{value}`"));
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            let texts: Vec<&str> = all.iter().map(String::as_str).collect();
            found.push(error.expected(format!("one of {}", list(&texts))).suggest(&value.to_string(), texts.clone()));
        }
    }
    for (name, value) in kernel.methods.iter().filter_map(|m| m.off.as_ref()).flat_map(|o| &o.values) {
        match kernel.tune.iter().find(|t| t.0.value == name.value) {
            None => {
                let error = name
                    .place
                    .error("manifest.unknown-tunable", format!("kernel `{}` has no tunable `{name}`", kernel.name));
                let expected = if known.is_empty() {
                    "`flags` or `source`".into()
                } else {
                    format!("one of {}, or `flags`, `source`", list(&known))
                };
                found.push(
                    error.expected(expected).suggest(&name.value, known.iter().copied().chain(["flags", "source"])),
                );
            }
            Some((_, values)) if values.first().is_some_and(|v| v.kind() != value.kind()) => {
                let error = name
                    .place
                    .error("manifest.kind", format!("`{name}` cannot be `{value}`, which is {}", value.kind()));
                found.push(error.expected(values.first().map_or("", |v| v.kind())));
            }
            Some(_) => {}
        }
    }
}

/// Checks that the first variant that serves a shape binds, and that some variant serves every shape, if `all`, or at least one. Stops when all shapes that can
/// be served are.
fn serves(
    kernel: &Kernel,
    operator: &Operator,
    target: &Target,
    choice: &TypeChoice,
    all: bool,
    found: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    let served = kernel.served(target, operator, choice)?;
    let (mut left, unserved): (Vec<_>, Vec<_>) = operator.shapes.iter().zip(&served).partition(|(_, served)| **served);
    let mut empty = true;
    for variant in kernel.space(target, choice)? {
        let variant = variant?;
        empty = false;
        let mut open = vec![];
        for (shape, served) in left {
            if kernel.serves(&variant, operator, choice, shape)? {
                binds(kernel, operator, target, &variant, choice, shape)?;
            } else {
                open.push((shape, served));
            }
        }
        left = open;
        if left.is_empty() {
            break;
        }
    }
    if empty {
        let message = format!("kernel `{}` has no variant on target `{}`", kernel.name, target.name);
        let error = kernel.place.error("manifest.no-variant", message);
        return Err(error.expected("at least one choice of tunables that `where` allows"));
    }
    let types = if choice.label.is_empty() { String::new() } else { format!(" with {}", choice.label) };
    let serves_none = !served.contains(&true) && !served.is_empty();
    for (shape, _) in unserved.into_iter().filter(|_| all || serves_none) {
        let message = format!(
            "no variant of kernel `{}` serves shape `{}` on target `{}`{types}",
            kernel.name, shape.name, target.name
        );
        let expected = match all {
            true => "`requires` of at least one variant holds for every shape",
            false => "`requires` of at least one variant holds for at least one shape",
        };
        found.push(unserved_shape(shape, message, kernel.requires.iter(), expected));
        if !all {
            break;
        }
    }
    Ok(())
}

fn binds(
    kernel: &Kernel,
    operator: &Operator,
    target: &Target,
    variant: &Variant,
    choice: &TypeChoice,
    shape: &Shape,
) -> Result<(), Diagnostic> {
    let problem = operator.bind(choice, shape)?;
    let for_shape = |e| crate::model::bind::in_shape(e, shape);
    kernel.launches_on(target, variant, choice, &problem).map_err(for_shape)?;
    kernel.class_of(operator, choice, shape)?;
    Ok(())
}
