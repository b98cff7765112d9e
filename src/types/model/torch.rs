//! How a module or function of PyTorch is called, for expected values and as a kernel: as declared, and with the numbers of a shape. Knows neither files nor
//! PyTorch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::expr::{Expr, Scope, Value};
use super::variant::TuneValue;
use super::{Place, Text};
use kforge_foundation::base::Diagnostic;

/// How a module or function of PyTorch is called at one shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TorchCall {
    /// The positional arguments of the module's constructor. A list is a tuple, `{"text": ...}` a string, and `{"float": ...}` a float that JSON does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<Json>,
    /// The constructor's arguments by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keywords: BTreeMap<String, Json>,
    /// Values of constants at the top of the file. `helpers.NAME` is one of the module `helpers`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, Json>,
    /// Maps parameters and buffers of the module to tensors of the operator, where the tensor's name is not that of the parameter with `.` as `_`. None: no
    /// tensor gives the parameter or buffer, and its changes are ignored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, Option<String>>,
    /// Maps an argument of `forward` or of the function to the tensor, param or dim of the operator, where the two names differ.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// Whether the module is in training mode.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub train: bool,
    /// Whether casts to floats below float64 are part of what is computed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_casts: bool,
}

/// What is called of a kernel in PyTorch at one shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TorchLaunch {
    /// The class of a module, a module, or a function, in the kernel's source.
    pub function: String,
    /// How it is called. Constants include the variant's tunables.
    pub call: TorchCall,
    /// Whether the kernel states how it is called. Otherwise what the reference states of parameters and buffers that the kernel does not have is left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
    /// Values of constants that the source may set at its top, because the reference does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub of_reference: BTreeMap<String, Json>,
    /// Whether its policy forbids what `torch.compile` makes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncompiled: bool,
    /// calls only: whether the kernels of the device that its calls launch are recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
}

/// A value that depends on the shape.
#[derive(Debug, Clone, PartialEq)]
pub enum TorchValue {
    /// One value.
    Expr(Expr),
    /// A tuple.
    List(Vec<TorchValue>),
}

/// The values of a call that depend on the shape, as declared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TorchDecl {
    /// See [`TorchCall::init`].
    pub init: Vec<TorchValue>,
    /// See [`TorchCall::keywords`].
    pub keywords: Vec<(Text, TorchValue)>,
    /// See [`TorchCall::constants`].
    pub constants: Vec<(Text, TorchValue)>,
    /// The names that [`TorchCall::state`] and [`TorchCall::names`] map, with the names of the operator to which they are mapped.
    pub mapped: Vec<Mapped>,
}

/// A name of the operator to which a name of the module is mapped.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapped {
    /// The name in the operator.
    pub name: Text,
    /// Whether only a tensor will do: a parameter or buffer.
    pub is_state: bool,
}

impl TorchValue {
    fn exprs<'v>(&'v self, into: &mut Vec<&'v Expr>) {
        match self {
            TorchValue::Expr(expr) => into.push(expr),
            TorchValue::List(parts) => parts.iter().for_each(|part| part.exprs(into)),
        }
    }

    fn bind(&self, scope: &Scope) -> Result<Json, Diagnostic> {
        Ok(match self {
            TorchValue::List(parts) => {
                Json::Array(parts.iter().map(|part| part.bind(scope)).collect::<Result<_, _>>()?)
            }
            TorchValue::Expr(expr) => match expr.value(scope)? {
                Value::Int(value) => json!(value),
                Value::Bool(value) => json!(value),
                Value::Float(value) if value.is_finite() => json!(value),
                Value::Float(value) => json!({ "float": value.to_string().to_lowercase() }),
                Value::Str(text) => json!({ "text": text }),
            },
        })
    }
}

/// A tunable as a constant of a file.
pub(super) fn constant(value: &TuneValue) -> Json {
    match value {
        TuneValue::Int(value) => json!(value),
        TuneValue::Bool(value) => json!(value),
        TuneValue::Str(text) => json!({ "text": text }),
    }
}

impl TorchDecl {
    /// All expressions.
    pub fn exprs(&self) -> Vec<&Expr> {
        let mut all = vec![];
        let named = self.keywords.iter().chain(&self.constants).map(|(_, value)| value);
        self.init.iter().chain(named).for_each(|value| value.exprs(&mut all));
        all
    }

    /// The call with the numbers of a shape.
    ///
    /// # Errors
    /// An expression fails.
    pub fn bind(&self, call: &TorchCall, scope: &Scope) -> Result<TorchCall, Diagnostic> {
        let named = |values: &[(Text, TorchValue)]| -> Result<BTreeMap<String, Json>, Diagnostic> {
            values.iter().map(|(name, value)| Ok((name.value.clone(), value.bind(scope)?))).collect()
        };
        Ok(TorchCall {
            init: self.init.iter().map(|value| value.bind(scope)).collect::<Result<_, _>>()?,
            keywords: named(&self.keywords)?,
            constants: named(&self.constants)?,
            ..call.clone()
        })
    }

    /// Refuses names that the operator does not have, each at its place. `whose` call it is, for messages: the reference's.
    pub(crate) fn check(&self, whose: &str, tensors: &[&str], all: &[&str], found: &mut Vec<Diagnostic>) {
        for expr in self.exprs() {
            found.extend(expr.check_names(all));
        }
        for Mapped { name, is_state } in &self.mapped {
            let (known, what) = if *is_state { (tensors, "a tensor") } else { (all, "a tensor, param or dim") };
            if !known.contains(&name.as_str()) && !tensors.contains(&name.as_str()) {
                found.push(unknown(&name.place, (whose, name.as_str()), what, tensors, known));
            }
        }
    }
}

fn unknown(place: &Place, (whose, name): (&str, &str), what: &str, tensors: &[&str], known: &[&str]) -> Diagnostic {
    let message = format!("{whose} names `{name}`, which is not {what} of the operator");
    let error = place.error("manifest.unknown-tensor", message);
    let all: Vec<&str> = tensors.iter().chain(known.iter().filter(|name| !tensors.contains(name))).copied().collect();
    error.expected(format!("one of {}", super::expr::list(&all))).suggest(name, all.iter().copied())
}
