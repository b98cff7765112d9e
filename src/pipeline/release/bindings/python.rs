//! The loader in Python: the variant folder that Hugging Face `kernels` loads, with torch or without. Knows Python and that layout; imports nothing.
//!
//! | decision | because |
//! |---|---|
//! | what a shape needs is computed once and kept as a plan | a further call only fills in addresses and params |
//! | a function with params in its grid or champion keeps a plan for their values too | a plan never holds what a later call changes |
//! | scalars that follow from params are never kept, even so | values that are equal as keys, such as 0.0 and -0.0, have other bits |
//! | `metadata.json` lists digests of every other file | `kernels` defines it so |

use std::collections::BTreeMap;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minijinja::context;
use serde_json::json;

use super::error::{BindingsError, Unsupported};
use super::expressions::{Code, Type};
use super::names::{Distinct, OWN};
use super::plan::{
    Action, Arg, Buffer, Function, KernelAction, Launch, MapArg, PORTABLE, Param, Plan, Runs, Variant, WorkspaceFill,
};
use super::render::{Language, Renderer, VARIABLE};
use super::text::{map_type, range, render};
use kforge_types::model::grid::{OCCUPANCY, SM_COUNT};
use kforge_types::model::kernel::ITERATION;
use kforge_types::model::{DType, Role};
use sha2::{Digest, Sha256};

/// The folder of the variant for CUDA in the layout of `kernels`.
pub const FOLDER: &str = "build/torch-cuda";

/// The namespace of the operators: it holds the root digest.
pub fn namespace(plan: &Plan) -> String {
    format!("kforge_{}_{}", plan.name, &plan.root[..plan.root.len().min(12)])
}

/// The files of the Python package by their names, without a folder.
///
/// # Errors
/// A template is wrong.
pub fn package(plan: &Plan) -> Result<BTreeMap<String, Vec<u8>>, BindingsError> {
    let has_input = |function: &&Function| function.tensors.iter().any(|tensor| tensor.role != Role::Output);
    if let Some(function) = plan.functions.iter().find(|function| !has_input(function)) {
        let kernel = format!("`{}`", function.kernel);
        return Err(BindingsError::Unsupported { kernel, why: Unsupported::NoInput });
    }
    let kernels = named(plan);
    let python = Python { renderer: Renderer { language: Language::Python, prefix: String::new() }, plan };
    let functions: String = kernels.iter().map(|(name, choices)| python.kernel(name, choices)).collect();
    let registrations: String = kernels.iter().map(|(name, choices)| registration(name, choices[0])).collect();
    let public: Vec<&str> = kernels.iter().map(|(name, _)| name.as_str()).collect();
    let context = context! {
        package => &plan.package, version => &plan.version, license => &plan.license, root => &plan.root,
        namespace => namespace(plan), names => public.join(", "), portable => PORTABLE, functions, registrations,
        exported => public.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "),
    };
    let mut files = BTreeMap::new();
    for (name, template) in [
        ("__init__.py", include_str!("templates/init.py.j2")),
        ("_runtime.py", include_str!("templates/runtime.py.j2")),
        ("_kernels.py", include_str!("templates/kernels.py.j2")),
        ("_operators.py", include_str!("templates/operators.py.j2")),
    ] {
        files.insert(name.to_string(), render(name, template, context.clone())?.into_bytes());
    }
    files.extend(plan.binaries.iter().map(|binary| (binary.file.clone(), binary.bytes.clone())));
    for (name, choices) in configurations(plan) {
        files.insert(name, [serde_json::to_vec_pretty(&choices)?, b"\n".to_vec()].concat());
    }
    let metadata = metadata(plan, &files)?;
    files.insert("metadata.json".into(), metadata);
    Ok(files)
}

/// The kernels by the names of their functions in Python, each with its choices of types.
pub(super) fn named(plan: &Plan) -> Vec<(String, Vec<&Function>)> {
    let mut kernels: Vec<(&str, Vec<&Function>)> = vec![];
    for function in &plan.functions {
        match kernels.iter_mut().find(|(kernel, _)| *kernel == function.kernel) {
            Some((_, choices)) => choices.push(function),
            None => kernels.push((&function.kernel, vec![function])),
        }
    }
    let mut names = Distinct::apart_from(&OWN);
    kernels.into_iter().map(|(kernel, choices)| (names.name(kernel), choices)).collect()
}

/// The version in `metadata.json`: the major version, or 1 before the first.
pub(super) fn version(plan: &Plan) -> u64 {
    let major: u64 = plan.version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    major.max(1)
}

/// Tuned choices in the layout that `kernels` documents: a file for each device and each value of all dims but the first, which gives the tunables for
/// each value of the first. A folder for each function keeps functions apart. Only shapes that were timed are listed.
fn configurations(plan: &Plan) -> BTreeMap<String, BTreeMap<String, serde_json::Value>> {
    let mut files: BTreeMap<String, BTreeMap<String, serde_json::Value>> = BTreeMap::new();
    for function in &plan.functions {
        for target in &function.targets {
            for (values, variant) in &target.timed {
                let tunables = &function.variants[*variant].tunables;
                let mut dims = function.dims.iter().zip(values);
                let Some((_, first)) = dims.next().filter(|_| !tunables.is_empty()) else { continue };
                let fixed: String = dims.map(|(dim, value)| format!("{}={value},", dim.name)).collect();
                for product in &target.products {
                    let device = product.replace(' ', "_");
                    let file = format!("configs/{}/{fixed}device_name={device}.json", function.name);
                    files.entry(file).or_default().insert(first.to_string(), json!(tunables));
                }
            }
        }
    }
    files
}

/// `metadata.json`: the fields that `kernels` reads, and where the kernels come from.
fn metadata(plan: &Plan, files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, BindingsError> {
    let digests: BTreeMap<&String, String> =
        files.iter().map(|(name, bytes)| (name, STANDARD.encode(Sha256::digest(bytes)))).collect();
    let name: String = plan.name.replace('_', "-");
    let name = name.trim_matches('-');
    let name = if name.len() < 2 { format!("{name}-kernels") } else { name.to_string() };
    let archs = archs(plan);
    let value = json!({
        "name": name,
        "id": format!("_{}_cuda_{}", plan.name, &plan.root[..plan.root.len().min(12)]),
        "version": version(plan),
        "license": plan.license,
        "python-depends": [],
        "backend": { "type": "cuda", "archs": archs },
        "digest": { "algorithm": "sha256", "files": digests },
        "provenance": { "kernel-builder": { "version": env!("CARGO_PKG_VERSION") } },
        "kforge": { "package": plan.package, "version": plan.version, "root": format!("sha256:{}", plan.root) },
    });
    Ok([serde_json::to_vec_pretty(&value)?, b"\n".to_vec()].concat())
}

/// The architectures of the machine code, sorted, as `kernels` spells them.
pub(super) fn archs(plan: &Plan) -> Vec<String> {
    let mut archs: Vec<String> = plan.binaries.iter().map(|binary| dotted(&binary.arch)).collect();
    archs.sort();
    archs.dedup();
    archs
}

/// `9.0a` for `sm_90a`, as `kernels` spells architectures. Another spelling would not be checked.
fn dotted(arch: &str) -> String {
    let rest = arch.trim_start_matches("sm_");
    let digits = rest.trim_end_matches(['a', 'f']);
    let (major, minor) = digits.split_at(digits.len().saturating_sub(1));
    format!("{major}.{minor}{}", &rest[digits.len()..])
}

/// A text as a literal of Python.
fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// A tuple.
fn tuple(parts: &[String]) -> String {
    match parts {
        [one] => format!("({one},)"),
        parts => format!("({})", parts.join(", ")),
    }
}

/// The values that the functions of a kernel take, in order: dims, derived dims, params.
fn variables(function: &Function) -> Vec<String> {
    let dims = function.dims.iter().map(|dim| &dim.name).chain(function.derived.iter().map(|(name, _)| name));
    dims.chain(function.params.iter().map(|param| &param.name)).map(|name| format!("{VARIABLE}{name}")).collect()
}

/// The dims that no extent states.
fn given(function: &Function) -> Vec<String> {
    function.dims.iter().filter(|dim| dim.extent_of.is_none()).map(|dim| dim.public.clone()).collect()
}

/// Whether more than scalars depends on params.
fn is_keyed(function: &Function) -> bool {
    let uses = |code: &Code| function.params.iter().any(|param| code.uses(&param.name));
    let of_launch = |launch: &Launch| {
        let own = launch.when.iter().chain(&launch.repeat).any(uses);
        own || match &launch.action {
            Action::Memset(..) => false,
            Action::Kernel(kernel) => {
                let extents = kernel.grid.iter().chain(&kernel.block).chain(&kernel.cluster);
                let args = |arg: &Arg| match arg {
                    Arg::Pointer(_, offset) => offset.as_ref().is_some_and(|(offset, _)| uses(offset)),
                    Arg::Scalar(..) | Arg::Struct(..) => false,
                    Arg::Map(map) => {
                        let extents = map.shape.iter().chain(map.strides.iter().flatten()).chain(&map.tile);
                        extents.chain([&map.swizzle, &map.promotion]).any(uses)
                    }
                };
                let own = extents.chain([&kernel.shared]).chain(&kernel.assumes);
                own.into_iter().any(uses) || kernel.args.iter().any(args)
            }
        }
    };
    let of_variant = |variant: &Variant| {
        variant.requires.iter().chain(variant.workspaces.iter().flat_map(|part| &part.shape)).any(uses)
            || variant.launches.iter().any(of_launch)
    };
    function.tensors.iter().flat_map(|tensor| tensor.shape.iter().chain(tensor.strides.iter().flatten())).any(uses)
        || function.targets.iter().flat_map(|target| &target.seats).any(|seat| uses(&seat.when))
        || function.variants.iter().any(of_variant)
}

/// The type of a param in a schema of torch.
fn schema_type(param: &Param) -> &'static str {
    match param.of_type() {
        Type::Int => "int",
        Type::Float => "float",
        Type::Bool => "bool",
    }
}

/// The registration of a kernel as an operator.
fn registration(name: &str, function: &Function) -> String {
    let letters = "abcdefghijklmnopqrstuvwxyz";
    let mut mutated = letters.chars().cycle();
    let inputs: Vec<_> = function.tensors.iter().filter(|tensor| tensor.role != Role::Output).collect();
    let mut arguments: Vec<String> = inputs
        .iter()
        .map(|tensor| match tensor.role {
            Role::Inout => format!("Tensor({}!) {}", mutated.next().unwrap_or('a'), tensor.public),
            _ => format!("Tensor {}", tensor.public),
        })
        .collect();
    let dims = given(function);
    arguments.extend(dims.iter().map(|dim| format!("SymInt {dim}")));
    arguments.extend(function.params.iter().map(|param| format!("{}? {}=None", schema_type(param), param.public)));
    let outputs = vec!["Tensor"; function.tensors.len() - inputs.len()];
    let returns = if let [one] = outputs[..] { one.to_string() } else { format!("({})", outputs.join(", ")) };
    let schema = format!("({}) -> {returns}", arguments.join(", "));
    let names = inputs.iter().map(|tensor| &tensor.public).chain(&dims);
    let names = names.chain(function.params.iter().map(|param| &param.public));
    let names: Vec<String> = names.map(|name| string(name)).collect();
    format!(
        "_register({}, {}, {}, _kernels._function_{name}, _kernels._direct_{name}, {}, {})\n",
        string(name),
        string(&schema),
        tuple(&names),
        inputs.len(),
        dims.len()
    )
}

struct Python<'a> {
    renderer: Renderer,
    plan: &'a Plan,
}

impl Python<'_> {
    fn code(&self, code: &Code) -> String {
        self.renderer.code(code)
    }

    fn codes(&self, codes: &[Code]) -> String {
        tuple(&codes.iter().map(|code| self.code(code)).collect::<Vec<_>>())
    }

    /// A kernel with all its choices of types.
    fn kernel(&self, name: &str, choices: &[&Function]) -> String {
        let mut text = String::new();
        for function in choices {
            for (at, variant) in function.variants.iter().enumerate() {
                text += &self.variant(function, at, variant);
                text += &self.assumptions(function, at, variant);
            }
            for (at, target) in function.targets.iter().enumerate() {
                let _ = write!(
                    text,
                    "\n\ndef _on{at}_{}({}):\n    # {}\n",
                    function.name,
                    variables(function).join(", "),
                    target.name
                );
                for seat in &target.seats {
                    let mut when = self.code(&seat.when);
                    if seat.assumes {
                        let all = variables(function).join(", ");
                        let _ = write!(when, " and _a{}_{}({all})", seat.variant, function.name);
                    }
                    let _ = writeln!(text, "    if {when}:\n        return {}  # {}", seat.variant, seat.class);
                }
                for when in target.classes_with_assumptions() {
                    let _ = writeln!(text, "    if {}:\n        return -1", self.code(when));
                }
                text += "    return None\n";
            }
        }
        let first = choices[0];
        let texts =
            |of: &dyn Fn(&super::plan::Tensor) -> String| tuple(&first.tensors.iter().map(of).collect::<Vec<_>>());
        let role = |role: Role| match role {
            Role::Input => "input",
            Role::Inout => "inout",
            Role::Output => "output",
        };
        let extents: Vec<String> = first
            .dims
            .iter()
            .map(|dim| dim.extent_of.map_or("None".into(), |(tensor, axis)| format!("({tensor}, {axis})")))
            .collect();
        let params: Vec<String> = first.params.iter().map(declared).collect();
        let _ = write!(
            text,
            "\n\n_function_{name} = _r.Function(\n    {},\n    {},\n    {},\n    {},\n    {},\n    {},\n    [\n{}    ],\n)\n",
            string(name),
            texts(&|tensor| string(&tensor.public)),
            texts(&|tensor| string(role(tensor.role))),
            texts(&|tensor| tensor.align.to_string()),
            tuple(&extents),
            tuple(&params),
            choices.iter().map(|choice| self.choice(choice)).collect::<String>()
        );
        text + &public(name, choices)
    }

    /// What a choice of types is made of.
    fn choice(&self, function: &Function) -> String {
        let dims: Vec<String> = function.dims.iter().map(|dim| format!("{VARIABLE}{}", dim.name)).collect();
        let dtypes: Vec<String> = function.tensors.iter().map(|tensor| string(tensor.dtype.name())).collect();
        let all = variables(function).join(", ");
        let derived: Vec<String> =
            dims.iter().cloned().chain(function.derived.iter().map(|(name, _)| format!("{VARIABLE}{name}"))).collect();
        // A derived dim may use those before it, so each is bound in turn.
        let bound = function.derived.iter().rev().fold(tuple(&derived), |inner, (name, value)| {
            format!("(lambda {VARIABLE}{name}: {inner})({})", self.code(value))
        });
        let layouts: Vec<String> = function
            .tensors
            .iter()
            .map(|tensor| {
                let strides = tensor.strides.as_ref().map_or("None".into(), |strides| self.codes(strides));
                format!("({}, {strides})", self.codes(&tensor.shape))
            })
            .collect();
        let defaults: Vec<String> = function
            .params
            .iter()
            .map(|param| param.default.as_ref().map_or("None".into(), |default| self.code(default)))
            .collect();
        let of_dims = derived.join(", ");
        let targets: Vec<String> = function
            .targets
            .iter()
            .enumerate()
            .map(|(at, target)| {
                let products: Vec<String> = target.products.iter().map(|product| string(product)).collect();
                let (major, minor) = target.capability;
                let exact = if target.runs == Runs::Exactly { "True" } else { "False" };
                format!("({}, {exact}, {}, _on{at}_{})", major * 10 + minor, tuple(&products), function.name)
            })
            .collect();
        let variants: Vec<String> =
            (0..function.variants.len()).map(|at| format!("_v{at}_{}", function.name)).collect();
        let workspaces: Vec<String> = function
            .variants
            .iter()
            .map(|variant| {
                let parts: Vec<String> = variant
                    .workspaces
                    .iter()
                    .map(|part| format!("({}, {})", string(part.dtype.name()), self.codes(&part.shape)))
                    .collect();
                format!("lambda {all}: {}", tuple(&parts))
            })
            .collect();
        let names: Vec<String> = function.dims.iter().map(|dim| string(&dim.public)).collect();
        format!(
            "        _r.Choice(\n            {},\n            {},\n            lambda {}: {bound},\n            \
             lambda {all}: {},\n            lambda {of_dims}: {},\n            [{}],\n            [{}],\n            \
             [{}],\n        ),\n",
            tuple(&dtypes),
            tuple(&names),
            dims.join(", "),
            tuple(&layouts),
            tuple(&defaults),
            targets.join(", "),
            variants.join(", "),
            workspaces.join(", ")
        )
    }

    /// Whether what the machine code of a variant assumes of its launches holds.
    fn assumptions(&self, function: &Function, at: usize, variant: &Variant) -> String {
        if variant.assumptions().next().is_none() {
            return String::new();
        }
        let mut text = format!("\n\ndef _a{at}_{}({}):\n", function.name, variables(function).join(", "));
        for (launch, assumes) in variant.assumptions() {
            let mut indent = "    ".to_string();
            if let Some(repeat) = &launch.repeat {
                // What does not depend on the repetition is asked once; too many repetitions are refused where they are launched.
                let most = if launch.assumes_by_iteration() { 100_000 } else { 1 };
                let _ =
                    writeln!(text, "{indent}for {VARIABLE}{ITERATION} in _range(_min({}, {most})):", self.code(repeat));
                indent += "    ";
            }
            if let Some(when) = &launch.when {
                let _ = writeln!(text, "{indent}if {}:", self.code(when));
                indent += "    ";
            }
            for assumed in assumes {
                let _ = writeln!(text, "{indent}if not {}:\n{indent}    return False", self.code(assumed));
            }
        }
        text + "    return True\n"
    }

    /// The launches of a variant.
    fn variant(&self, function: &Function, at: usize, variant: &Variant) -> String {
        let mut all = vec!["s".to_string()];
        all.extend(variables(function));
        let mut text = format!(
            "\n\ndef _v{at}_{}({}):\n    {}\n",
            function.name,
            all.join(", "),
            string(&if variant.label.is_empty() { function.kernel.clone() } else { variant.label.clone() })
        );
        for requires in &variant.requires {
            let _ = writeln!(
                text,
                "    if not {}:\n        raise _r.WrongShape(\"the champion of this class does not serve this shape\")",
                self.code(requires)
            );
        }
        let buffer = |buffer: &Buffer| match buffer {
            Buffer::Tensor(at) => *at,
            Buffer::Workspace(at) => function.tensors.len() + at,
        };
        for (binary, symbol, tensor) in &variant.constants {
            let file = &self.plan.binaries[*binary].file;
            let _ = writeln!(text, "    s.constant({}, {}, {tensor})", string(file), string(symbol));
        }
        for (part, workspace) in variant.workspaces.iter().enumerate() {
            let at = function.tensors.len() + part;
            match &workspace.fill {
                WorkspaceFill::Nothing => {}
                WorkspaceFill::Zero => {
                    let _ = writeln!(text, "    s.memset({at}, 0)");
                }
                WorkspaceFill::Addresses(buffers) => {
                    let all: Vec<String> = buffers.iter().map(|b| buffer(b).to_string()).collect();
                    let _ = writeln!(text, "    s.addresses({at}, {})", tuple(&all));
                }
            }
        }
        // What comes before the first launch is no kernel of the sequence.
        text += "    s.after_kernel = False\n";
        for launch in &variant.launches {
            let mut indent = "    ".to_string();
            if let Some(repeat) = &launch.repeat {
                let _ = writeln!(text, "{indent}for {VARIABLE}{ITERATION} in s.times({}):", self.code(repeat));
                indent += "    ";
            }
            if let Some(when) = &launch.when {
                let _ = writeln!(text, "{indent}if {}:", self.code(when));
                indent += "    ";
            }
            match &launch.action {
                Action::Memset(of, value) => {
                    let _ = writeln!(text, "{indent}s.memset({}, {value})", buffer(of));
                }
                Action::Kernel(kernel) => {
                    text += &self.launch(function, kernel, &indent, &buffer, launch.repeat.is_some());
                }
            }
        }
        text
    }

    fn launch(
        &self,
        function: &Function,
        kernel: &KernelAction,
        indent: &str,
        buffer: &impl Fn(&Buffer) -> usize,
        repeats: bool,
    ) -> String {
        let entry = &self.plan.entries[kernel.entry];
        let grid = self.codes(&kernel.grid);
        let grid =
            if kernel.open { format!("lambda {VARIABLE}{SM_COUNT}, {VARIABLE}{OCCUPANCY}: {grid}") } else { grid };
        let truth = |truth: bool| if truth { "True" } else { "False" };
        let uses = |code: &Code| function.params.iter().any(|param| code.uses(&param.name));
        let value = |code: &Code| {
            if !uses(code) {
                return self.code(code);
            }
            // A param as it is needs no function.
            let place = |name: &str| function.params.iter().position(|param| param.name == name);
            if let Code::Name(name, _) = code
                && let Some(at) = place(name)
            {
                return format!("_r.Param({at})");
            }
            let params: Vec<String> = function.params.iter().map(|param| format!("{VARIABLE}{}", param.name)).collect();
            // The params of a call come first; what the shape gives is bound now.
            let mut bound: Vec<String> = function.dims.iter().map(|dim| format!("{VARIABLE}{}", dim.name)).collect();
            bound.extend(function.derived.iter().map(|(name, _)| format!("{VARIABLE}{name}")));
            if repeats {
                bound.push(format!("{VARIABLE}{ITERATION}"));
            }
            let bound: String = bound.iter().map(|name| format!(", {name}={name}")).collect();
            format!("lambda {}{bound}: {}", params.join(", "), self.code(code))
        };
        let mut args = String::new();
        for arg in &kernel.args {
            let one = match arg {
                Arg::Pointer(of, None) => format!("(\"pointer\", 8, 8, ({}, 0))", buffer(of)),
                Arg::Pointer(of, Some((offset, bytes))) => {
                    format!("(\"pointer\", 8, 8, ({}, s.offset({}) * {bytes}))", buffer(of), self.code(offset))
                }
                Arg::Scalar(dtype, code) => {
                    format!("(\"scalar\", {}, 8, [(0, \"{}\", {})])", dtype.bytes(), form(*dtype), value(code))
                }
                Arg::Struct(fields, size) => {
                    let all: Vec<String> = fields
                        .iter()
                        .map(|(at, dtype, code)| format!("({at}, \"{}\", {})", form(*dtype), value(code)))
                        .collect();
                    format!("(\"struct\", {size}, 16, [{}])", all.join(", "))
                }
                Arg::Map(map) => self.map(map, buffer(&map.buffer)),
            };
            let _ = writeln!(args, "{indent}        {one},");
        }
        format!(
            "{indent}s.kernel(\n{indent}    ({}, {}), {}, {}, {}, {grid}, {}, {},\n{indent}    [\n{args}{indent}    ],\n\
             {indent})  # fmt: skip\n",
            string(&self.plan.binaries[entry.binary].file),
            string(&entry.symbol),
            self.codes(&kernel.block),
            self.code(&kernel.shared),
            self.codes(&kernel.cluster),
            truth(kernel.cooperative),
            truth(kernel.pdl),
        )
    }

    fn map(&self, map: &MapArg, buffer: usize) -> String {
        let strides = map.strides.as_ref().map_or("None".into(), |strides| self.codes(strides));
        format!(
            "(\"map\", 128, 128, ({buffer}, {}, {}, {}, {strides}, {}, {}, {}, {}))",
            map_type(map.dtype),
            map.dtype.bytes(),
            self.codes(&map.shape),
            self.codes(&map.tile),
            self.code(&map.swizzle),
            self.code(&map.promotion),
            u8::from(map.nan)
        )
    }
}

/// A param: its name, the kind of its values, and for integers the least and the largest.
fn declared(param: &Param) -> String {
    let (low, high) = range(param.dtype);
    match param.of_type() {
        Type::Int => format!("({}, int, {low}, {high})", string(&param.public)),
        Type::Float => format!("({}, float, None, None)", string(&param.public)),
        Type::Bool => format!("({}, bool, None, None)", string(&param.public)),
    }
}

/// The letter of a scalar in Python's `struct`.
fn form(dtype: DType) -> char {
    match dtype {
        DType::F64 => 'd',
        DType::F32 => 'f',
        DType::I64 => 'q',
        DType::U64 => 'Q',
        DType::I32 => 'i',
        DType::U32 => 'I',
        DType::I16 => 'h',
        DType::U16 => 'H',
        DType::I8 => 'b',
        DType::Bool => '?',
        _ => 'B',
    }
}

/// The functions that callers call.
fn public(name: &str, choices: &[&Function]) -> String {
    let function = choices[0];
    let inputs: Vec<&str> =
        function.tensors.iter().filter(|t| t.role != Role::Output).map(|tensor| tensor.public.as_str()).collect();
    let dims = given(function);
    let params: Vec<&str> = function.params.iter().map(|param| param.public.as_str()).collect();
    let listed = |parts: &[&str]| tuple(&parts.iter().map(ToString::to_string).collect::<Vec<_>>());
    let (values, given) = (listed(&params), tuple(&dims));
    let keyed = choices.iter().any(|choice| is_keyed(choice));
    let mut signature: Vec<String> = inputs.iter().map(ToString::to_string).collect();
    signature.extend(dims.iter().cloned());
    let required = signature.clone();
    signature.extend(params.iter().map(|param| format!("{param}=None")));
    let operands: Vec<String> = required.iter().cloned().chain(params.iter().map(ToString::to_string)).collect();
    let mut key: Vec<String> = inputs
        .iter()
        .flat_map(|x| {
            [format!("{x}.get_device()"), format!("{x}.dtype"), format!("{x}.shape"), format!("{x}.stride()")]
        })
        .collect();
    key.extend(dims.iter().cloned());
    if keyed {
        key.extend(params.iter().map(ToString::to_string));
    }
    let is_tensor: Vec<String> = inputs.iter().map(|x| format!("_isinstance({x}, _Tensor)")).collect();
    let grad: Vec<String> = inputs.iter().map(|x| format!("{x}.requires_grad")).collect();
    let pointers: Vec<String> = inputs.iter().map(|x| format!("{x}.data_ptr()")).collect();
    let array = |tensor: &super::plan::Tensor| {
        let writes = if tensor.role == Role::Inout { ", True" } else { "" };
        format!("_array({}, {}, stream{writes})", string(&tensor.public), tensor.public)
    };
    let arrays: Vec<String> = function.tensors.iter().filter(|t| t.role != Role::Output).map(array).collect();
    let outputs = function.tensors.iter().filter(|tensor| tensor.role == Role::Output).count();
    let returned = |indent: &str| match outputs {
        0 => format!("{indent}return None\n"),
        1 => format!("{indent}return _outputs[0]\n"),
        _ => format!("{indent}return _outputs\n"),
    };
    let mut doc = format!("{}\n", choices.iter().map(|c| c.title.as_str()).collect::<Vec<_>>().join("\n    "));
    for tensor in &function.tensors {
        let dtypes: Vec<&str> = choices
            .iter()
            .map(|c| c.tensors.iter().find(|t| t.name == tensor.name).map_or("", |t| t.dtype.name()))
            .collect();
        let mut dtypes = dtypes;
        dtypes.dedup();
        let role = match tensor.role {
            Role::Input => "input",
            Role::Inout => "read and written",
            Role::Output => "output",
        };
        let strides = if tensor.strides.is_some() { ", with strides" } else { "" };
        let _ = write!(
            doc,
            "\n    {}: {role}, {} {}{strides}, aligned to {} bytes",
            tensor.public,
            dtypes.join(" or "),
            tensor.shape_text,
            tensor.align
        );
    }
    for param in &function.params {
        let default = param.default_text.as_ref().map_or_else(String::new, |text| format!(", {text} if none"));
        let _ = write!(doc, "\n    {}: {}{default}", param.public, param.dtype);
    }
    if let Some(note) = choices.iter().find_map(|choice| choice.constants_note()) {
        let _ = write!(doc, "\n\n    {note}");
    }
    let doc = doc.replace('\\', "\\\\").replace("\"\"\"", "'''");
    let resolved = |indent: &str| {
        if params.is_empty() {
            return String::new();
        }
        let names: String = params.iter().map(|param| format!("{param}, ")).collect();
        format!("{indent}{names}= _function_{name}.given(_plan, {values})\n")
    };
    // What is quick to ask of a torch tensor: whether it is contiguous rather than its strides.
    let inputs_of = function.tensors.iter().filter(|tensor| tensor.role != Role::Output);
    let mut quick: Vec<String> = inputs_of
        .flat_map(|tensor| {
            let x = &tensor.public;
            let layout = if tensor.strides.is_some() { "stride()" } else { "is_contiguous()" };
            [format!("{x}.shape"), format!("{x}.dtype"), format!("{x}.get_device()"), format!("{x}.{layout}")]
        })
        .collect();
    quick.extend(dims.iter().cloned());
    if keyed {
        quick.extend(params.iter().map(ToString::to_string));
    }
    let (quick, operands) = (tuple(&quick), operands.join(", "));
    let hit = format!(
        "    if stream is None:\n        try:\n            _hit = _hits_{name}[{quick}]\n\
         \x20       except (KeyError, AttributeError, TypeError):\n            return _slow_{name}({operands}, out, None)\n\
         \x20       return _hit({hit_operands}, out)\n    return _slow_{name}({operands}, out, stream)\n",
        hit_operands = inputs.iter().chain(&params).map(ToString::to_string).collect::<Vec<_>>().join(", "),
    );
    format!(
        "\n\n_hits_{name} = _function_{name}.hits\n\n\ndef _slow_{name}({operands}, out, stream):\n\
         \x20   if {is_tensor} and stream is None:\n\
         \x20       if ({grad}) and _grad():\n            _need_no_grad(_function_{name}.names, {inputs})\n\
         \x20       _key = {key}\n\
         \x20       _plan = _function_{name}.plans.get(_key)\n\
         \x20       if _plan is None:\n            _plan = _function_{name}.plan(_key, {inputs}, {given}, {values})\n\
         \x20       _hits_{name}[{quick}] = _hit_of(_function_{name}, _plan)\n\
         {missing_inner}\
         \x20       _outputs = _run_torch(_function_{name}, _plan, {inputs}, {pointers}, {values}, out)\n\
         {returned_inner}\
         \x20   {names}= {arrays}\n\
         \x20   _key = {key}\n\
         \x20   _plan = _function_{name}.plans.get(_key) or _function_{name}.plan(_key, {inputs}, {given}, {values})\n\
         {missing}\
         \x20   _run_foreign(_function_{name}, _plan, {pointers}, {values}, out, stream)\n\
         \x20   return out\n\
         \n\ndef _direct_{name}({direct}, *, out=None, stream=None):\n{hit}\
         \n\ndef {name}({direct}, *, out=None, stream=None):\n    \"\"\"{doc}\n\n    \
         Outputs are new torch tensors, or `out`. Arrays other than torch tensors come through DLPack, with `out` and on `stream`.\n    \
         What is written may share memory with no other argument.\n    \"\"\"\n\
         \x20   if _compiling() and out is None and stream is None:\n        return _operators.{name}({operands})\n{hit}",
        direct = signature.join(", "),
        is_tensor = is_tensor.join(" and "),
        grad = grad.join(" or "),
        inputs = listed(&inputs),
        key = tuple(&key),
        missing_inner = resolved("        "),
        missing = resolved("    "),
        pointers = tuple(&pointers),
        names = inputs.iter().map(|x| format!("{x}, ")).collect::<String>(),
        arrays = tuple(&arrays),
        returned_inner = returned("        "),
    )
}
