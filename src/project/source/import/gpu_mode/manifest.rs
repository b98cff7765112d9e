//! Writes the manifest of a task.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::adapter::{ADAPTER, KERNEL, Stands, TAKEN, kernel, literal, reference};
use super::arguments::{ArgumentKind, Arguments, Case};
use super::extents::{Size, fit};
use super::facts::{CaseFacts, Check, GpuModeFacts, GpuModeSource, LowFacts, Step};
use super::task::{CaseValue, TaskYaml};
use crate::source::import::manifest::{extent, list, one_line, refused, text};
use crate::source::import::naming::{is_usable, usable};
use crate::source::import::tasks::{Finding, FindingKind, ImportedShape, Origin, Refusal, operator_name};
use kforge_types::model::DType;

/// What a manifest is written for.
#[derive(Debug)]
pub struct GpuModeRequest<'a> {
    /// The package's name.
    pub package: &'a str,
    /// The release of PyTorch; none for the system's.
    pub torch: Option<&'a str>,
    /// Where the task is from.
    pub origin: &'a Origin,
    /// What `task.yml` says.
    pub task: &'a TaskYaml,
    /// What the reference's source says.
    pub source: &'a GpuModeSource,
    /// The arguments and cases.
    pub arguments: &'a Arguments,
    /// What PyTorch showed.
    pub facts: &'a GpuModeFacts,
    /// The bytes that a reference may use here.
    pub limit: u64,
}

/// The manifest of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedGpuMode {
    /// Its text.
    pub text: String,
    /// The operator.
    pub operator: String,
    /// Its shapes.
    pub shapes: Vec<ImportedShape>,
    /// The adapter of the reference, a file of the package.
    pub adapter: String,
    /// The adapter of each submission, a file of its folder.
    pub kernel: String,
    /// What people must know.
    pub findings: Vec<Finding>,
}

/// A case that is imported, with what it gives.
struct Sized<'a> {
    case: &'a Case,
    shapes: &'a [Vec<i64>],
    outputs: &'a [Vec<i64>],
    constants: &'a [Value],
}

/// Names that are still free.
struct Names(BTreeSet<String>);

impl Names {
    fn claim(&mut self, name: &str) -> String {
        let is_free = |name: &str| is_usable(name) && !self.0.contains(name) && !TAKEN.contains(&name);
        let own = if is_free(name) { name.to_string() } else { usable(name, &|other| !is_free(other)) };
        self.0.insert(own.clone());
        own
    }
}

fn unsupported(message: String) -> Refusal {
    Refusal { kind: "unsupported".into(), message, line: None }
}

/// The sizes of the shapes, and how integers follow from them.
struct Sizes {
    /// Arguments that are dims, and dims for what no expression gives.
    dims: Vec<Size>,
}

impl Sizes {
    fn text(&mut self, wanted: &[i64], name: impl FnOnce() -> String) -> String {
        fit(wanted, &self.dims).unwrap_or_else(|| {
            let name = name();
            self.dims.push(Size { name: name.clone(), values: wanted.to_vec() });
            name
        })
    }
}

/// Writes the manifest of a task, and its adapters.
///
/// # Errors
/// What the task has cannot be stated in a manifest.
pub fn write_gpu_mode(request: &GpuModeRequest<'_>) -> Result<ImportedGpuMode, Refusal> {
    let GpuModeRequest { facts, arguments, .. } = request;
    if !facts.is_sound() || facts.cases.len() != arguments.cases.len() {
        return Err(unsupported("its description is not complete".into()));
    }
    let (cases, left_out) = sized(arguments, facts);
    if cases.is_empty() {
        return Err(unsupported("none of its cases can be sized".into()));
    }
    let mut names = Names(BTreeSet::new());
    let own: Vec<(String, String)> =
        arguments.all.iter().map(|argument| (argument.name.clone(), names.claim(&argument.name))).collect();
    let integer = |case: &Sized<'_>, name: &str| match case.case.values.get(name) {
        Some(CaseValue::Int(value)) => *value,
        _ => 0,
    };
    let dims = arguments.all.iter().zip(&own).filter(|(argument, _)| argument.kind == ArgumentKind::Dim);
    let dims = dims.map(|(argument, (_, name))| {
        let values = cases.iter().map(|case| integer(case, &argument.name)).collect();
        Size { name: name.clone(), values }
    });
    let mut sizes = Sizes { dims: dims.collect() };
    let (mut tensors, mut findings) = (String::new(), vec![]);
    let inputs = inputs(request, &cases, &mut sizes, &mut names);
    let outputs = outputs(facts, &cases, &mut sizes, &mut names);
    let stands = stands(request, (&cases, &sizes, &own), (&inputs, &outputs), &mut findings)?;
    let read =
        facts.leaves.iter().zip(&inputs).filter_map(|(leaf, input)| Some((input.as_ref()?, leaf.dtype.as_ref()?)));
    let read = read.map(|(tensor, dtype)| ("inputs", tensor, dtype));
    let written = outputs.iter().zip(&facts.outputs).map(|(tensor, output)| ("outputs", tensor, &output.dtype));
    for (role, (name, shape), dtype) in read.chain(written) {
        let shape = list(shape.iter().map(|part| extent(part)));
        let _ = writeln!(tensors, "{role}.{name} = {{ dtype = {}, shape = {shape} }}", text(dtype));
    }
    let (tolerance, said) = tolerance(request, &outputs);
    findings.extend(said);
    told(facts, &outputs, &mut findings);
    let why = |(name, why): (String, String)| Finding {
        kind: FindingKind::Workload,
        message: format!("the case `{}` is left out: {}", one_line(&name), one_line(&why)),
        line: None,
    };
    findings.extend(arguments.left_out.iter().cloned().chain(left_out).map(why));
    let shapes = shapes(&cases, &sizes, arguments, &own);
    findings.extend(too_large(&cases, request.limit));
    let operator = operator_name(&request.origin.name);

    let mut out = heading(request, &findings);
    let _ = write!(
        out,
        "\n[operator.{operator}]\norigin = {{ set = {}, name = {} }}\ndims = {}\n{tensors}",
        text(&request.origin.set),
        text(&request.origin.name),
        list(sizes.dims.iter().map(|dim| text(&dim.name)))
    );
    for (argument, (_, name)) in arguments.all.iter().zip(&own) {
        if let ArgumentKind::Param(dtype) = argument.kind {
            let _ = writeln!(out, "params.{name} = {{ dtype = \"{dtype}\" }}");
        }
    }
    let _ = writeln!(out, "reference = {{ torch = \"{ADAPTER}::reference\" }}");
    let _ = writeln!(out, "generate_inputs = {{ torch = \"{ADAPTER}::inputs\" }}");
    if let Some(tolerance) = tolerance {
        let _ = writeln!(out, "tolerance = {tolerance}");
    }
    let _ = write!(out, "\n[operator.{operator}.shapes]\n");
    for (shape, bound) in &shapes {
        let _ = writeln!(out, "{} = {{ {bound} }}", shape.name);
    }
    let _ = write!(
        out,
        "\n# Add kernels here, each with `operator = \"{operator}\"`: docs/your-kernels.md describes how.\n"
    );
    if let Some(why) = refused(&out) {
        return Err(unsupported(format!("its manifest is refused: {}", one_line(&why))));
    }
    Ok(ImportedGpuMode {
        text: out,
        operator,
        shapes: shapes.into_iter().map(|(shape, _)| shape).collect(),
        adapter: reference(&facts.form, &stands, arguments, &own),
        kernel: kernel(&facts.form, &stands),
        findings,
    })
}

/// The cases that PyTorch could size, and the others with the reason.
fn sized<'a>(arguments: &'a Arguments, facts: &'a GpuModeFacts) -> (Vec<Sized<'a>>, Vec<(String, String)>) {
    let (mut cases, mut left_out) = (vec![], vec![]);
    for (case, found) in arguments.cases.iter().zip(&facts.cases) {
        match found {
            CaseFacts::Refused { refused } => left_out.push((case.name.clone(), refused.message.clone())),
            CaseFacts::Sized { shapes, outputs, constants } => cases.push(Sized { case, shapes, outputs, constants }),
        }
    }
    (cases, left_out)
}

/// A tensor's name and its extents as expressions.
type Named = (String, Vec<String>);

/// The names and shapes of the tensors among the leaves that are no room for a result.
fn inputs(
    request: &GpuModeRequest<'_>,
    cases: &[Sized<'_>],
    sizes: &mut Sizes,
    names: &mut Names,
) -> Vec<Option<Named>> {
    let facts = request.facts;
    let is_input = |at: usize| facts.leaves[at].dtype.is_some() && facts.room.iter().all(|(own, _)| *own != at);
    let mut claimed = |at: usize| {
        let wanted = name_of(&facts.leaves[at].path, request.source.names.as_deref());
        is_input(at).then(|| names.claim(&wanted))
    };
    let own: Vec<Option<String>> = (0..facts.leaves.len()).map(&mut claimed).collect();
    let of = |(at, name): (usize, Option<String>)| {
        let name = name?;
        let shape = extents(cases, |case| &case.shapes[at], &name, sizes, names);
        Some((name, shape))
    };
    own.into_iter().enumerate().map(of).collect()
}

/// The names and shapes of results.
fn outputs(facts: &GpuModeFacts, cases: &[Sized<'_>], sizes: &mut Sizes, names: &mut Names) -> Vec<Named> {
    let of = |(at, output): (usize, &super::facts::ResultFacts)| {
        let wanted = match output.name.as_str() {
            "" => "y".to_string(),
            position if position.parse::<usize>().is_ok() => format!("y_{position}"),
            name => name.to_string(),
        };
        let name = names.claim(&wanted);
        let shape = extents(cases, |case| &case.outputs[at], &name, sizes, names);
        (name, shape)
    };
    facts.outputs.iter().enumerate().map(of).collect()
}

/// The extents of a tensor as expressions.
fn extents<'c>(
    cases: &'c [Sized<'_>],
    shape: impl Fn(&'c Sized<'_>) -> &'c Vec<i64>,
    name: &str,
    sizes: &mut Sizes,
    names: &mut Names,
) -> Vec<String> {
    let axes = shape(&cases[0]).len();
    let one = |axis: usize| {
        let wanted: Vec<i64> = cases.iter().map(|case| shape(case)[axis]).collect();
        sizes.text(&wanted, || names.claim(&format!("{name}_{axis}")))
    };
    (0..axes).map(one).collect()
}

/// What stands for each leaf of the value that a kernel gets.
fn stands(
    request: &GpuModeRequest<'_>,
    (cases, sizes, own): (&[Sized<'_>], &Sizes, &[(String, String)]),
    (inputs, outputs): (&[Option<Named>], &[Named]),
    findings: &mut Vec<Finding>,
) -> Result<Vec<Stands>, Refusal> {
    let facts = request.facts;
    let mut told = |message: String| findings.push(Finding { kind: FindingKind::Inputs, message, line: None });
    let mut all = vec![];
    for (at, leaf) in facts.leaves.iter().enumerate() {
        let place = place(&leaf.path);
        if let Some((name, _)) = &inputs[at] {
            if !facts.contiguous[at] {
                told(format!("`{name}` is contiguous here, and `generate_input` gives a view with other strides"));
            }
            all.push(Stands::Tensor(name.clone()));
            continue;
        }
        match (&leaf.dtype, facts.room.iter().find(|(own, _)| *own == at)) {
            (Some(dtype), Some((_, output))) => {
                let (name, shape) = &outputs[*output];
                told(format!("{place} is only room for `{name}`: each call gets memory of its own"));
                all.push(Stands::Room(shape.clone(), torch_word(dtype)?));
            }
            _ => {
                let values: Vec<&Value> = cases.iter().map(|case| &case.constants[at]).collect();
                let known = constant(&values, cases, sizes, request.arguments, own);
                let why = || unsupported(format!("{place} follows from the case in a way that no expression shows"));
                all.push(Stands::Value(known.ok_or_else(why)?));
            }
        }
    }
    Ok(all)
}

/// A constant of the value in Python: a literal, or an expression over dims and params.
fn constant(
    values: &[&Value],
    cases: &[Sized<'_>],
    sizes: &Sizes,
    arguments: &Arguments,
    own: &[(String, String)],
) -> Option<String> {
    if values.iter().all(|value| value == &values[0]) {
        return Some(literal(values[0]));
    }
    let same = |argument: &str| {
        let stated = |case: &Sized<'_>| serde_json::to_value(case.case.values.get(argument)).ok();
        cases.iter().zip(values).all(|(case, value)| stated(case).as_ref() == Some(*value))
    };
    let is_param = |kind: &ArgumentKind| matches!(kind, ArgumentKind::Param(_));
    let param = arguments.all.iter().zip(own).find(|(argument, _)| is_param(&argument.kind) && same(&argument.name));
    if let Some((_, (_, name))) = param {
        return Some(name.clone());
    }
    let integers: Option<Vec<i64>> = values.iter().map(|value| value.as_i64()).collect();
    fit(&integers?, &sizes.dims)
}

/// The name of a tensor: what the reference calls it, or its key.
fn name_of(path: &[Step], names: Option<&[String]>) -> String {
    let mut parts = vec![];
    for (depth, step) in path.iter().enumerate() {
        match step {
            Step::Key(key) => parts.push(key.replace('.', "_")),
            Step::At(at) => match names.and_then(|names| names.get(*at)).filter(|name| depth == 0 && *name != "_") {
                Some(name) => parts.push(name.clone()),
                None => parts.push(at.to_string()),
            },
        }
    }
    // What holds a table of tensors says nothing beside their keys.
    if parts.len() > 1 && matches!(path.last(), Some(Step::Key(_))) {
        parts.drain(..parts.len() - 1);
    }
    match &parts[..] {
        [] => "x".into(),
        [one] if one.parse::<usize>().is_ok() => format!("x_{one}"),
        _ => parts.join("_"),
    }
}

/// A leaf for people: `data[0]["w"]`.
fn place(path: &[Step]) -> String {
    let one = |step: &Step| match step {
        Step::At(at) => format!("[{at}]"),
        Step::Key(key) => format!("[\"{}\"]", one_line(key)),
    };
    format!("`data{}`", path.iter().map(one).collect::<String>())
}

/// The word of PyTorch for a type.
fn torch_word(dtype: &str) -> Result<&'static str, Refusal> {
    Ok(match dtype {
        "f64" => "float64",
        "f32" => "float32",
        "f16" => "float16",
        "bf16" => "bfloat16",
        "f8e4m3" => "float8_e4m3fn",
        "f8e5m2" => "float8_e5m2",
        "i64" => "int64",
        "i32" => "int32",
        "i16" => "int16",
        "i8" => "int8",
        "u64" => "uint64",
        "u32" => "uint32",
        "u16" => "uint16",
        "u8" => "uint8",
        "bool" => "bool",
        other => return Err(unsupported(format!("a tensor has the type `{other}`, which PyTorch does not have"))),
    })
}

/// The tolerance, and what must be known of it. None leaves it to kforge.
fn tolerance(request: &GpuModeRequest<'_>, outputs: &[Named]) -> (Option<String>, Option<Finding>) {
    let said = |message: String| Some(Finding { kind: FindingKind::Tolerance, message, line: None });
    let dtypes = request.facts.outputs.iter().filter_map(|output| output.dtype.parse::<DType>().ok());
    let floats: Vec<(DType, &String)> =
        dtypes.zip(outputs).filter(|(dtype, _)| dtype.is_float()).map(|(dtype, (name, _))| (dtype, name)).collect();
    let Some((coarsest, name)) = floats.iter().max_by(|(a, _), (b, _)| a.epsilon().total_cmp(&b.epsilon())) else {
        return (None, None);
    };
    match request.source.check {
        Check::Close { atol, rtol } if rtol >= coarsest.epsilon() => {
            (Some(format!("{{ atol = {atol:?}, rtol = {rtol:?} }}")), None)
        }
        Check::Close { atol, rtol } => {
            let message = format!(
                "the relative tolerance of {rtol:?} is below one step of {coarsest} (`{name}`): kforge allows one step, because its expected values are rounded from float64"
            );
            (Some(format!("{{ atol = {atol:?}, rtol = {rtol:?}, ulp = 1 }}")), said(message))
        }
        Check::Equal => {
            let message = format!(
                "its check wants `{name}` bit by bit: kforge allows one step of {coarsest}, because its expected values are rounded from float64"
            );
            (Some("{ ulp = 1 }".into()), said(message))
        }
        Check::Own => {
            let message = "`check_implementation` compares in a way of its own, which is not imported: kforge derives the tolerance";
            (None, said(message.into()))
        }
    }
}

/// What values of the smallest case show.
fn told(facts: &GpuModeFacts, outputs: &[Named], findings: &mut Vec<Finding>) {
    for ((name, _), _) in outputs.iter().zip(&facts.constant).filter(|(_, constant)| **constant) {
        let message = format!("`{name}` is the same for all inputs: nothing tells a kernel from one that ignores them");
        findings.push(Finding { kind: FindingKind::ConstantOutput, message, line: None });
    }
    if let Some(LowFacts { floats, operation, line }) = &facts.low {
        let place = line.map_or(String::new(), |line| format!(" at reference.py:{line}"));
        let message = format!(
            "computes in {} (`{}`{place}): kforge takes the casts as ones to float64 where it can",
            one_line(floats),
            one_line(operation)
        );
        findings.push(Finding { kind: FindingKind::LowFloats, message, line: None });
    }
}

/// The shapes with what they bind, as text. A case that binds what a timed one binds is that one.
fn shapes(
    cases: &[Sized<'_>],
    sizes: &Sizes,
    arguments: &Arguments,
    own: &[(String, String)],
) -> Vec<(ImportedShape, String)> {
    let of = |(at, case): (usize, &Sized<'_>)| {
        let dims: Vec<(String, i64)> = sizes.dims.iter().map(|dim| (dim.name.clone(), dim.values[at])).collect();
        let params = arguments.all.iter().zip(own).filter_map(|(argument, (_, name))| {
            let ArgumentKind::Param(dtype) = argument.kind else { return None };
            let value = match case.case.values.get(&argument.name)? {
                CaseValue::Int(value) if dtype == "f64" => format!("{:?}", *value as f64),
                CaseValue::Int(value) => value.to_string(),
                CaseValue::Float(value) => toml_edit::Value::from(*value).to_string(),
                CaseValue::Bool(value) => value.to_string(),
                CaseValue::Text(_) | CaseValue::List(_) => return None,
            };
            Some(format!("{name} = {value}"))
        });
        let bound: Vec<String> = dims.iter().map(|(name, value)| format!("{name} = {value}")).chain(params).collect();
        (ImportedShape { name: case.case.name.clone(), dims }, bound.join(", "), case.case.is_timed)
    };
    let all: Vec<(ImportedShape, String, bool)> = cases.iter().enumerate().map(of).collect();
    let mut kept: Vec<(ImportedShape, String)> = vec![];
    for (at, (shape, bound, is_timed)) in all.iter().enumerate() {
        let is_again = |other: &(ImportedShape, String, bool)| other.1 == *bound;
        let is_said = match is_timed {
            true => all[..at].iter().any(|other| is_again(other) && other.2),
            false => all[..at].iter().any(is_again) || all[at..].iter().any(|other| is_again(other) && other.2),
        };
        if !is_said {
            let role = if *is_timed { ["role = \"bench\""].as_slice() } else { &[] };
            let parts = (!bound.is_empty()).then_some(bound.as_str()).into_iter().chain(role.iter().copied());
            kept.push((shape.clone(), parts.collect::<Vec<_>>().join(", ")));
        }
    }
    kept
}

/// The finding that a reference needs more memory than there is at some cases.
fn too_large(cases: &[Sized<'_>], limit: u64) -> Option<Finding> {
    let bytes = |shapes: &[Vec<i64>]| {
        let elements = |shape: &Vec<i64>| {
            shape.iter().fold(1u64, |all, extent| all.saturating_mul(u64::try_from(*extent).unwrap_or(0)))
        };
        shapes.iter().map(elements).fold(0, u64::saturating_add).saturating_mul(8)
    };
    let needed = |case: &&Sized<'_>| bytes(case.shapes).saturating_mul(2).saturating_add(bytes(case.outputs)) > limit;
    let names: Vec<String> = cases.iter().filter(needed).map(|case| format!("`{}`", case.case.name)).collect();
    (!names.is_empty()).then(|| Finding {
        kind: FindingKind::TooLarge,
        message: format!(
            "at {} the reference needs more than {limit} bytes in float64 ({:.1} GB), the limit here: such shapes are unknown here",
            names.join(", "),
            limit as f64 / 1e9
        ),
        line: None,
    })
}

/// What stands above the operator.
fn heading(request: &GpuModeRequest<'_>, findings: &[Finding]) -> String {
    let mut out = format!(
        "# gpu-mode, {}. `kforge import gpu-mode` wrote this manifest and `{ADAPTER}`; the other files are those of the task, as they were.\n",
        one_line(&request.origin.name)
    );
    if let Some(ranking) = &request.task.ranking_by {
        let _ = writeln!(out, "# Submissions are ranked by `{}` over the benchmarks.", one_line(ranking));
    }
    for finding in findings {
        let _ = writeln!(out, "# {}: {}.", finding.kind.word(), one_line(&finding.message));
    }
    let _ = write!(out, "[package]\nname = {}\n", text(request.package));
    if let Some(release) = request.torch {
        let _ = write!(out, "\n[toolchain]\ntorch = {}\n", text(release));
    }
    out
}

/// The tables of submissions, each in the folder of its name.
pub fn kernel_tables(operator: &str, kernels: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let of = |name: &str| {
        format!(
            "\n[kernel.{name}]\noperator = \"{operator}\"\nlanguage = \"torch\"\ntargets = [\"cpu\"]\nsource = \"{name}/{KERNEL}::kernel\"\n"
        )
    };
    kernels.into_iter().map(|name| of(name.as_ref())).collect()
}
