//! What is known of a task file: what its source says, and what PyTorch showed. The programs that answer are `task_reader.py` and those of
//! `harness::problem_sets`.

use serde::Deserialize;
use serde_json::Value;

/// What the source of a file says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum TaskSource {
    /// It is a task.
    Task {
        /// The integers that it binds at its top, as the programs pass them on.
        constants: Vec<Constant>,
    },
    /// It has the form of a task and cannot be imported.
    Refused {
        /// Why.
        refused: Refusal,
    },
    /// It is no task.
    Other {
        /// The names that it does not define.
        other: Vec<String>,
    },
}

/// Integers that a file binds at its top.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Constant {
    /// The name.
    pub name: String,
    /// One number, or those of a tuple.
    pub values: Vec<i64>,
    /// Whether it is a tuple.
    pub tuple: bool,
    /// The line, from 1.
    pub line: u32,
    /// Whether the module reads it, rather than only the functions that give its arguments.
    pub used: bool,
}

/// Why a task is not imported.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Refusal {
    /// A word: `import`, `reads-values`, `random`, `device`, `unsupported`, `form`, `syntax`, `error`, `time`.
    pub kind: String,
    /// What the task does.
    pub message: String,
    /// The line of the task, from 1.
    pub line: Option<u32>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => write!(f, "{}", self.message),
        }
    }
}

/// What PyTorch showed of a task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub enum TaskAnswer {
    /// Its parts.
    #[serde(rename = "found")]
    Found(Box<TaskFacts>),
    /// Why it cannot be imported.
    #[serde(rename = "refused")]
    Refused(Refusal),
}

/// The parts of a task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TaskFacts {
    /// The arguments that `get_inputs` gives.
    pub inputs: Vec<Given>,
    /// The other arguments of `forward`.
    #[serde(default)]
    pub others: Vec<String>,
    /// The arguments of the constructor.
    pub init: Vec<InitArgument>,
    /// Parameters, then buffers.
    pub state: Vec<StatePart>,
    /// The results.
    pub outputs: Vec<OutputPart>,
    /// The integers that shapes may depend on.
    pub atoms: Vec<Atom>,
    /// Those that can have other values, by index. The atoms of a group have one value.
    pub groups: Vec<Vec<usize>>,
    /// Runs with other values; the first is the task's own.
    pub probes: Vec<Probe>,
    /// The probe with small sizes.
    pub small: Option<usize>,
    /// The probe with ragged sizes.
    pub ragged: Option<usize>,
    /// The operation that draws random numbers in training.
    pub random: Option<Place>,
    /// What values show; none if they were not computed.
    pub values: Option<Examined>,
}

/// An argument that `get_inputs` gives: a tensor, or a number.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Given {
    /// The name in `forward`.
    pub argument: String,
    /// The type of a tensor.
    pub dtype: Option<String>,
    /// A number or truth value.
    pub value: Option<Value>,
}

/// An argument of the constructor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InitArgument {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its value: numbers, truth values, `{"text": ...}`, lists; null for a default that has no form in a manifest.
    pub value: Value,
}

/// A parameter or buffer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StatePart {
    /// Its name in the module.
    pub name: String,
    /// Its type.
    pub dtype: String,
    /// Whether it is a buffer.
    pub buffer: bool,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OutputPart {
    /// Its name or position; empty for the only one.
    pub name: String,
    /// Its type.
    pub dtype: String,
}

/// An integer that shapes may depend on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Atom {
    /// Of a constant at the top of the file.
    Constant {
        /// The constant by position.
        of: usize,
        /// The position in a tuple.
        index: usize,
        /// The task's own value.
        value: i64,
    },
    /// That `get_init_inputs` returns.
    Init {
        /// The position in its list, and in lists within.
        path: Vec<usize>,
        /// The task's own value.
        value: i64,
    },
    /// An extent of an input.
    Extent {
        /// The input by position.
        input: usize,
        /// The axis.
        axis: usize,
        /// The task's own value.
        value: i64,
    },
}

/// A run of a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Probe {
    /// The values of all atoms.
    pub values: Vec<i64>,
    /// The shapes of inputs; empty for numbers.
    pub inputs: Vec<Vec<i64>>,
    /// The integers of the constructor's arguments in order.
    pub init: Vec<i64>,
    /// For each input the integers between which it was drawn: the least, and the one beyond the largest.
    pub ranges: Vec<Option<[i64; 2]>>,
    /// The shapes of parameters and buffers.
    pub state: Vec<Vec<i64>>,
    /// The shapes of results.
    pub outputs: Vec<Vec<i64>>,
}

/// An operation at a line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// The operation.
    pub operation: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// What values show.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Examined {
    /// For each parameter and buffer.
    pub state: Vec<StateValues>,
    /// How each tensor among the inputs is drawn.
    pub inputs: Vec<Option<Init>>,
    /// For each result.
    pub outputs: Vec<OutputValues>,
    /// The derived tolerance at that size.
    pub tolerance: f64,
    /// The first operation in floats below float64.
    pub low: Option<Low>,
}

/// What values show of a parameter or buffer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StateValues {
    /// Whether an input of the operator gives it.
    pub given: bool,
    /// Whether `forward` changes it.
    pub changes: bool,
    /// How it is drawn.
    pub init: Init,
}

/// How a tensor is drawn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// By kforge's distributions.
    Auto(bool),
    /// Above 0, up to 1.
    Positive(bool),
    /// Normal numbers.
    Normal(bool),
    /// Integers as `get_inputs` draws them: see [`Probe::ranges`].
    Drawn(bool),
    /// Between two numbers.
    Range([f64; 2]),
}

/// What values show of a result.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OutputValues {
    /// Whether it is the same for different inputs.
    pub constant: bool,
    /// The largest magnitude; none for integers.
    pub largest: Option<f64>,
    /// Whether all values are finite.
    pub finite: bool,
}

/// An operation in floats below float64.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Low {
    /// The type.
    pub floats: String,
    /// The operation.
    pub operation: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl TaskFacts {
    /// Whether its parts belong together. A task can write what it likes: no number of it is believed.
    pub(super) fn is_sound(&self) -> bool {
        let Some(base) = self.probes.first() else { return false };
        let ranks =
            |a: &[Vec<i64>], b: &[Vec<i64>]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.len() == b.len());
        let probe = |probe: &Probe| {
            probe.values.len() == self.atoms.len()
                && probe.init.len() == base.init.len()
                && probe.ranges.len() == self.inputs.len()
                && ranks(&probe.inputs, &base.inputs)
                && ranks(&probe.state, &base.state)
                && ranks(&probe.outputs, &base.outputs)
                && probe.numbers().all(|number| (-LARGEST..=LARGEST).contains(number))
        };
        let group = |group: &Vec<usize>| !group.is_empty() && group.iter().all(|at| *at < self.atoms.len());
        let values = |values: &Examined| {
            values.state.len() == self.state.len()
                && values.inputs.len() == self.inputs.len()
                && values.outputs.len() == self.outputs.len()
        };
        let integers: usize = self.init.iter().map(|argument| integers(&argument.value)).sum();
        self.probes.iter().all(probe)
            && self.groups.iter().all(group)
            && self.values.iter().all(values)
            && [self.small, self.ragged].iter().flatten().all(|at| *at < self.probes.len())
            && base.inputs.len() == self.inputs.len()
            && base.state.len() == self.state.len()
            && base.outputs.len() == self.outputs.len()
            && base.init.len() == integers
    }
}

/// The largest integer of a size.
const LARGEST: i64 = 1 << 48;

/// How many integers a value of the constructor holds.
fn integers(value: &Value) -> usize {
    match value {
        Value::Array(parts) => parts.iter().map(integers).sum(),
        Value::Number(number) if number.is_i64() => 1,
        _ => 0,
    }
}

impl Probe {
    fn numbers(&self) -> impl Iterator<Item = &i64> {
        let shapes = self.inputs.iter().chain(&self.state).chain(&self.outputs).flatten();
        self.values.iter().chain(&self.init).chain(self.ranges.iter().flatten().flatten()).chain(shapes)
    }
}

impl Atom {
    /// The task's own value.
    pub fn value(&self) -> i64 {
        match self {
            Atom::Constant { value, .. } | Atom::Init { value, .. } | Atom::Extent { value, .. } => *value,
        }
    }
}
