//! The tables of a kernel in Triton: tunables, the launch with its arguments, constants and options. Knows the form of `kernel.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::facts::{PythonDescriptor, PythonParam};
use super::kernel::{Found, expression};
use crate::source::import::covers::launch_of;
use crate::source::import::expression::Expression;
use crate::source::import::guess::Guess;
use crate::source::import::kernel::Kernel;
use crate::source::import::manifest::{check, extent, list, one_line, requires, text};
use crate::source::import::operators::Operator;

/// The most combinations of tunables that a condition lists.
const LISTED: usize = 64;

/// The names of a kernel in the manifest's words.
struct Names<'a> {
    /// Tensors and floats.
    named: BTreeMap<&'a str, &'a str>,
    dims: BTreeMap<&'a str, &'a str>,
}

impl Names<'_> {
    fn renamed(&self, e: &Expression) -> Expression {
        let own = |e: &Expression| match e {
            Expression::Name(name) => self.dims.get(name.as_str()).map(|other| Expression::Name((*other).to_string())),
            _ => None,
        };
        e.renamed(&own)
    }
}

/// Writes the tables of a kernel.
pub(super) fn write(out: &mut String, name: &str, operator: &Operator, found: &Found<'_>, guess: &Guess) {
    let (kernel, shared) = (&found.kernel, &operator.guess);
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    named.extend(guess.tensors.iter().zip(&shared.tensors).map(|(a, b)| (a.name.as_str(), b.name.as_str())));
    named.extend(guess.floats.iter().zip(&shared.floats).map(|(a, b)| (a.0.as_str(), b.0.as_str())));
    let dims = guess.dims.iter().zip(&shared.dims).map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let names = Names { named, dims };
    let _ = write!(out, "\n[kernel.{name}] # {}\n", one_line(&kernel.place.to_string()));
    let _ =
        writeln!(out, "operator = {}\nlanguage = \"triton\"\nsource = {}", text(&operator.name), text(&kernel.source));
    if !kernel.described.is_empty() {
        requires(out, guess, &names.dims);
    }
    tunables(out, found);
    if let Some(zeroed) = &guess.zeroed {
        let zeroed = names.named.get(zeroed.as_str()).copied().unwrap_or(zeroed);
        let _ = write!(out, "\n[[kernel.{name}.launch]]\nmemset = {} # the kernel adds to it\n", text(zeroed));
    }
    let _ = write!(out, "\n[[kernel.{name}.launch]]\nentry = {}\n", text(&kernel.entry));
    grid(out, found, guess, &names);
    let _ = arguments(out, found, guess, &names);
    constants(out, found, &names);
    options(out, found);
}

fn tunables(out: &mut String, found: &Found<'_>) {
    let unread = &found.function.unread;
    let asked = (!unread.is_empty())
        .then(|| format!("`@triton.autotune` also has `{unread}`, which is no literal: add its values"));
    let mut asked = asked;
    for (name, values) in &found.tune {
        let values = list(values.iter().map(scalar));
        let _ = writeln!(out, "tune.{name} = {values}{}", check(asked.take()));
    }
    if let Some(asked) = asked {
        let _ = writeln!(out, "# check: {}", one_line(&asked));
    }
    let several: Vec<&(String, Vec<Value>)> = found.tune.iter().filter(|(_, values)| values.len() > 1).collect();
    let all = several.iter().map(|(_, values)| values.len()).fold(1usize, usize::saturating_mul);
    let configs = &found.function.configs;
    let value = |config: usize, name: &str| {
        let config = &configs[config];
        let option = name.to_ascii_lowercase();
        config.constants.get(name).or_else(|| config.options.get(&option)).map(scalar_in_expression)
    };
    let mut combinations: Vec<String> = vec![];
    for config in 0..configs.len() {
        let parts: Vec<String> =
            several.iter().filter_map(|(name, _)| Some(format!("{name} == {}", value(config, name)?))).collect();
        let combination = format!("({})", parts.join(" and "));
        if !parts.is_empty() && !combinations.contains(&combination) {
            combinations.push(combination);
        }
    }
    if !combinations.is_empty() && combinations.len() < all && combinations.len() <= LISTED {
        let _ = writeln!(out, "tune.where = [{}] # those of `@triton.autotune`", text(&combinations.join(" or ")));
    }
}

/// A value of a tunable.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(word) => text(word),
        other => other.to_string(),
    }
}

fn scalar_in_expression(value: &Value) -> String {
    match value {
        Value::String(word) => format!("'{word}'"),
        other => other.to_string(),
    }
}

fn grid(out: &mut String, found: &Found<'_>, guess: &Guess, names: &Names<'_>) {
    let line = |all: &[Expression]| list(all.iter().map(|e| extent(&names.renamed(e).text())));
    match &found.grid.unknown {
        None => {
            let _ = writeln!(out, "grid = {}", line(&found.grid.known));
        }
        Some(why) => {
            let (guessed, _) = launch_of(&found.kernel, guess);
            let asked = match &found.kernel.launched {
                Some(place) => format!("state it; the source has `{why}` at {place}"),
                None => format!("state it; {why}"),
            };
            let _ = writeln!(out, "grid = {}{}", line(&guessed), check(Some(asked)));
        }
    }
}

fn arguments(out: &mut String, found: &Found<'_>, guess: &Guess, names: &Names<'_>) -> std::fmt::Result {
    let kernel: &Kernel = &found.kernel;
    let mut asked = vec![];
    if found.launch.is_some_and(|launch| launch.starred) {
        asked.push("the launch passes `*` or `**`, which is not read: compare the arguments".to_string());
    }
    let arguments: Vec<String> = kernel
        .parameters
        .iter()
        .map(|parameter| {
            let own = parameter.name.as_str();
            if kernel.nulls.contains(own) {
                asked.push(format!("the launch passes `None` for `{own}`"));
                return "{ null = true }".into();
            }
            if let Some(other) = names.named.get(own) {
                return match descriptor_of(found, own) {
                    Some(descriptor) => tensor_map(other, descriptor, found, names, &mut asked),
                    None => text(other),
                };
            }
            match kernel.integers.get(own) {
                Some(Expression::Opaque(_)) => {
                    match found.strides.get(own).map(|stride| (stride, contiguous(guess, stride))) {
                        Some((_, Some(stride))) => extent_text(&stride, names),
                        Some(((tensor, axis), None)) => {
                            asked.push(format!("`{own}` is the stride of `{tensor}` along axis {axis}: state it"));
                            "\"1\"".into()
                        }
                        None => {
                            asked.push(format!("state the stride `{own}`"));
                            "\"1\"".into()
                        }
                    }
                }
                Some(value) => text(&names.renamed(value).text()),
                None => {
                    asked.push(format!("state `{own}`"));
                    "\"0\"".into()
                }
            }
        })
        .collect();
    let asked = (!asked.is_empty()).then(|| asked.join("; "));
    writeln!(out, "args = {}{}", list(arguments), check(asked))
}

/// The descriptor of the host that a launch passes for a parameter.
fn descriptor_of<'a>(found: &Found<'a>, own: &str) -> Option<&'a PythonDescriptor> {
    let source = found.renamed.iter().find(|(_, name)| name.as_str() == own).map_or(own, |(source, _)| source);
    found.launch?.descriptors.get(source)
}

/// The argument of a tensor that the launch passes by a descriptor.
fn tensor_map(
    tensor: &str,
    descriptor: &PythonDescriptor,
    found: &Found<'_>,
    names: &Names<'_>,
    asked: &mut Vec<String>,
) -> String {
    let is_known =
        |name: &String| names.dims.contains_key(name.as_str()) || found.tune.iter().any(|(tunable, _)| tunable == name);
    let block = list(descriptor.block.iter().map(|value| {
        let own = expression(value, &found.renamed);
        match own.names().filter(|all| all.iter().all(is_known)) {
            Some(_) => extent(&names.renamed(&own).text()),
            None => {
                asked.push(format!(
                    "the block of the descriptor of `{tensor}` has the extent `{}`: state it",
                    own.text()
                ));
                "16".into()
            }
        }
    }));
    let pads = if descriptor.nan { ", oob = \"nan\"" } else { "" };
    format!("{{ tensormap = {}, block_shape = {block}{pads} }}", text(tensor))
}

/// The stride of a contiguous tensor: the product of the extents behind an axis.
fn contiguous(guess: &Guess, (tensor, axis): &(String, usize)) -> Option<Vec<String>> {
    let tensor = guess.tensors.iter().find(|known| known.name == *tensor)?;
    // Where nothing is known of an operator, the shape is a placeholder.
    let known = guess.reference.is_some();
    known.then(|| tensor.shape.get(axis + 1..).filter(|_| *axis < tensor.shape.len()).map(<[String]>::to_vec))?
}

fn extent_text(extents: &[String], names: &Names<'_>) -> String {
    let own =
        |extent: &String| names.dims.get(extent.as_str()).map_or_else(|| extent.clone(), |dim| (*dim).to_string());
    match extents {
        [] => "\"1\"".into(),
        all => text(&all.iter().map(own).collect::<Vec<_>>().join(" * ")),
    }
}

fn constants(out: &mut String, found: &Found<'_>, names: &Names<'_>) {
    let (mut parts, mut asked) = (vec![], vec![]);
    for param in found.function.params.iter().filter(|param| param.constexpr) {
        if found.tune.iter().any(|(name, _)| *name == param.name) {
            continue;
        }
        let value = match found.function.heuristics.get(&param.name) {
            Some(heuristic) => {
                asked.push(format!("`{}` is from `@triton.heuristics`: `{}`", param.name, heuristic.source));
                match (&heuristic.text, &heuristic.next_pow2) {
                    (Some(own), _) => Some(text(own)),
                    (None, Some(of)) => Some(format!("{{ next_pow2 = {} }}", text(of))),
                    (None, None) => Some("false".into()),
                }
            }
            None => constant(found, param, names, &mut asked),
        };
        parts.extend(value.map(|value| format!("{} = {value}", param.name)));
    }
    let asked = (!asked.is_empty()).then(|| asked.join("; "));
    if !parts.is_empty() {
        let _ = writeln!(out, "constexprs = {{ {} }}{}", parts.join(", "), check(asked));
    }
}

/// The value of a constant that a launch states; none if the function's default counts.
fn constant(found: &Found<'_>, param: &PythonParam, names: &Names<'_>, asked: &mut Vec<String>) -> Option<String> {
    let stated = found.launch.and_then(|launch| launch.constants.get(&param.name));
    if let Some(value) = stated.and_then(|stated| stated.get("value")) {
        return Some(match value {
            Value::String(word) => text(&format!("'{word}'")),
            other => other.to_string(),
        });
    }
    let Some(of) = stated.and_then(|stated| stated.get("of")) else {
        if param.default.is_none() {
            asked.push(format!("state the constant `{}`", param.name));
            return Some("1".into());
        }
        return None;
    };
    let known = |value: &Value| {
        let found = expression(value, &found.renamed);
        let is_known = |name: &String| names.dims.contains_key(name.as_str());
        found.names().filter(|all| all.iter().all(is_known)).map(|_| names.renamed(&found).text())
    };
    let power = (of["call"] == "next_pow2").then(|| known(&of["of"][0])).flatten();
    if let Some(power) = power {
        return Some(format!("{{ next_pow2 = {} }}", text(&power)));
    }
    if let Some(dtype) = of["text"].as_str().and_then(dtype) {
        return Some(format!("{{ dtype = \"{dtype}\" }}"));
    }
    if let Some(value) = known(of) {
        return Some(extent(&value));
    }
    let spelt = of["text"].as_str().map_or_else(|| expression(of, &found.renamed).text(), str::to_string);
    asked.push(format!("`{}` is `{spelt}` at the launch", param.name));
    Some("1".into())
}

/// The dtype of a name of Triton or torch: `tl.float16`.
fn dtype(text: &str) -> Option<&'static str> {
    Some(match text.rsplit('.').next()? {
        "float32" => "f32",
        "float16" => "f16",
        "bfloat16" => "bf16",
        "float64" => "f64",
        "int8" => "i8",
        "int32" => "i32",
        "int64" => "i64",
        _ => return None,
    })
}

fn options(out: &mut String, found: &Found<'_>) {
    let (mut parts, mut asked) = (vec![], vec![]);
    for option in ["num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion"] {
        let tunable = option.to_ascii_uppercase();
        let of_config = found.function.configs.iter().find_map(|config| config.options.get(option));
        if found.tune.iter().any(|(name, _)| *name == tunable) {
            parts.push(format!("{option} = {}", text(&tunable)));
        } else if let Some(value) = of_config {
            parts.push(format!("{option} = {value}"));
        } else if let Some(value) = found.launch.and_then(|launch| launch.options.get(option)) {
            match value {
                Some(value) => parts.push(format!("{option} = {value}")),
                None => asked.push(format!("the launch computes `{option}`: state it in `options`")),
            }
        }
    }
    let asked = (!asked.is_empty()).then(|| asked.join("; "));
    if parts.is_empty() && asked.is_none() {
        return;
    }
    let _ = writeln!(out, "options = {{ {} }}{}", parts.join(", "), check(asked));
}
