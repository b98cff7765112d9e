//! Baselines: PyTorch in place of a kernel, timed beside the champions of an operator. Knows which operators a baseline suits; knows neither files nor PyTorch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::operator::Operator;
use super::{Place, Reference, Role, Text};

/// How a baseline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// As written: PyTorch launches one kernel after another.
    Eager,
    /// By `torch.compile`.
    Compile,
    /// Captured once in a CUDA graph, which is replayed.
    Cudagraph,
    /// A product of matrices by `torch.matmul`, which calls cuBLAS.
    Cublas,
}

impl How {
    /// Every way.
    pub const ALL: [How; 4] = [How::Eager, How::Compile, How::Cudagraph, How::Cublas];

    /// Its name in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            How::Eager => "eager",
            How::Compile => "compile",
            How::Cudagraph => "cudagraph",
            How::Cublas => "cublas",
        }
    }

    /// The way of that name.
    pub fn of(name: &str) -> Option<How> {
        How::ALL.into_iter().find(|how| how.name() == name)
    }
}

/// The modes of `torch.compile`.
pub const MODES: [&str; 4] = ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"];

/// The built-in of products, and its settings that say how operands are stored.
const MATMUL: &str = "matmul";
const TRANSPOSED: [&str; 2] = ["transpose_a", "transpose_b"];

/// A baseline as declared.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub place: Place,
    /// How it runs.
    pub how: How,
    /// The mode of `torch.compile`; none for another way.
    pub mode: Option<String>,
    /// The function that is called, as file and name; none for the operator's own reference.
    pub source: Option<(String, String)>,
    /// The operator that it is for, if stated.
    pub operator: Option<Text>,
    /// The speed-up over it above which a second device has to confirm it.
    pub confirm_above: f64,
}

/// [`Baseline::confirm_above`] by default. Speed-ups beyond it are rare in honest kernels and usual in faults of a measurement (docs/design.md, section 7).
pub const CONFIRM_ABOVE: f64 = 3.0;

/// The operands of a product of matrices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// The tensors by their names in the built-in: `a` and `b`.
    pub operands: BTreeMap<String, String>,
    /// Which of them are stored transposed.
    pub transposed: Vec<String>,
}

impl Product {
    /// The product that a built-in computes; none if it computes anything else, or more. `inputs` are the operator's inputs.
    pub fn of(reference: &Reference, inputs: &[&str]) -> Option<Self> {
        let Reference::Builtin { name, attributes, names } = reference else { return None };
        let is_plain = attributes.keys().all(|key| TRANSPOSED.contains(&key.as_str()));
        if name != MATMUL || !is_plain || inputs.len() != 2 {
            return None;
        }
        let own = |name: &str| names.get(name).cloned().unwrap_or_else(|| name.to_string());
        let is_transposed = |name: &&str| {
            attributes.get(&format!("transpose_{name}")).and_then(serde_json::Value::as_bool).unwrap_or(false)
        };
        Some(Product {
            operands: ["a", "b"].map(|name| (name.to_string(), own(name))).into(),
            transposed: ["a", "b"].into_iter().filter(is_transposed).map(str::to_string).collect(),
        })
    }
}

impl Baseline {
    /// Whether it can stand beside kernels of an operator.
    pub fn suits(&self, operator: &Operator) -> bool {
        match (&self.source, self.how) {
            (Some(_), _) => true,
            (None, How::Cublas) => {
                let inputs = operator.tensors.iter().filter(|tensor| tensor.role == Role::Input);
                let inputs: Vec<&str> = inputs.map(|tensor| tensor.name.as_str()).collect();
                operator.tensors.len() == 3 && Product::of(&operator.reference, &inputs).is_some()
            }
            (None, _) => matches!(operator.reference, Reference::Torch { .. }),
        }
    }

    /// Whether it stands beside kernels of an operator.
    pub fn is_of(&self, operator: &Operator) -> bool {
        self.operator.as_ref().is_none_or(|name| name.value == operator.name) && self.suits(operator)
    }
}
