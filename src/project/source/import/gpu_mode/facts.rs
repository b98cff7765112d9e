//! What is known of a task: what its source says, and what PyTorch showed. The programs that answer are `gpu_mode_reader.py` and `harness/problem_sets/gpu_mode.py`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::source::import::tasks::Refusal;

/// What the source of a reference says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct GpuModeSource {
    /// The functions at its top, each with the names of its arguments; none if some have no name.
    pub functions: BTreeMap<String, Option<Vec<String>>>,
    /// The names that `ref_kernel` gives the parts of its argument, if it takes it apart into names.
    pub names: Option<Vec<String>>,
    /// How results are compared.
    pub check: Check,
    /// Why the file cannot be read.
    #[serde(default)]
    pub refused: Option<Refusal>,
}

/// How a task compares results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Check {
    /// By an absolute and a relative part.
    Close {
        /// The absolute part.
        atol: f64,
        /// The relative part.
        rtol: f64,
    },
    /// Bit by bit.
    Equal,
    /// In a way of its own.
    #[default]
    Own,
}

/// What PyTorch showed of a task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub enum GpuModeAnswer {
    /// Its parts.
    #[serde(rename = "found")]
    Found(Box<GpuModeFacts>),
    /// Why it cannot be imported.
    #[serde(rename = "refused")]
    Refused(Refusal),
}

/// The parts of a task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GpuModeFacts {
    /// The form of what a kernel gets.
    pub(super) form: Form,
    /// The tensors and constants in it.
    pub(super) leaves: Vec<Leaf>,
    /// What each case gives.
    pub(super) cases: Vec<CaseFacts>,
    /// The results.
    pub(super) outputs: Vec<ResultFacts>,
    /// Leaves that are only room for a result: leaf and result.
    pub(super) room: Vec<(usize, usize)>,
    /// Whether each leaf is contiguous.
    pub(super) contiguous: Vec<bool>,
    /// Whether each result is the same for other inputs.
    pub(super) constant: Vec<bool>,
    /// The first operation in floats below float64.
    pub(super) low: Option<LowFacts>,
}

/// The form of a value: a leaf, or parts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Form {
    Leaf(usize),
    Parts(Parts),
}

/// Parts of a value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Parts {
    Tuple(Vec<Form>),
    List(Vec<Form>),
    Dict(Vec<(String, Form)>),
}

/// A tensor or constant.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Leaf {
    /// The steps that lead to it.
    pub(super) path: Vec<Step>,
    /// The type of a tensor.
    pub(super) dtype: Option<String>,
}

/// A step to a part.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Step {
    At(usize),
    Key(String),
}

/// What a case gives.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum CaseFacts {
    /// Nothing.
    Refused { refused: Refusal },
    /// Shapes of leaves and of results, and constants.
    Sized { shapes: Vec<Vec<i64>>, outputs: Vec<Vec<i64>>, constants: Vec<Value> },
}

/// A result.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ResultFacts {
    pub(super) name: String,
    pub(super) dtype: String,
}

/// An operation in floats below float64.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct LowFacts {
    pub(super) floats: String,
    pub(super) operation: String,
    pub(super) line: Option<u32>,
}

impl GpuModeFacts {
    /// Whether its parts go together.
    pub(super) fn is_sound(&self) -> bool {
        let leaves = self.leaves.len();
        let fits = |case: &CaseFacts| match case {
            CaseFacts::Refused { .. } => true,
            CaseFacts::Sized { shapes, outputs, constants } => {
                (shapes.len(), constants.len(), outputs.len()) == (leaves, leaves, self.outputs.len())
            }
        };
        (self.contiguous.len(), self.constant.len()) == (leaves, self.outputs.len())
            && self.cases.iter().all(fits)
            && self.room.iter().all(|(leaf, output)| *leaf < leaves && *output < self.outputs.len())
            && self.form.is_below(leaves)
    }
}

impl Form {
    fn is_below(&self, leaves: usize) -> bool {
        match self {
            Form::Leaf(at) => *at < leaves,
            Form::Parts(Parts::Tuple(parts) | Parts::List(parts)) => parts.iter().all(|part| part.is_below(leaves)),
            Form::Parts(Parts::Dict(parts)) => parts.iter().all(|(_, part)| part.is_below(leaves)),
        }
    }
}
