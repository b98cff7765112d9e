//! A kernel in Triton as the guesses for kernels in CUDA C++ know one: parameters with roles, dims, a grid. Knows what a parser says of a function and its
//! launches; takes the launch that a manifest can state most completely.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::facts::{PythonKernel, PythonLaunch};
use crate::source::Place;
use crate::source::import::arithmetic::{binary, ceil_div, substituted};
use crate::source::import::expression::Expression;
use crate::source::import::kernel::{Extents, Kernel};
use crate::source::import::naming::{is_usable, usable};
use crate::source::import::parameter::{Access, Parameter};
use crate::source::tokens::tokens;

/// The type of tensors.
pub(in crate::source::import) const TYPE: &str = "T";
/// Threads of a program, where nothing is stated.
const THREADS: i64 = 128;
/// Names of scalars that are floats.
const FLOATS: [&str; 10] = ["eps", "scale", "alpha", "beta", "slope", "momentum", "dropout", "prob", "rate", "factor"];

/// A stride of a tensor: its parameter, and the axis.
pub(super) type Stride = (String, usize);

/// A kernel with what its source says.
pub(super) struct Found<'a> {
    pub(super) kernel: Kernel,
    pub(super) function: &'a PythonKernel,
    pub(super) launch: Option<&'a PythonLaunch>,
    /// Programs along each axis, with names of tunables.
    pub(super) grid: Extents,
    /// Parameters that are strides.
    pub(super) strides: BTreeMap<String, Stride>,
    /// Tunables with their values, those of constants first.
    pub(super) tune: Vec<(String, Vec<Value>)>,
    /// The manifest's names of parameters that it cannot use as they are.
    pub(super) renamed: BTreeMap<String, String>,
}

impl<'a> Found<'a> {
    /// The kernel of a function in a file with launches.
    pub(super) fn read(file: &str, function: &'a PythonKernel, launches: &'a [PythonLaunch]) -> Self {
        let renamed = renamed(function);
        let tune = |launch: Option<&PythonLaunch>| tunables(function, launch);
        let own = launches.iter().filter(|launch| launch.kernel == function.name);
        let open = |launch: &&PythonLaunch| {
            let known = tune(Some(launch));
            let grid = extents(launch, function, &known, &renamed);
            (usize::from(grid.unknown.is_some()), usize::from(launch.starred), launch.line)
        };
        let launch = own.min_by_key(open);
        let tune = tune(launch);
        let grid = match launch {
            Some(launch) => extents(launch, function, &tune, &renamed),
            None => Extents { unknown: Some("no launch of it was found".into()), ..Extents::default() },
        };
        let name = |of: &str| renamed.get(of).cloned().unwrap_or_else(|| of.to_string());
        let plain = || function.params.iter().filter(|param| !param.constexpr);
        let (mut integers, mut strides, mut dims) = (BTreeMap::new(), BTreeMap::new(), vec![]);
        let mut parameters = vec![];
        for param in plain() {
            let own = name(&param.name);
            let argument = launch.and_then(|launch| launch.arguments.get(&param.name));
            let access = function.access.get(&param.name).map(String::as_str);
            let pointer = access.is_some() || param.name.to_ascii_lowercase().ends_with("ptr");
            let is_float = !pointer && is_float(function, &param.name, argument);
            let (spelling, dtype) = match (pointer, is_float) {
                (true, _) => ("pointer", TYPE),
                (_, true) => ("float", "f32"),
                _ => ("int", "i32"),
            };
            parameters.push(Parameter {
                name: own.clone(),
                spelling: spelling.into(),
                dtype: Some(dtype),
                lanes: 1,
                pointer,
                constant: access == Some("read"),
                access: match access {
                    Some("read") => Access::Read,
                    Some("written") => Access::Written,
                    Some("both") => Access::Both,
                    Some("atomic") => Access::Atomic,
                    _ => Access::Unknown,
                },
                doubt: None,
            });
            if pointer || is_float {
                continue;
            }
            let value = match argument {
                Some(argument) if argument.get("stride").is_some() => {
                    let of = argument["stride"][0].as_str().unwrap_or_default();
                    let axis = argument["stride"][1].as_u64().and_then(|axis| usize::try_from(axis).ok()).unwrap_or(0);
                    strides.insert(own.clone(), (name(of), axis));
                    Expression::Opaque(own.clone())
                }
                Some(argument) if argument.get("int").is_some() => {
                    Expression::Int(argument["int"].as_i64().unwrap_or(1))
                }
                _ if param.name.to_ascii_lowercase().contains("stride") => Expression::Opaque(own.clone()),
                _ => {
                    dims.push(own.clone());
                    Expression::Name(own.clone())
                }
            };
            integers.insert(own, value);
        }
        for extent in &grid.known {
            for of in extent.names().unwrap_or_default() {
                if !dims.contains(&of) && !tune.iter().any(|(tunable, _)| *tunable == of) {
                    dims.push(of);
                }
            }
        }
        let place = |line: u32| Place { file: file.to_string(), line };
        let kernel = Kernel {
            name: function.name.clone(),
            place: place(function.line),
            source: file.to_string(),
            include: vec![],
            entry: function.name.clone(),
            entry_check: None,
            parameters,
            structs: BTreeMap::new(),
            values: BTreeMap::new(),
            // Guesses look for words in the body.
            body: tokens(&function.calls.join(" ")).0,
            dims,
            integers,
            nulls: launch.map(|launch| launch.nulls.iter().map(|null| name(null)).collect()).unwrap_or_default(),
            checked: vec![],
            described: launch.map(|launch| launch.descriptors.keys().map(|of| name(of)).collect()).unwrap_or_default(),
            constants: vec![],
            grid: numbers(&grid, &tune),
            block: Extents { known: vec![Expression::Int(THREADS)], ..Extents::default() },
            shared: None,
            launched: launch.map(|launch| place(launch.line)),
        };
        Found { kernel, function, launch, grid, strides, tune, renamed }
    }
}

/// Names for parameters whose own names mean something else in a manifest.
fn renamed(function: &PythonKernel) -> BTreeMap<String, String> {
    let mut taken: BTreeSet<String> = function.params.iter().map(|param| param.name.clone()).collect();
    let mut out = BTreeMap::new();
    for param in function.params.iter().filter(|param| !param.constexpr && !is_usable(&param.name)) {
        let new = usable(&param.name, &|new| taken.contains(new));
        taken.insert(new.clone());
        out.insert(param.name.clone(), new);
    }
    out
}

fn is_float(function: &PythonKernel, name: &str, argument: Option<&Value>) -> bool {
    let lower = name.to_ascii_lowercase();
    argument.is_some_and(|argument| argument.get("float").is_some())
        || function.floats.iter().any(|float| float == name)
        || FLOATS.iter().any(|word| lower == *word || lower.ends_with(&format!("_{word}")))
}

/// Tunables: what configurations state, and constants that a launch states as numbers.
fn tunables(function: &PythonKernel, launch: Option<&PythonLaunch>) -> Vec<(String, Vec<Value>)> {
    let mut out: Vec<(String, Vec<Value>)> = vec![];
    let mut add = |name: &str, value: &Value| match out.iter_mut().find(|(known, _)| known == name) {
        Some((_, values)) if values.contains(value) => {}
        Some((_, values)) => values.push(value.clone()),
        None => out.push((name.to_string(), vec![value.clone()])),
    };
    for param in function.params.iter().filter(|param| param.constexpr) {
        for config in &function.configs {
            config.constants.get(&param.name).iter().for_each(|value| add(&param.name, value));
        }
        let stated = launch.and_then(|launch| launch.constants.get(&param.name)?.get("value").cloned());
        if let Some(value) = stated.filter(|value| value.is_i64() && is_usable(&param.name)) {
            add(&param.name, &value);
        }
    }
    for option in ["num_warps", "num_stages", "num_ctas"] {
        let values: Vec<&Value> = function.configs.iter().filter_map(|config| config.options.get(option)).collect();
        if values.iter().any(|value| *value != values[0]) {
            values.into_iter().for_each(|value| add(&option.to_ascii_uppercase(), value));
        }
    }
    out
}

/// The grid of a launch, with names of tunables.
fn extents(
    launch: &PythonLaunch,
    function: &PythonKernel,
    tune: &[(String, Vec<Value>)],
    renamed: &BTreeMap<String, String>,
) -> Extents {
    let mut out = Extents::default();
    let is_constant = |name: &str| function.params.iter().any(|param| param.constexpr && param.name == name);
    for extent in &launch.grid {
        let found = expression(extent, renamed);
        // A constant that is no tunable has no name in a manifest.
        let sound = found.names().is_some_and(|names| {
            names.iter().all(|name| !is_constant(name) || tune.iter().any(|(tunable, _)| tunable == name))
                && names.iter().all(|name| is_usable(name))
        });
        if !sound {
            out.unknown = Some(found.text());
            return out;
        }
        out.known.push(found);
    }
    out
}

/// The expression that a reader found.
pub(super) fn expression(value: &Value, renamed: &BTreeMap<String, String>) -> Expression {
    let parts = || -> Vec<Expression> {
        value["of"].as_array().map(|all| all.iter().map(|one| expression(one, renamed)).collect()).unwrap_or_default()
    };
    if let Some(int) = value["int"].as_i64() {
        return Expression::Int(int);
    }
    if let Some(name) = value["name"].as_str() {
        return Expression::Name(renamed.get(name).cloned().unwrap_or_else(|| name.to_string()));
    }
    let mut parts = parts().into_iter();
    match (value["op"].as_str(), value["call"].as_str(), parts.next(), parts.next()) {
        (Some(sign), _, Some(a), Some(b)) => binary(sign.chars().next().unwrap_or('+'), a, b),
        (_, Some("ceil_div"), Some(a), Some(b)) => ceil_div(a, b),
        (_, Some("min"), Some(a), Some(b)) => Expression::Call("min", vec![a, b]),
        (_, Some("max"), Some(a), Some(b)) => Expression::Call("max", vec![a, b]),
        _ => Expression::Opaque(value["text"].as_str().map_or_else(|| value.to_string(), str::to_string)),
    }
}

/// The same with the first value of each tunable, for the choice of shapes.
fn numbers(grid: &Extents, tune: &[(String, Vec<Value>)]) -> Extents {
    let first =
        |(name, values): &(String, Vec<Value>)| Some((name.clone(), Expression::Int(values.first()?.as_i64()?)));
    let values: Vec<(String, Expression)> = tune.iter().filter_map(first).collect();
    let given: BTreeMap<&str, &Expression> = values.iter().map(|(name, value)| (name.as_str(), value)).collect();
    Extents { known: grid.known.iter().map(|extent| substituted(extent, &given)).collect(), ..grid.clone() }
}
