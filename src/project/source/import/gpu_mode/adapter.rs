//! The adapters: functions in Python that take the operator's tensors one by one, and call a task's functions with the value that these take.

use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::{ArgumentKind, Arguments};
use super::facts::{Form, Parts, Step};
use super::task::CaseValue;

/// The file with the adapter of the reference and of the function that makes inputs.
pub const ADAPTER: &str = "kforge_task.py";
/// The file with the adapter of a submission, in its folder.
pub const KERNEL: &str = "kernel.py";
/// The file with a submission, in its folder.
pub const SUBMISSION: &str = "submission.py";

/// What stands for a leaf.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stands {
    /// A tensor of the operator, by name.
    Tensor(String),
    /// Room for a result: its shape as expressions, and its type in PyTorch's word.
    Room(Vec<String>, &'static str),
    /// A constant, or the name of a dim or param.
    Value(String),
}

/// Words of Python, and names of the adapters, that no tensor, param or dim can have there.
pub(super) const TAKEN: [&str; 41] = [
    "False",
    "None",
    "True",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
    "float",
    "torch",
    "ref_kernel",
    "custom_kernel",
    "generate_input",
    "kernel",
];

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// The reference, in float64.
    Reference,
    /// A kernel, in the tensors' own types.
    Kernel,
}

/// The file with the adapter of the reference and of the function that makes inputs. `dims` gives the operator's name for an argument.
pub(super) fn reference(form: &Form, stands: &[Stands], arguments: &Arguments, dims: &[(String, String)]) -> String {
    let mut given: Vec<String> = vec![];
    for argument in &arguments.all {
        let value = match &argument.kind {
            ArgumentKind::Constant(value) => case_value(value),
            ArgumentKind::Dim | ArgumentKind::Param(_) => {
                let own = dims.iter().find(|(name, _)| *name == argument.name).map_or(&argument.name, |(_, own)| own);
                format!("axes_and_scalars[{}]", quoted(own))
            }
        };
        given.push(format!("{}={value}", argument.name));
    }
    if arguments.has_seed {
        given.push("seed=seed".into());
    }
    let tensors = leaves(form, &mut vec![]);
    let made: Vec<String> = tensors
        .iter()
        .filter_map(|(at, path)| match &stands[*at] {
            Stands::Tensor(name) => Some(format!("{}: data{path}", quoted(name))),
            Stands::Room(..) | Stands::Value(_) => None,
        })
        .collect();
    format!(
        "# Written by `kforge import gpu-mode`: calls the functions of `reference.py` with the tensors, params and dims of kernel.toml.\n\
         import torch\n\nfrom reference import generate_input, ref_kernel\n\n\n\
         def inputs(axes_and_scalars, device):\n    seed = int(torch.randint(2**31 - 1, ()))\n    data = generate_input({})\n    return {{{}}}\n\n\n\
         def reference({}):\n    return ref_kernel({})\n",
        given.join(", "),
        made.join(", "),
        parameters(form, stands),
        value(form, stands, Caller::Reference)
    )
}

/// The file with the adapter of a submission.
pub(super) fn kernel(form: &Form, stands: &[Stands]) -> String {
    format!(
        "# Written by `kforge import gpu-mode`: calls `custom_kernel` of `{SUBMISSION}` with the tensors, params and dims of kernel.toml.\n\
         import torch\n\nfrom submission import custom_kernel\n\n\n\
         def kernel({}):\n    return custom_kernel({})\n",
        parameters(form, stands),
        value(form, stands, Caller::Kernel)
    )
}

/// The leaves of a form in order, each with the subscripts that lead to it.
fn leaves(form: &Form, path: &mut Vec<Step>) -> Vec<(usize, String)> {
    let mut all = vec![];
    let mut below = |step: Step, part: &Form, path: &mut Vec<Step>| {
        path.push(step);
        all.extend(leaves(part, path));
        path.pop();
    };
    match form {
        Form::Leaf(at) => return vec![(*at, subscripts(path))],
        Form::Parts(Parts::Tuple(parts) | Parts::List(parts)) => {
            for (at, part) in parts.iter().enumerate() {
                below(Step::At(at), part, path);
            }
        }
        Form::Parts(Parts::Dict(parts)) => {
            for (key, part) in parts {
                below(Step::Key(key.clone()), part, path);
            }
        }
    }
    all
}

fn subscripts(path: &[Step]) -> String {
    let one = |step: &Step| match step {
        Step::At(at) => format!("[{at}]"),
        Step::Key(key) => format!("[{}]", quoted(key)),
    };
    path.iter().map(one).collect()
}

/// The parameters of an adapter: tensors in order, then the names in other expressions.
fn parameters(form: &Form, stands: &[Stands]) -> String {
    let mut names: Vec<String> = vec![];
    let mut others = BTreeSet::new();
    for (at, _) in leaves(form, &mut vec![]) {
        match &stands[at] {
            Stands::Tensor(name) => names.push(name.clone()),
            Stands::Room(shape, _) => shape.iter().for_each(|extent| others.extend(words(extent))),
            // A literal has quotes or begins with a digit, except words of Python.
            Stands::Value(text) if is_expression(text) => others.extend(words(text)),
            Stands::Value(_) => {}
        }
    }
    names.extend(others);
    names.join(", ")
}

/// The value that a task's function takes.
fn value(form: &Form, stands: &[Stands], caller: Caller) -> String {
    let all = |parts: &[Form]| parts.iter().map(|part| value(part, stands, caller)).collect::<Vec<_>>();
    match form {
        Form::Leaf(at) => match &stands[*at] {
            Stands::Tensor(name) => name.clone(),
            Stands::Value(text) => text.clone(),
            Stands::Room(shape, dtype) => {
                let shape = tuple(shape.clone());
                let first = stands.iter().find_map(|other| match other {
                    Stands::Tensor(name) => Some(name),
                    Stands::Room(..) | Stands::Value(_) => None,
                });
                let is_float = dtype.starts_with("float") || *dtype == "bfloat16";
                match (caller, first) {
                    // Floats of a reference are float64, the default there.
                    (Caller::Reference, _) if is_float => format!("torch.empty({shape})"),
                    (Caller::Kernel, Some(first)) => {
                        format!("torch.empty({shape}, dtype=torch.{dtype}, device={first}.device)")
                    }
                    _ => format!("torch.empty({shape}, dtype=torch.{dtype})"),
                }
            }
        },
        Form::Parts(Parts::Tuple(parts)) => tuple(all(parts)),
        Form::Parts(Parts::List(parts)) => format!("[{}]", all(parts).join(", ")),
        Form::Parts(Parts::Dict(parts)) => {
            let entry = |(key, part): &(String, Form)| format!("{}: {}", quoted(key), value(part, stands, caller));
            format!("{{{}}}", parts.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

fn tuple(parts: Vec<String>) -> String {
    match &parts[..] {
        [one] => format!("({one},)"),
        _ => format!("({})", parts.join(", ")),
    }
}

/// The names in an expression.
pub(super) fn words(expression: &str) -> impl Iterator<Item = String> {
    let parts = expression.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let names = parts.filter(|part| part.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    names.map(str::to_string).collect::<Vec<_>>().into_iter()
}

/// Whether a value is an expression over names, and no literal.
fn is_expression(text: &str) -> bool {
    !text.contains('"') && !text.starts_with("torch.") && !["True", "False", "None"].contains(&text)
}

/// A text of Python: one of JSON is one of Python, too.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A constant in Python.
pub(super) fn literal(constant: &Value) -> String {
    match constant {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Object(table) => match (table.get("dtype"), table.get("float")) {
            (Some(dtype), _) => format!("torch.{}", dtype.as_str().unwrap_or_default()),
            (None, float) => format!("float({})", float.unwrap_or(&Value::Null)),
        },
        other => other.to_string(),
    }
}

/// A value of a case in Python.
fn case_value(value: &CaseValue) -> String {
    match value {
        CaseValue::Bool(value) => literal(&Value::Bool(*value)),
        CaseValue::Int(value) => value.to_string(),
        CaseValue::Float(value) if value.is_finite() => format!("{value:?}"),
        CaseValue::Float(value) => format!("float({})", quoted(&value.to_string())),
        CaseValue::Text(text) => quoted(text),
        CaseValue::List(parts) => format!("[{}]", parts.iter().map(case_value).collect::<Vec<_>>().join(", ")),
    }
}
