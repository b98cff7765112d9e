//! The contract of a task's operator: tensors, params, and what the reference states of the module's arguments and state.

use std::collections::BTreeSet;

use serde_json::Value;

use super::facts::{Atom, Constant, Init, InitArgument, Refusal, StateValues, TaskFacts};
use super::sizes::Sizes;
use crate::source::import::manifest::{extent, list, text};
use crate::source::import::naming::{is_usable, usable};

/// Names of one manifest.
pub(super) struct Names(pub(super) BTreeSet<String>);

impl Names {
    /// A free name for one of the task.
    pub(super) fn claim(&mut self, name: &str) -> String {
        let free = match is_usable(name) && !self.0.contains(name) {
            true => name.to_string(),
            false => usable(name, &|other| self.0.contains(other)),
        };
        self.0.insert(free.clone());
        free
    }
}

/// A tensor of the manifest.
pub(super) struct Declared {
    pub(super) role: &'static str,
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<String>,
    pub(super) init: Option<String>,
}

/// A param.
pub(super) struct Param {
    pub(super) name: String,
    pub(super) dtype: &'static str,
    pub(super) value: String,
}

/// Everything that is written of the operator's contract.
#[derive(Default)]
pub(super) struct Contract {
    pub(super) tensors: Vec<Declared>,
    pub(super) params: Vec<Param>,
    /// `names` of the reference: argument and own name.
    pub(super) names: Vec<(String, String)>,
    /// `state` of the reference.
    pub(super) state: Vec<(String, String)>,
    pub(super) outputs: Vec<String>,
}

pub(super) fn unsupported(message: String) -> Refusal {
    Refusal { kind: "unsupported".into(), message, line: None }
}

/// A key of TOML.
pub(super) fn key_text(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if bare { key.to_string() } else { text(key) }
}

/// A float of TOML.
fn float(value: f64) -> String {
    match value {
        _ if value.is_nan() => "nan".into(),
        _ if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.into(),
        _ => format!("{value:?}"),
    }
}

/// A number of a task: a float that JSON does not have is a word.
fn number(value: &Value) -> Option<f64> {
    match value.get("float").and_then(Value::as_str) {
        Some(word) => word.parse().ok(),
        None => value.as_f64(),
    }
}

pub(super) fn inputs(
    facts: &TaskFacts,
    arguments: &[String],
    contract: &mut Contract,
    sizes: &mut Sizes,
    names: &mut Names,
) -> Result<(), Refusal> {
    for (at, (input, name)) in facts.inputs.iter().zip(arguments).enumerate() {
        if input.argument != *name {
            contract.names.push((input.argument.clone(), text(name)));
        }
        match (&input.dtype, &input.value) {
            (Some(dtype), _) => {
                let shape = shape_of(name, facts.probes[0].inputs[at].len(), sizes, names, |probe, axis| {
                    facts.probes[probe].inputs[at][axis]
                });
                let how = facts.values.as_ref().and_then(|values| values.inputs[at].clone());
                let is_float = is_float(dtype);
                let init = match how {
                    Some(Init::Drawn(_)) => drawn(facts, at, name, sizes, names),
                    Some(how) => init_text(&how, is_float),
                    None if !is_float && dtype != "bool" => drawn(facts, at, name, sizes, names),
                    None => None,
                };
                contract.tensors.push(Declared {
                    role: "inputs",
                    name: name.clone(),
                    dtype: dtype.clone(),
                    shape,
                    init,
                });
            }
            (None, Some(Value::Bool(value))) => {
                contract.params.push(Param { name: name.clone(), dtype: "bool", value: value.to_string() });
            }
            (None, Some(value)) => match (value.as_i64(), number(value)) {
                (Some(value), _) => {
                    let dtype = if i32::try_from(value).is_ok() { "i32" } else { "i64" };
                    contract.params.push(Param { name: name.clone(), dtype, value: value.to_string() });
                }
                (None, Some(value)) => {
                    contract.params.push(Param { name: name.clone(), dtype: "f32", value: float(value) });
                }
                (None, None) => return Err(unsupported(format!("the input `{}` is no number", input.argument))),
            },
            (None, None) => return Err(unsupported(format!("the input `{}` is no tensor", input.argument))),
        }
    }
    Ok(())
}

fn is_float(dtype: &str) -> bool {
    dtype.starts_with('f') || dtype == "bf16"
}

fn shape_of(
    name: &str,
    axes: usize,
    sizes: &mut Sizes,
    names: &mut Names,
    value: impl Fn(usize, usize) -> i64,
) -> Vec<String> {
    let one = |axis: usize| sizes.text(|probe| value(probe, axis), || names.claim(&format!("{name}_{axis}")));
    (0..axes).map(one).collect()
}

/// The range of integers that `get_inputs` draws.
fn drawn(facts: &TaskFacts, at: usize, name: &str, sizes: &mut Sizes, names: &mut Names) -> Option<String> {
    facts.probes.iter().all(|probe| probe.ranges[at].is_some()).then_some(())?;
    let end = |probe: usize, which: usize| facts.probes[probe].ranges[at].map_or(0, |ends| ends[which]);
    let low = sizes.text(|probe| end(probe, 0), || names.claim(&format!("{name}_low")));
    let high = sizes.text(|probe| end(probe, 1) - 1, || names.claim(&format!("{name}_high")));
    Some(format!("{{ range = [{}, {}] }}", extent(&low), extent(&high)))
}

fn init_text(how: &Init, is_float: bool) -> Option<String> {
    match how {
        Init::Auto(_) | Init::Drawn(_) => None,
        Init::Positive(_) => Some("\"positive\"".into()),
        Init::Normal(_) => Some("\"normal\"".into()),
        Init::Range([low, high]) if is_float => Some(format!("{{ range = [{}, {}] }}", float(*low), float(*high))),
        Init::Range([low, high]) => Some(format!("{{ range = [{}, {}] }}", *low as i64, *high as i64)),
    }
}

/// What is taken of a part of the state whose values were not computed: parameters are given, and statistics of normalisation change in training.
fn assumed(facts: &TaskFacts, at: usize, train: bool) -> StateValues {
    let part = &facts.state[at];
    let last = part.name.rsplit('.').next().unwrap_or_default();
    let is_statistic = part.buffer && matches!(last, "running_mean" | "running_var" | "num_batches_tracked");
    let init = match last {
        "running_var" => Init::Positive(true),
        "num_batches_tracked" => Init::Range([0.0, 100.0]),
        _ => Init::Auto(true),
    };
    StateValues { given: !part.buffer || is_statistic, changes: is_statistic && train, init }
}

pub(super) fn weights(
    facts: &TaskFacts,
    state: &[String],
    train: bool,
    contract: &mut Contract,
    sizes: &mut Sizes,
    names: &mut Names,
) {
    let mut inouts = vec![];
    for (at, (part, name)) in facts.state.iter().zip(state).enumerate() {
        let known = facts.values.as_ref().map(|values| values.state[at].clone());
        let StateValues { given, changes, init } = known.unwrap_or_else(|| assumed(facts, at, train));
        let by_default = part.name.replace('.', "_") == *name;
        if !given {
            // What has the name of a tensor would be taken for it.
            if !by_default {
                contract.state.push((part.name.clone(), "false".into()));
            }
            continue;
        }
        let shape = shape_of(name, facts.probes[0].state[at].len(), sizes, names, |probe, axis| {
            facts.probes[probe].state[at][axis]
        });
        if !by_default {
            contract.state.push((part.name.clone(), text(name)));
        }
        let role = if changes { "inouts" } else { "inputs" };
        let init = init_text(&init, is_float(&part.dtype));
        let tensor = Declared { role, name: name.clone(), dtype: part.dtype.clone(), shape, init };
        if changes { inouts.push(tensor) } else { contract.tensors.push(tensor) }
    }
    contract.tensors.extend(inouts);
}

pub(super) fn outputs(
    facts: &TaskFacts,
    contract: &mut Contract,
    sizes: &mut Sizes,
    names: &mut Names,
) -> Result<(), Refusal> {
    let is_by_name = |name: &str| !name.is_empty() && name.parse::<usize>().is_err();
    for (at, output) in facts.outputs.iter().enumerate() {
        let wanted = match output.name.as_str() {
            "" => "y".to_string(),
            name if is_by_name(name) => name.to_string(),
            position => format!("y_{position}"),
        };
        let name = names.claim(&wanted);
        if is_by_name(&output.name) && name != output.name {
            return Err(unsupported(format!(
                "no tensor of a manifest can have the name of the result `{}`",
                output.name
            )));
        }
        let shape = shape_of(&name, facts.probes[0].outputs[at].len(), sizes, names, |probe, axis| {
            facts.probes[probe].outputs[at][axis]
        });
        let dtype = output.dtype.clone();
        contract.outputs.push(name.clone());
        contract.tensors.push(Declared { role: "outputs", name, dtype, shape, init: None });
    }
    Ok(())
}

/// The constructor's arguments as the reference states them: a list, or a table by name. None if it has none.
pub(super) fn constructor(
    facts: &TaskFacts,
    contract: &mut Contract,
    sizes: &mut Sizes,
    names: &mut Names,
) -> Result<Option<String>, Refusal> {
    if facts.init.is_empty() {
        return Ok(None);
    }
    let mut next = 0;
    let mut parts = vec![];
    for argument in &facts.init {
        let own = stated(facts, argument, &argument.value, &mut next, (contract, sizes, names), true)?;
        parts.push((argument.name.clone(), own));
    }
    if facts.init.iter().all(|argument| !argument.value.is_null()) {
        return Ok(Some(list(parts.into_iter().filter_map(|(_, value)| value))));
    }
    let named = parts.into_iter().filter_map(|(name, value)| Some(format!("{} = {}", key_text(&name), value?)));
    Ok(Some(format!("{{ {} }}", named.collect::<Vec<_>>().join(", "))))
}

type Writing<'w> = (&'w mut Contract, &'w mut Sizes, &'w mut Names);

/// A value of the constructor; none for a default. `next` counts integers. A float that is an argument of its own is a param.
fn stated(
    facts: &TaskFacts,
    argument: &InitArgument,
    value: &Value,
    next: &mut usize,
    (contract, sizes, names): Writing<'_>,
    is_whole: bool,
) -> Result<Option<String>, Refusal> {
    let cannot = |what: &str| unsupported(format!("the argument `{}` of `Model` {what}", argument.name));
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Bool(value) => value.to_string(),
        Value::Array(parts) => {
            let mut all = vec![];
            for part in parts {
                let own = stated(facts, argument, part, next, (&mut *contract, &mut *sizes, &mut *names), false)?;
                all.push(own.ok_or_else(|| cannot("holds a null"))?);
            }
            list(all)
        }
        Value::Number(integer) if integer.is_i64() => {
            let at = *next;
            *next += 1;
            let hint = if argument.name.is_empty() { "size" } else { argument.name.as_str() };
            extent(&sizes.text(|probe| facts.probes[probe].init[at], || names.claim(hint)))
        }
        Value::Object(table) if table.contains_key("text") => {
            let word = table["text"].as_str().unwrap_or_default();
            if word.contains(['\'', '\\']) || word.contains(char::is_control) {
                return Err(cannot("is a text with quotes"));
            }
            text(&format!("'{word}'"))
        }
        other => {
            let value = number(other).ok_or_else(|| cannot("has no form in a manifest"))?;
            if !is_whole || argument.name.is_empty() {
                return Ok(Some(float(value)));
            }
            let name = names.claim(&argument.name);
            contract.params.push(Param { name: name.clone(), dtype: "f32", value: float(value) });
            text(&name)
        }
    }))
}

/// The constants that the module reads and that follow dims.
pub(super) fn constants(facts: &TaskFacts, constants: &[Constant], sizes: &Sizes) -> Option<String> {
    let of = |constant: usize, index: usize| {
        let is_it =
            |atom: &Atom| matches!(atom, Atom::Constant { of, index: at, .. } if *of == constant && *at == index);
        let atom = facts.atoms.iter().position(is_it)?;
        sizes.of_atom(facts, atom)
    };
    let mut all = vec![];
    for (at, constant) in constants.iter().enumerate().filter(|(_, constant)| constant.used) {
        let parts: Vec<Option<&str>> = (0..constant.values.len()).map(|index| of(at, index)).collect();
        if parts.iter().all(Option::is_none) {
            continue;
        }
        let parts = parts.iter().zip(&constant.values).map(|(dim, own)| dim.map_or_else(|| own.to_string(), text));
        let value = if constant.tuple { list(parts) } else { parts.collect() };
        all.push(format!("{} = {value}", key_text(&constant.name)));
    }
    (!all.is_empty()).then(|| format!("{{ {} }}", all.join(", ")))
}

/// The words of everything that may name a dim.
pub(super) fn used(contract: &Contract, init: Option<&str>, constants: Option<&str>) -> BTreeSet<String> {
    let shapes = contract.tensors.iter().flat_map(|tensor| tensor.shape.iter().chain(&tensor.init));
    let all = shapes.map(String::as_str).chain(init).chain(constants);
    let words = all.flat_map(|text| text.split(|c: char| !(c.is_alphanumeric() || c == '_')));
    words.map(str::to_string).collect()
}
