//! The arguments of `generate_input` over the cases of a task: which are dims, params or constants, and which cases go together.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::facts::GpuModeSource;
use super::task::{CaseValue, TaskYaml};
use crate::source::import::manifest::one_line;
use crate::source::import::tasks::Refusal;

/// The argument that is no size: the source of chance.
const SEED: &str = "seed";
/// The functions of a task.
const GENERATE: &str = "generate_input";
const REFERENCE: &str = "ref_kernel";

/// The arguments of `generate_input`, and the cases that go together.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// The arguments in order, without the seed.
    pub(super) all: Vec<Argument>,
    /// Whether there is a seed.
    pub(super) has_seed: bool,
    /// The cases that are imported if PyTorch can size them.
    pub(super) cases: Vec<Case>,
    /// Cases that are left out, with the reason.
    pub(super) left_out: Vec<(String, String)>,
}

/// An argument.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) kind: ArgumentKind,
}

/// What an argument is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ArgumentKind {
    /// A size.
    Dim,
    /// A number or truth value, by its type.
    Param(&'static str),
    /// The same in all cases.
    Constant(CaseValue),
}

/// A case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) is_timed: bool,
    pub(super) values: BTreeMap<String, CaseValue>,
}

/// What the cases of a task say of the arguments of `generate_input`.
///
/// # Errors
/// The task has another form, or no case.
pub fn arguments(task: &TaskYaml, source: &GpuModeSource) -> Result<Arguments, Refusal> {
    let refusal = |kind: &str, message: String| Refusal { kind: kind.into(), message, line: None };
    if let Some(refused) = &source.refused {
        return Err(refused.clone());
    }
    for name in [GENERATE, REFERENCE] {
        if !source.functions.contains_key(name) {
            return Err(refusal("form", format!("`reference.py` defines no function `{name}`")));
        }
    }
    let stated: Vec<(String, bool, BTreeMap<String, CaseValue>)> = task
        .cases()
        .map(|(name, is_timed, case)| {
            // A key without a value is an argument that is not given.
            let given = case.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
            (name, is_timed, given.collect())
        })
        .collect();
    if stated.is_empty() {
        return Err(refusal("form", "`task.yml` has neither `tests` nor `benchmarks`".into()));
    }
    let own = source.functions.get(GENERATE).cloned().flatten().unwrap_or_default();
    let mut names: Vec<&String> = own.iter().collect();
    for name in stated.iter().flat_map(|(_, _, values)| values.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    if let Some(other) = names.iter().find(|name| !is_name(name)) {
        return Err(refusal("form", format!("`task.yml` has the key `{}`, which is no argument", one_line(other))));
    }
    let has_seed = own.iter().any(|name| name == SEED) || stated.iter().any(|(_, _, values)| values.contains_key(SEED));
    let mut all = vec![];
    for name in names.into_iter().filter(|name| *name != SEED) {
        let values: Vec<Option<&CaseValue>> = stated.iter().map(|(_, _, values)| values.get(name)).collect();
        if let Some(kind) = kind(&values) {
            all.push(Argument { name: name.clone(), kind });
        }
    }
    let (mut cases, mut left_out) = (vec![], vec![]);
    for (name, is_timed, values) in stated {
        let differs = all.iter().find(|argument| match &argument.kind {
            ArgumentKind::Constant(value) => values.get(&argument.name) != Some(value),
            ArgumentKind::Dim | ArgumentKind::Param(_) => false,
        });
        match differs {
            Some(Argument { name: argument, kind: ArgumentKind::Constant(value) }) => {
                let other = values.get(argument).map_or("not given".into(), |own| format!("`{}`", shown(own)));
                let value = shown(value);
                let why = format!("its `{argument}` is {other}, and `{value}` in the cases that are imported");
                left_out.push((name, why));
            }
            _ => cases.push(Case { name, is_timed, values }),
        }
    }
    Ok(Arguments { all, has_seed, cases, left_out })
}

/// What an argument with these values is; none if no case gives it.
fn kind(values: &[Option<&CaseValue>]) -> Option<ArgumentKind> {
    let first = values.iter().flatten().next()?;
    let all = |is: &dyn Fn(&CaseValue) -> bool| values.iter().all(|value| value.is_some_and(is));
    Some(if all(&|value| matches!(value, CaseValue::Int(n) if *n >= 0)) {
        ArgumentKind::Dim
    } else if all(&|value| matches!(value, CaseValue::Int(_))) {
        ArgumentKind::Param("i64")
    } else if all(&|value| matches!(value, CaseValue::Int(_) | CaseValue::Float(_))) {
        ArgumentKind::Param("f64")
    } else if all(&|value| matches!(value, CaseValue::Bool(_))) {
        ArgumentKind::Param("bool")
    } else {
        ArgumentKind::Constant((*first).clone())
    })
}

/// A value as people read it.
fn shown(value: &CaseValue) -> String {
    match value {
        CaseValue::Text(text) => one_line(text),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

impl Arguments {
    /// The cases as the program that describes tasks reads them.
    pub fn asked(&self) -> Value {
        let case = |case: &Case| json!({ "arguments": without_seed(&case.values), "seed": self.has_seed });
        Value::Array(self.cases.iter().map(case).collect())
    }
}

fn without_seed(values: &BTreeMap<String, CaseValue>) -> BTreeMap<&String, &CaseValue> {
    values.iter().filter(|(name, _)| *name != SEED).collect()
}
