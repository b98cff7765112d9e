//! Definitions and workloads as FlashInfer-Trace and SOL-ExecBench write them. Keys that are not read stay in the files beside the manifest.

use super::json::{Field, Json, Malformed};

/// A definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its name, unique in the dataset.
    pub name: String,
    /// The kind of operator.
    pub op_type: Option<String>,
    /// Python with a function `run`.
    pub reference: String,
    /// The axes by name, in the order of the file.
    pub axes: Vec<(String, Axis)>,
    /// The inputs in the order of arguments.
    pub inputs: Vec<(String, Spec)>,
    /// The outputs in the order of results.
    pub outputs: Vec<(String, Spec)>,
    /// What must hold of axes and inputs, as expressions in Python.
    pub constraints: Vec<String>,
    /// The function in the reference that makes inputs. SOL-ExecBench only.
    pub makes_inputs: Option<String>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Axis {
    /// Each workload binds it.
    Var,
    /// A number.
    Const(u64),
    /// Arithmetic over other axes. SOL-ExecBench only.
    Expr(String),
}

/// A tensor, or a number if it has no shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Axes, or digits.
    pub shape: Option<Vec<String>>,
    /// The element type, in PyTorch's words.
    pub dtype: String,
}

/// A workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name.
    pub uuid: String,
    /// What it binds.
    pub axes: Vec<(String, u64)>,
    /// Where each input is from.
    pub inputs: Vec<(String, InputFrom)>,
    /// Its own tolerance. SOL-ExecBench only.
    pub tolerance: Option<Allowed>,
    /// The whole, as it is in the file.
    pub json: Json,
}

/// Where an input of a workload is from.
#[derive(Debug, Clone, PartialEq)]
pub enum InputFrom {
    /// It is drawn.
    Random,
    /// A number or a truth value.
    Scalar(Json),
    /// A file.
    Safetensors {
        /// Its path in the dataset.
        path: String,
        /// The name of the tensor in it.
        key: String,
    },
    /// A function of the definition.
    Custom,
}

/// A tolerance of SOL-ExecBench.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowed {
    /// The absolute part.
    pub atol: f64,
    /// The relative part.
    pub rtol: f64,
    /// The share of elements that must match.
    pub matched: f64,
    /// The most that any element may be off.
    pub max_error: Option<f64>,
    /// Whether negative infinities may match.
    pub allows_negative_infinity: bool,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// A field is missing, or is not what it must be.
    pub fn read(text: &str) -> Result<Self, Malformed> {
        let json = Json::read(text)?;
        let root = Field::root(&json);
        let of = |field: Field<'_>| -> Result<String, Malformed> { field.text().map(String::from) };
        let optional = |key: &str| -> Result<Option<String>, Malformed> { root.get(key)?.map(of).transpose() };
        let axes = entries(&root.need("axes")?, axis)?;
        let definition = Definition {
            name: of(root.need("name")?)?,
            op_type: optional("op_type")?,
            reference: of(root.need("reference")?)?,
            inputs: entries(&root.need("inputs")?, |field| spec(field, &axes))?,
            outputs: entries(&root.need("outputs")?, |field| spec(field, &axes))?,
            constraints: match root.get("constraints")? {
                Some(field) => field.list()?.into_iter().map(of).collect::<Result<_, _>>()?,
                None => vec![],
            },
            makes_inputs: optional("custom_inputs_entrypoint")?,
            axes,
        };
        if let Some((name, _)) = definition.outputs.iter().find(|(name, _)| definition.input(name).is_some()) {
            return Err(Malformed::new(format!("outputs.{name}"), "has the name of an input"));
        }
        Ok(definition)
    }

    /// An input by name.
    pub fn input(&self, name: &str) -> Option<&Spec> {
        self.inputs.iter().find(|(own, _)| own == name).map(|(_, spec)| spec)
    }

    /// The axes that each workload binds.
    pub fn vars(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().filter(|(_, axis)| *axis == Axis::Var).map(|(name, _)| name.as_str())
    }
}

impl Workload {
    /// Reads a workload of a definition.
    ///
    /// # Errors
    /// A field is missing, or is not what it must be, or the definition has other axes or inputs.
    pub(super) fn read(root: &Field<'_>, definition: &Definition) -> Result<Self, Malformed> {
        let axes = root.need("axes")?;
        let bound = entries(&axes, |field| field.unsigned())?;
        for (name, field) in axes.map()? {
            if !definition.vars().any(|own| own == name) {
                return Err(field.wrong("is no `var` axis of the definition"));
            }
        }
        if let Some(missing) = definition.vars().find(|name| !bound.iter().any(|(own, _)| own == name)) {
            return Err(Malformed::new(format!("{}.{missing}", axes.path), "is missing"));
        }
        let given = root.need("inputs")?;
        for (name, field) in given.map()? {
            if definition.input(name).is_none() {
                return Err(field.wrong("is no input of the definition"));
            }
        }
        let inputs = entries(&given, input_from)?;
        if let Some((missing, _)) =
            definition.inputs.iter().find(|(name, _)| !inputs.iter().any(|(own, _)| own == name))
        {
            return Err(Malformed::new(format!("{}.{missing}", given.path), "is missing"));
        }
        Ok(Workload {
            uuid: root.need("uuid")?.text()?.to_string(),
            axes: bound,
            inputs,
            tolerance: root.get("tolerance")?.map(|field| allowed(&field)).transpose()?,
            json: root.value.clone(),
        })
    }
}

/// The entries of an object, each read.
fn entries<T>(
    field: &Field<'_>,
    read: impl Fn(&Field<'_>) -> Result<T, Malformed>,
) -> Result<Vec<(String, T)>, Malformed> {
    field.map()?.into_iter().map(|(key, value)| Ok((key.to_string(), read(&value)?))).collect()
}

fn axis(field: &Field<'_>) -> Result<Axis, Malformed> {
    let kind = field.need("type")?;
    match kind.text()? {
        "var" => Ok(Axis::Var),
        "const" => Ok(Axis::Const(field.need("value")?.unsigned()?)),
        "expr" => Ok(Axis::Expr(field.need("expression")?.text()?.to_string())),
        other => Err(kind.wrong(format!("is `{other}`, expected `var`, `const` or `expr`"))),
    }
}

fn spec(field: &Field<'_>, axes: &[(String, Axis)]) -> Result<Spec, Malformed> {
    let extent = |part: Field<'_>| {
        let text = part.text()?;
        let is_known = axes.iter().any(|(name, _)| name == text) || text.parse::<u32>().is_ok();
        match is_known {
            true => Ok(text.to_string()),
            false => Err(part.wrong(format!("is `{text}`, which is no axis"))),
        }
    };
    let shape = match field.get("shape")? {
        Some(shape) => Some(shape.list()?.into_iter().map(extent).collect::<Result<_, _>>()?),
        None => None,
    };
    Ok(Spec { shape, dtype: field.need("dtype")?.text()?.to_string() })
}

fn input_from(field: &Field<'_>) -> Result<InputFrom, Malformed> {
    let kind = field.need("type")?;
    Ok(match kind.text()? {
        "random" => InputFrom::Random,
        "custom" => InputFrom::Custom,
        "safetensors" => {
            let key = field.need("tensor_key")?.text()?.to_string();
            InputFrom::Safetensors { path: field.need("path")?.text()?.to_string(), key }
        }
        "scalar" => {
            let value = field.need("value")?;
            match value.value {
                Json::Number(_) | Json::Bool(_) => InputFrom::Scalar(value.value.clone()),
                _ => return Err(value.wrong("is no number and no truth value")),
            }
        }
        other => {
            let message = format!("is `{other}`, expected `random`, `scalar`, `safetensors` or `custom`");
            return Err(kind.wrong(message));
        }
    })
}

/// What SOL-ExecBench assumes where a workload does not say.
impl Default for Allowed {
    fn default() -> Self {
        Allowed { atol: 1e-2, rtol: 1e-2, matched: 0.99, max_error: None, allows_negative_infinity: false }
    }
}

fn allowed(field: &Field<'_>) -> Result<Allowed, Malformed> {
    let number = |key: &str| -> Result<Option<f64>, Malformed> { field.get(key)?.map(|v| v.amount()).transpose() };
    let usual = Allowed::default();
    Ok(Allowed {
        atol: number("max_atol")?.unwrap_or(usual.atol),
        rtol: number("max_rtol")?.unwrap_or(usual.rtol),
        matched: number("required_matched_ratio")?.unwrap_or(usual.matched),
        max_error: number("max_error_cap")?,
        allows_negative_infinity: match field.get("allow_negative_inf")? {
            Some(value) => value.bool()?,
            None => false,
        },
    })
}
