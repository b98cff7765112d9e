//! Writes the manifest of a definition.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::dataset::Parts;
use super::definition::{Allowed, Axis, Definition, InputFrom, Spec, Workload};
use super::json::{Json, Malformed};
use super::solution::{Solution, solution_folder};
use crate::source::import::manifest::{extent, list, one_line, refused, text};
use crate::source::import::naming::is_usable;
use crate::source::import::tasks::{Finding, FindingKind};

/// The folder in a package that holds the files of the dataset as they are.
pub const SIDECAR: &str = "flashinfer-trace";

/// The tolerance of FlashInfer-Trace's own evaluator. It is in its code, not in its data.
const TOLERANCE: &str = "{ atol = 1e-2, rtol = 1e-2 }";
/// Between which integers FlashInfer-Trace draws.
const INTEGERS: (i64, i64) = (-1024, 1023);

/// What a manifest is written for.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct DefinitionRequest<'a> {
    /// The package's name.
    pub package: &'a str,
    /// The file of the reference in the package.
    pub file: &'a str,
    /// The release of PyTorch; none for the system's.
    pub torch: Option<&'a str>,
    /// The definition and what belongs to it.
    pub parts: &'a Parts,
    /// The names of the arguments of a function, given its source and its name, if it is defined there and all of them have names.
    pub arguments: &'a dyn Fn(&str, &str) -> Option<Vec<String>>,
    /// The tensor with a name in a file that a workload names.
    pub stored: &'a dyn Fn(&str, &str) -> Result<StoredInput, NotStored>,
}

/// Why there is no tensor. The text follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum NotStored {
    /// There is no such file.
    #[error("is no file of the dataset")]
    NoFile,
    /// The file does not give it.
    #[error(transparent)]
    Unfit(Box<dyn std::error::Error + Send + Sync>),
}

/// A tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInput {
    /// The place of the file in the dataset.
    pub place: String,
    /// Its type, in kforge's word.
    pub dtype: String,
    /// Its extents, outermost first.
    pub shape: Vec<u64>,
}

/// The manifest of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedDefinition {
    /// Its text.
    pub text: String,
    /// Other files of the package by path: the reference, and the sources of solutions.
    pub files: Vec<(String, String)>,
    /// The operator.
    pub operator: String,
    /// Its shapes, with the dims that they bind.
    pub shapes: Vec<(String, Vec<(String, i64)>)>,
    /// What people must know.
    pub findings: Vec<Finding>,
}

/// Writes the manifest of a definition.
///
/// # Errors
/// A part of it has no form in a manifest.
pub fn write_definition(request: &DefinitionRequest<'_>) -> Result<ImportedDefinition, Malformed> {
    let definition = &request.parts.definition;
    names(definition)?;
    let mut out = String::new();
    let mut findings = vec![];
    let operator = operator_name(&definition.name);
    let _ = write!(
        out,
        "\n[operator.{operator}]\norigin = {{ set = \"flashinfer-trace\", name = {} }}\n",
        text(&definition.name)
    );
    let _ = writeln!(out, "dims = {}", list(definition.vars().map(text)));
    let derived = derived(definition)?;
    if !derived.is_empty() {
        let _ = writeln!(out, "derived = {{ {} }}", derived.join(", "));
    }
    let generator = generator(request);
    tensors(definition, generator.is_some(), &mut out, &mut findings)?;
    let _ = writeln!(out, "reference = {{ torch = {}{} }}", text(&format!("{}::run", request.file)), renamed(request)?);
    if let Some(function) = generator {
        let _ = writeln!(out, "generate_inputs = {{ torch = {} }}", text(&format!("{}::{function}", request.file)));
    }
    let floats = definition.outputs.iter().any(|(_, spec)| dtype("", spec).is_ok_and(is_float));
    if floats {
        let _ = writeln!(out, "tolerance = {TOLERANCE}");
        if request.parts.workloads.iter().any(|workload| workload.tolerance.is_none()) {
            let message = "the tolerance is that of FlashInfer-Trace's evaluator, which is in no file; the evaluator accepts an element if its absolute or its relative error is small, and kforge compares with the sum of both".to_string();
            findings.push(Finding { kind: FindingKind::Tolerance, message, line: None });
        }
    }
    for constraint in definition.constraints.iter().filter(|_| generator.is_none()) {
        let message = format!("inputs that are drawn need not satisfy `{}`", one_line(constraint));
        findings.push(Finding { kind: FindingKind::Inputs, message, line: None });
    }
    let _ = write!(out, "\n[operator.{operator}.shapes]\n");
    let mut shapes: Vec<(String, Vec<(String, i64)>)> = vec![];
    let (mut first, mut known) = (None, BTreeSet::new());
    for workload in &request.parts.workloads {
        match shape(request, workload, (floats, generator), &mut known) {
            Ok((bound, dims)) => {
                let _ = writeln!(out, "{} = {{ {bound} }}", workload.uuid);
                shapes.push((workload.uuid.clone(), dims));
            }
            Err(why) => {
                let message = format!("the workload `{}` is left out: {why}", one_line(&workload.uuid));
                first.get_or_insert_with(|| message.clone());
                findings.push(Finding { kind: FindingKind::Workload, message, line: None });
            }
        }
    }
    if !known.is_empty() {
        let names = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let message = format!("{names} has the values of files at some shapes: candidates can know them");
        findings.push(Finding { kind: FindingKind::Inputs, message, line: None });
    }
    if shapes.is_empty() {
        let why = first.unwrap_or_else(|| "the dataset has none".into());
        return Err(Malformed::new("workloads", format!("has none that can be imported: {why}")));
    }
    let mut files = vec![(request.file.to_string(), definition.reference.clone())];
    let solutions = solutions(request, &operator, &mut files, &mut findings);
    let _ = write!(
        out,
        "\n# Add kernels here, each with `operator = \"{operator}\"`: docs/your-kernels.md describes how.\n{solutions}"
    );
    let all = heading(request, &findings) + &out;
    if let Some(why) = refused(&all) {
        return Err(Malformed::new("$", format!("gives a manifest that is refused: {}", one_line(&why))));
    }
    Ok(ImportedDefinition { text: all, files, operator, shapes, findings })
}

/// What stands above the operator.
fn heading(request: &DefinitionRequest<'_>, findings: &[Finding]) -> String {
    let mut out = format!(
        "# FlashInfer-Trace, {}. `kforge import flashinfer-trace` wrote this manifest; `{}` is the reference as it was, and `{SIDECAR}` holds the\n\
         # files of the dataset as they were, for `kforge export flashinfer-trace`.\n",
        one_line(&request.parts.definition.name),
        request.file
    );
    for finding in findings {
        let _ = writeln!(out, "# {}: {}.", finding.kind.word(), one_line(&finding.message));
    }
    let _ = write!(out, "[package]\nname = {}\n", text(request.package));
    if let Some(release) = request.torch {
        let _ = write!(out, "\n[toolchain]\ntorch = {}\n", text(release));
    }
    out
}

/// Refuses names that no manifest can have, and names with two meanings.
fn names(definition: &Definition) -> Result<(), Malformed> {
    let axes = definition.axes.iter().map(|(name, _)| ("axes", name));
    let inputs = definition.inputs.iter().map(|(name, _)| ("inputs", name));
    let outputs = definition.outputs.iter().map(|(name, _)| ("outputs", name));
    let mut seen: Vec<&String> = vec![];
    for (kind, name) in axes.chain(inputs).chain(outputs) {
        let field = format!("{kind}.{}", one_line(name));
        if !is_usable(name) {
            return Err(Malformed::new(field, "is no name that a manifest can have"));
        }
        if seen.contains(&name) {
            return Err(Malformed::new(field, "has the name of another axis or tensor"));
        }
        seen.push(name);
    }
    Ok(())
}

/// The derived dims: each after those that it names.
fn derived(definition: &Definition) -> Result<Vec<String>, Malformed> {
    let mut out = vec![];
    let mut known: Vec<&str> = definition.vars().collect();
    let mut rest: Vec<(&str, String)> = vec![];
    for (name, axis) in &definition.axes {
        match axis {
            Axis::Var => {}
            Axis::Const(value) => rest.push((name, value.to_string())),
            Axis::Expr(expression) if expression.contains("**") => {
                return Err(Malformed::new(
                    format!("axes.{name}.expression"),
                    "has a power, which a manifest cannot state",
                ));
            }
            Axis::Expr(expression) => rest.push((name, one_line(expression))),
        }
    }
    while !rest.is_empty() {
        let is_ready = |(_, text): &(&str, String)| words(text).all(|word| known.contains(&word));
        let Some(at) = rest.iter().position(is_ready) else {
            let (name, text) = &rest[0];
            let message = format!("is `{text}`, which names what is no axis, or itself");
            return Err(Malformed::new(format!("axes.{name}.expression"), message));
        };
        let (name, value) = rest.remove(at);
        out.push(format!("{name} = {}", text(&value)));
        known.push(name);
    }
    Ok(out)
}

/// The names in an expression.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    let parts = expression.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    parts.filter(|part| part.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// The function of the reference that makes the inputs, if a workload asks for it and the reference defines it.
fn generator<'a>(request: &DefinitionRequest<'a>) -> Option<&'a str> {
    let definition = &request.parts.definition;
    let asks = |workload: &Workload| workload.inputs.iter().any(|(_, from)| *from == InputFrom::Custom);
    let function = definition.makes_inputs.as_deref().filter(|_| request.parts.workloads.iter().any(asks))?;
    let arguments = (request.arguments)(&definition.reference, function)?;
    (arguments.len() == 2).then_some(function)
}

/// The inputs, params and outputs. Where a function makes the inputs, nothing is said of how they are drawn.
fn tensors(
    definition: &Definition,
    are_made: bool,
    out: &mut String,
    findings: &mut Vec<Finding>,
) -> Result<(), Malformed> {
    let mut drawn: Vec<String> = vec![];
    for (name, spec) in &definition.inputs {
        let dtype = dtype(&format!("inputs.{name}"), spec)?;
        let Some(shape) = &spec.shape else {
            let _ = writeln!(out, "params.{name} = {{ dtype = \"{dtype}\" }}");
            continue;
        };
        let init = match dtype {
            _ if are_made => String::new(),
            "bool" => String::new(),
            "i8" => ", init = { range = [-128, 127] }".into(),
            _ if is_float(dtype) => ", init = \"normal\"".into(),
            _ => {
                let (low, high) = INTEGERS;
                drawn.push(format!("`{name}`"));
                format!(", init = {{ range = [{low}, {high}] }}")
            }
        };
        let shape = list(shape.iter().map(|part| extent(part)));
        let _ = writeln!(out, "inputs.{name} = {{ dtype = \"{dtype}\", shape = {shape}{init} }}");
    }
    if !drawn.is_empty() {
        let (low, high) = INTEGERS;
        let message = format!(
            "{} is drawn from the integers from {low} to {high}, as the evaluator does: state another `init` where these are indices",
            drawn.join(", ")
        );
        findings.push(Finding { kind: FindingKind::Inputs, message, line: None });
    }
    if definition.op_type.as_deref() == Some("sampling") && !are_made {
        let message = "the evaluator draws probabilities for operators of the type `sampling`, and kforge draws normal numbers: state another `init`".to_string();
        findings.push(Finding { kind: FindingKind::Inputs, message, line: None });
    }
    for (name, spec) in &definition.outputs {
        let field = format!("outputs.{name}");
        let dtype = dtype(&field, spec)?;
        let shape = spec.shape.as_ref();
        let shape =
            shape.ok_or_else(|| Malformed::new(format!("{field}.shape"), "is null, and an output must be a tensor"))?;
        let shape = list(shape.iter().map(|part| extent(part)));
        let _ = writeln!(out, "outputs.{name} = {{ dtype = \"{dtype}\", shape = {shape} }}");
    }
    Ok(())
}

/// The names of arguments that are not those of the inputs. The order decides which is which.
fn renamed(request: &DefinitionRequest<'_>) -> Result<String, Malformed> {
    let definition = &request.parts.definition;
    let own = (request.arguments)(&definition.reference, "run");
    let own = own.ok_or_else(|| Malformed::new("reference", "defines no function `run` whose arguments have names"))?;
    if own.len() != definition.inputs.len() {
        let message = format!("has {} arguments in `run`, and there are {} inputs", own.len(), definition.inputs.len());
        return Err(Malformed::new("reference", message));
    }
    let pairs = own.iter().zip(&definition.inputs).filter(|(argument, (name, _))| *argument != name);
    let pairs: Vec<String> =
        pairs.map(|(argument, (name, _))| format!("{} = {}", text(argument), text(name))).collect();
    Ok(if pairs.is_empty() { String::new() } else { format!(", names = {{ {} }}", pairs.join(", ")) })
}

fn dtype(field: &str, spec: &Spec) -> Result<&'static str, Malformed> {
    Ok(match spec.dtype.as_str() {
        "float64" => "f64",
        "float32" => "f32",
        "float16" => "f16",
        "bfloat16" => "bf16",
        "float8_e4m3fn" => "f8e4m3",
        "float8_e5m2" => "f8e5m2",
        "int64" => "i64",
        "int32" => "i32",
        "int16" => "i16",
        "int8" => "i8",
        "bool" => "bool",
        other => {
            let message = format!("is `{}`, which references in PyTorch do not have", one_line(other));
            return Err(Malformed::new(format!("{field}.dtype"), message));
        }
    })
}

fn is_float(dtype: &str) -> bool {
    dtype.starts_with('f') || dtype == "bf16"
}

/// What a workload binds, as text, and its dims. Inputs whose values are in files are added to those that are known.
fn shape(
    request: &DefinitionRequest<'_>,
    workload: &Workload,
    (floats, generator): (bool, Option<&str>),
    known: &mut BTreeSet<String>,
) -> Result<(String, Vec<(String, i64)>), Malformed> {
    let definition = &request.parts.definition;
    let is_name = workload.uuid.starts_with(|c: char| c.is_ascii_alphanumeric())
        && workload.uuid.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if !is_name {
        return Err(Malformed::new("uuid", "is no name of a shape"));
    }
    let mut dims = vec![];
    for (name, value) in &workload.axes {
        let value = i64::try_from(*value).ok();
        let value = value.ok_or_else(|| Malformed::new(format!("axes.{name}"), "is too large"))?;
        dims.push((name.clone(), value));
    }
    let mut stored: Vec<(&String, String)> = vec![];
    let mut bound: Vec<String> = dims.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    for (name, from) in &workload.inputs {
        let Some(spec) = definition.input(name) else { continue };
        let field = format!("inputs.{name}");
        match (from, &spec.shape) {
            (InputFrom::Custom, Some(_)) if generator.is_some() => {}
            (InputFrom::Random | InputFrom::Safetensors { .. }, Some(_)) if generator.is_some() => {
                let by = generator.unwrap_or_default();
                let message = format!("is not `custom`, and `{}` makes all inputs of other workloads", one_line(by));
                return Err(Malformed::new(format!("{field}.type"), message));
            }
            (InputFrom::Random, Some(_)) => {}
            (InputFrom::Scalar(value), None) => bound.push(format!("{name} = {}", scalar(&field, spec, value)?)),
            (InputFrom::Safetensors { path, key }, Some(extents)) => {
                let wrong = |why: String| {
                    Malformed::new(format!("{field}.path"), format!("names `{}`, which {why}", one_line(path)))
                };
                let found = (request.stored)(path, key).map_err(|why| wrong(why.to_string()))?;
                agrees(definition, workload, (spec, extents), (&found, key)).map_err(wrong)?;
                let file = text(&format!("{SIDECAR}/{}", found.place));
                stored.push((name, format!("{name} = {{ safetensors = {file}, key = {} }}", text(key))));
            }
            (InputFrom::Safetensors { .. }, None) => {
                return Err(Malformed::new(format!("{field}.type"), "is `safetensors` for a number"));
            }
            (InputFrom::Custom, shape) => {
                let message = match (&definition.makes_inputs, shape) {
                    (None, _) => "is `custom`, and the definition states no `custom_inputs_entrypoint`".to_string(),
                    (Some(by), None) => {
                        format!("is `custom` for a number, which only a call of `{}` shows", one_line(by))
                    }
                    (Some(by), Some(_)) => {
                        let by = one_line(by);
                        format!("is `custom`, and the reference defines no function `{by}` with two arguments")
                    }
                };
                return Err(Malformed::new(format!("{field}.type"), message));
            }
            (InputFrom::Random, None) => {
                return Err(Malformed::new(format!("{field}.type"), "is `random` for a number"));
            }
            (InputFrom::Scalar(_), Some(_)) => {
                return Err(Malformed::new(format!("{field}.type"), "is `scalar` for a tensor"));
            }
        }
    }
    if let Some(allowed) = workload.tolerance.as_ref().filter(|_| floats) {
        bound.push(format!("tolerance = {}", tolerance(allowed)));
    }
    if !stored.is_empty() {
        let all: Vec<&str> = stored.iter().map(|(_, text)| text.as_str()).collect();
        bound.push(format!("init = {{ {} }}", all.join(", ")));
        known.extend(stored.iter().map(|(name, _)| (*name).clone()));
    }
    bound.push("role = \"bench\"".into());
    Ok((bound.join(", "), dims))
}

/// Whether a tensor of a file is what the definition declares at a workload. The extents that are expressions are compared when the package is built.
fn agrees(
    definition: &Definition,
    workload: &Workload,
    (spec, extents): (&Spec, &[String]),
    (found, key): (&StoredInput, &str),
) -> Result<(), String> {
    let extent = |part: &String| {
        let bound = workload.axes.iter().find(|(name, _)| name == part).map(|(_, value)| *value);
        let constant = || match definition.axes.iter().find(|(name, _)| name == part)?.1 {
            Axis::Const(value) => Some(value),
            _ => None,
        };
        part.parse().ok().or(bound).or_else(constant)
    };
    let wanted: Vec<Option<u64>> = extents.iter().map(extent).collect();
    let is_same = wanted.len() == found.shape.len()
        && wanted.iter().zip(&found.shape).all(|(wanted, found)| wanted.is_none_or(|wanted| wanted == *found));
    let declared = dtype("", spec).unwrap_or(&spec.dtype);
    if is_same && found.dtype == declared {
        return Ok(());
    }
    let wanted = wanted.iter().zip(extents).map(|(value, name)| value.map_or(name.clone(), |value| value.to_string()));
    let wanted = wanted.collect::<Vec<_>>().join(", ");
    let (key, found_as, shape) = (one_line(key), &found.dtype, &found.shape);
    Err(format!("has `{key}` as {found_as} of shape {shape:?}, expected {declared} of shape [{wanted}]"))
}

/// The tolerance of a workload.
fn tolerance(allowed: &Allowed) -> String {
    let Allowed { atol, rtol, matched, max_error, allows_negative_infinity } = allowed;
    let mut parts = vec![format!("atol = {atol:?}"), format!("rtol = {rtol:?}")];
    if *matched < 1.0 {
        parts.push(format!("matched = {matched:?}"));
        parts.extend(max_error.map(|most| format!("max_error = {most:?}")));
    }
    if !allows_negative_infinity {
        parts.push("nonfinite = \"forbid\"".into());
    }
    format!("{{ {} }}", parts.join(", "))
}

/// A number of a workload.
fn scalar(field: &str, spec: &Spec, value: &Json) -> Result<String, Malformed> {
    let dtype = dtype(field, spec)?;
    let wrong = || Malformed::new(format!("{field}.value"), format!("is no value of `{}`", spec.dtype));
    match value {
        Json::Bool(value) if dtype == "bool" => Ok(value.to_string()),
        Json::Number(number) if is_float(dtype) => number.as_f64().map(|value| format!("{value:?}")).ok_or_else(wrong),
        Json::Number(number) if dtype != "bool" => number.as_i64().map(|value| value.to_string()).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// The tables of the solutions that kforge can take. Their sources are added to the files, and what is left out to the findings.
fn solutions(
    request: &DefinitionRequest<'_>,
    operator: &str,
    files: &mut Vec<(String, String)>,
    findings: &mut Vec<Finding>,
) -> String {
    let mut out = String::new();
    let mut taken: Vec<String> = vec!["declared".into()];
    for (_, solution) in &request.parts.solutions {
        let mut told = |message: String| {
            let message = format!("the solution `{}` {message}", one_line(&solution.name));
            findings.push(Finding { kind: FindingKind::Solution, message, line: None });
        };
        let folder = solution_folder(&solution.name);
        let name = operator_name(&solution.name);
        if taken.contains(&name) {
            told(format!("is left out: its table `{name}` would be that of another one"));
            continue;
        }
        let table = match &solution.kernel {
            Some(kernel) => super::kernel::table(kernel, &name, operator, &folder),
            None => baseline(request, solution, &name, operator, &folder),
        };
        match table {
            Ok(table) => {
                let what = if solution.kernel.is_some() { "kernel" } else { "baseline" };
                told(format!("is the {what} `{name}`"));
                out.push_str(&table);
                files.extend(solution.sources.iter().map(|(path, text)| (format!("{folder}/{path}"), text.clone())));
                taken.push(name);
            }
            Err(why) => told(format!("is left out: it {why}")),
        }
    }
    out
}

/// The table of a solution in Python.
fn baseline(
    request: &DefinitionRequest<'_>,
    solution: &Solution,
    name: &str,
    operator: &str,
    folder: &str,
) -> Result<String, String> {
    let (file, function) = solution.entry();
    let source = solution.sources.iter().find(|(path, _)| path == file).map_or("", |(_, text)| text);
    let parameters = if file.ends_with(".py") { (request.arguments)(source, function) } else { None };
    if let Some(why) = solution.is_no_baseline(&request.parts.definition, parameters.as_deref()) {
        return Err(why);
    }
    let place = text(&format!("{folder}/{file}::{function}"));
    Ok(format!("\n[baseline.{name}]\nsource = {place}\noperator = \"{operator}\"\n"))
}

/// The name of an operator, a kernel or a baseline.
fn operator_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain.to_string() } else { format!("op_{plain}") }
}
