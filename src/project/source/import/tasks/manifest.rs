//! Writes the manifest of a task.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::contract::{Contract, Names, constants, constructor, inputs, key_text, outputs, unsupported, used, weights};
use super::facts::{Constant, Refusal, TaskFacts};
use super::findings::{Finding, findings, reference_bytes};
use super::sizes::Sizes;
use crate::source::import::manifest::{extent, list, one_line, refused, text};

/// Where a task is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The problem set: `kernelbench`, `flashinfer-trace` or `gpu-mode`.
    pub set: String,
    /// Its level.
    pub level: Option<u32>,
    /// Its number.
    pub number: Option<u32>,
    /// Its name.
    pub name: String,
}

/// What a manifest is written for.
#[derive(Debug)]
pub struct TaskRequest<'a> {
    /// The package's name.
    pub package: &'a str,
    /// The name of the task's file in the package.
    pub file: &'a str,
    /// The release of PyTorch; none for the system's.
    pub torch: Option<&'a str>,
    /// Where the task is from.
    pub origin: &'a Origin,
    /// The constants of its source.
    pub constants: &'a [Constant],
    /// What PyTorch showed.
    pub facts: &'a TaskFacts,
}

/// The manifest of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedTask {
    /// Its text.
    pub text: String,
    /// The operator.
    pub operator: String,
    /// Its shapes.
    pub shapes: Vec<ImportedShape>,
    /// Whether the module is in training mode; none for a function.
    pub train: Option<bool>,
    /// What people must know.
    pub findings: Vec<Finding>,
    /// The bytes that a reference needs at the task's own size, if that is known.
    pub reference_bytes: Option<u64>,
}

/// A shape of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedShape {
    /// Its name.
    pub name: String,
    /// Its dims.
    pub dims: Vec<(String, i64)>,
}

/// Writes the manifest of a task.
///
/// # Errors
/// What the task has cannot be stated in a manifest.
pub fn write_task(request: &TaskRequest<'_>) -> Result<ImportedTask, Refusal> {
    let facts = request.facts;
    if !facts.is_sound() {
        return Err(unsupported("its description is not complete".into()));
    }
    let mut names = Names(facts.others.iter().cloned().collect());
    let arguments: Vec<String> = facts.inputs.iter().map(|input| names.claim(&input.argument)).collect();
    let state: Vec<String> = facts.state.iter().map(|part| names.claim(&part.name.replace('.', "_"))).collect();
    let mut sizes = Sizes::new(facts, request.constants, &mut |name| names.claim(name));
    let train = facts.random.is_none();
    let mut contract = Contract::default();
    inputs(facts, &arguments, &mut contract, &mut sizes, &mut names)?;
    weights(facts, &state, train, &mut contract, &mut sizes, &mut names);
    outputs(facts, &mut contract, &mut sizes, &mut names)?;
    let init = constructor(facts, &mut contract, &mut sizes, &mut names)?;
    let constants = constants(facts, request.constants, &sizes);
    let told = findings(facts, &contract.outputs);
    let operator = operator_name(&request.origin.name);
    let shapes = shapes(facts, &sizes, &used(&contract, init.as_deref(), constants.as_deref()));

    let mut out = heading(request, &told);
    let _ = write!(out, "\n[operator.{operator}]\norigin = {}\n", origin(request.origin));
    let dims: Vec<&str> = shapes[0].dims.iter().map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(out, "dims = {}", list(dims.iter().map(|dim| text(dim))));
    for tensor in &contract.tensors {
        let init = tensor.init.as_ref().map_or(String::new(), |init| format!(", init = {init}"));
        let shape = list(tensor.shape.iter().map(|e| extent(e)));
        let _ = writeln!(
            out,
            "{}.{} = {{ dtype = {}, shape = {shape}{init} }}",
            tensor.role,
            tensor.name,
            text(&tensor.dtype)
        );
    }
    for param in &contract.params {
        let _ = writeln!(out, "params.{} = {{ dtype = \"{}\", value = {} }}", param.name, param.dtype, param.value);
    }
    let _ = write!(out, "\n[operator.{operator}.reference]\ntorch = {}\n", text(&format!("{}::Model", request.file)));
    let table = |pairs: &[(String, String)]| {
        let pairs = pairs.iter().map(|(key, value)| format!("{} = {value}", key_text(key)));
        format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
    };
    for (key, value) in [("init", init), ("constants", constants)] {
        if let Some(value) = value {
            let _ = writeln!(out, "{key} = {value}");
        }
    }
    for (key, pairs) in [("state", &contract.state), ("names", &contract.names)] {
        if !pairs.is_empty() {
            let _ = writeln!(out, "{key} = {}", table(pairs));
        }
    }
    if train {
        let _ = writeln!(out, "mode = \"train\"");
    }
    let _ = write!(out, "\n[operator.{operator}.shapes]\n");
    for shape in &shapes {
        let role = (shape.name == "own").then(|| "role = \"bench\"".to_string());
        let bound = shape.dims.iter().map(|(name, value)| format!("{name} = {value}")).chain(role);
        let _ = writeln!(out, "{} = {{ {} }}", shape.name, bound.collect::<Vec<_>>().join(", "));
    }
    let _ = write!(
        out,
        "\n# Add kernels here, each with `operator = \"{operator}\"`: docs/your-kernels.md describes how.\n"
    );
    if let Some(why) = refused(&out) {
        return Err(unsupported(format!("its manifest is refused: {}", one_line(&why))));
    }
    let (reference_bytes, train) = (Some(reference_bytes(facts)), Some(train));
    Ok(ImportedTask { text: out, operator, shapes, train, findings: told, reference_bytes })
}

/// What stands above the operator.
fn heading(request: &TaskRequest<'_>, told: &[Finding]) -> String {
    let Origin { level, number, name, .. } = request.origin;
    let level = level.map(|n| format!("level {n}, "));
    let number = number.map(|n| format!("task {n}, "));
    let place = [level, number].into_iter().flatten().collect::<String>() + &one_line(name);
    let mut out = format!(
        "# KernelBench, {place}. `kforge import kernelbench` wrote this manifest; `{}` is the task as it was.\n",
        request.file
    );
    for finding in told {
        let line = finding.line.map_or(String::new(), |line| format!(" ({}:{line})", request.file));
        let _ = writeln!(out, "# {}: {}{line}.", finding.kind.word(), one_line(&finding.message));
    }
    let _ = write!(out, "[package]\nname = {}\n", text(request.package));
    if let Some(release) = request.torch {
        let _ = write!(out, "\n[toolchain]\ntorch = {}\n", text(release));
    }
    out
}

fn origin(origin: &Origin) -> String {
    let number = |key: &str, n: Option<u32>| n.map_or(String::new(), |n| format!(", {key} = {n}"));
    let (level, own) = (number("level", origin.level), number("number", origin.number));
    format!("{{ set = {}{level}{own}, name = {} }}", text(&origin.set), text(&origin.name))
}

/// The operator's name.
pub(in crate::source::import) fn operator_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain.to_string() } else { format!("task_{plain}") }
}

/// The shapes: the task's own, and small and ragged ones.
fn shapes(facts: &TaskFacts, sizes: &Sizes, used: &BTreeSet<String>) -> Vec<ImportedShape> {
    let probes = [("own", Some(0)), ("small", facts.small), ("ragged", facts.ragged)];
    let mut all: Vec<ImportedShape> = vec![];
    for (name, probe) in probes {
        let Some(bound) = probe.and_then(|probe| sizes.at(probe)) else { continue };
        let bound = bound.into_iter().filter(|(name, _)| used.contains(*name));
        let dims: Vec<(String, i64)> = bound.map(|(name, value)| (name.to_string(), value)).collect();
        if all.iter().all(|other| other.dims != dims) {
            all.push(ImportedShape { name: name.into(), dims });
        }
    }
    all
}
