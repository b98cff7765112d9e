//! What was tried before: the pattern and level of an operator, and which earlier candidates are most like what is wanted now. Knows operators and scores; does
//! not know where candidates are kept.
//!
//! Levels are those of Makora's curation (arXiv 2602.11000): 0 and 1 are elementwise, 2 reductions, 3 products and convolutions, 4 attention and normalisation,
//! 5 what fuses several passes. Where it names none, the level is ours: 0 is one value moved or mapped, 1 more than one input or indices.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::Operator;
use crate::model::bound::{Reference, Role};
use crate::model::operator::TensorDecl;

/// How an operator's results come from its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Each from values at one place of each input.
    Elementwise,
    /// From all values along some axes of one input.
    Reduction,
    /// Sums of products of two inputs.
    MatrixProduct,
    /// Products, a normalisation, and products again.
    Attention,
    /// Through results that all of an earlier pass goes into.
    MultiPass,
}

impl Pattern {
    /// Its name: `matrix-product`.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Elementwise => "elementwise",
            Pattern::Reduction => "reduction",
            Pattern::MatrixProduct => "matrix-product",
            Pattern::Attention => "attention",
            Pattern::MultiPass => "multi-pass",
        }
    }

    /// The level of an operator of which no more than this is known.
    fn level(self) -> u8 {
        match self {
            Pattern::Elementwise => 1,
            Pattern::Reduction => 2,
            Pattern::MatrixProduct => 3,
            Pattern::Attention => 4,
            Pattern::MultiPass => 5,
        }
    }
}

/// What kind of work an operator is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Kind {
    /// Its pattern; none where the contract does not show it.
    pub pattern: Option<Pattern>,
    /// Its level, 0 to 5; none where the contract does not show it.
    pub level: Option<u8>,
}

impl Kind {
    /// Of an operator: from its reference where that is built in, else from which dims of its inputs its outputs lack.
    pub fn of(operator: &Operator) -> Self {
        let found = match &operator.reference {
            Reference::Builtin { name, .. } => builtin(name, operator),
            Reference::Python { .. } | Reference::Cpp { .. } => contracted(operator).map(|p| (p, p.level())),
        };
        Kind { pattern: found.map(|f| f.0), level: found.map(|f| f.1) }
    }
}

fn builtin(name: &str, operator: &Operator) -> Option<(Pattern, u8)> {
    use Pattern::{Attention, Elementwise, MatrixProduct, MultiPass, Reduction};
    Some(match name {
        "elementwise" => (Elementwise, u8::from(read(operator).count() > 1)),
        "transpose" => (Elementwise, 0),
        "dropout" | "embedding" | "gather" => (Elementwise, 1),
        "argmax" | "argmin" | "max" | "max_pool2d" | "mean" | "min" | "sum" => (Reduction, 2),
        "conv2d" | "matmul" => (MatrixProduct, 3),
        "cross_entropy" | "layer_norm" | "log_softmax" | "rms_norm" | "softmax" => (Reduction, 4),
        "attention" => (Attention, 4),
        "batch_norm" => (MultiPass, 4),
        "cumsum" => (MultiPass, 5),
        _ => return None,
    })
}

fn read(operator: &Operator) -> impl Iterator<Item = &TensorDecl> {
    operator.tensors.iter().filter(|t| t.role != Role::Output)
}

/// What the extents show: an extent that no output has was reduced over; if two inputs have it, they were multiplied. Where every extent is still there, the
/// contract does not tell a map from a normalisation.
fn contracted(operator: &Operator) -> Option<Pattern> {
    let extents = |t: &TensorDecl| t.shape.iter().map(|e| e.text().to_string()).collect::<BTreeSet<_>>();
    let outputs: BTreeSet<String> =
        operator.tensors.iter().filter(|t| t.role != Role::Input).flat_map(extents).collect();
    let inputs: Vec<BTreeSet<String>> = read(operator).map(extents).collect();
    let gone: BTreeSet<&String> = inputs.iter().flatten().filter(|e| !outputs.contains(*e)).collect();
    // Two that share an extent which is gone and each give the result one of its own.
    let product = gone.iter().any(|extent| {
        let with: Vec<_> = inputs.iter().filter(|i| i.contains(*extent)).collect();
        with.iter().any(|a| with.iter().any(|b| a.difference(b).next().is_some() && b.difference(a).next().is_some()))
    });
    match (gone.is_empty(), product) {
        (true, _) => None,
        (false, true) => Some(Pattern::MatrixProduct),
        (false, false) => Some(Pattern::Reduction),
    }
}

/// An earlier candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The operator, by whatever identifies it across packages: the digest of its contract.
    pub operator: String,
    /// What kind of work that is.
    pub kind: Kind,
    /// The architecture: `sm_90a`.
    pub target: String,
    /// How many times as fast as what it was compared with; zero unless right.
    pub score: f64,
    /// Its source.
    pub source: String,
    /// What goes with the source.
    pub declaration: Option<String>,
    /// What it is, in a line.
    pub note: String,
}

/// What candidates are wanted for.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The operator, as in [`Candidate::operator`].
    pub operator: String,
    /// What kind of work it is.
    pub kind: Kind,
    /// The architecture.
    pub target: String,
}

/// The `most` candidates that are most like what is wanted: of the same operator first, then of the same pattern, then for the same architecture, then of the
/// nearest level; of equals the better ones. Those that are not right are left out, and of the same source all but
/// the first.
pub fn alike<'c>(candidates: &'c [Candidate], wanted: &Wanted, most: usize) -> Vec<&'c Candidate> {
    let mut found: Vec<&Candidate> = candidates.iter().filter(|c| c.score.is_finite() && c.score > 0.0).collect();
    // What is equal keeps its order.
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.sort_by_key(|c| {
        let pattern = c.kind.pattern.is_some() && c.kind.pattern == wanted.kind.pattern;
        let level = c.kind.level.zip(wanted.kind.level).map_or(u8::MAX, |(a, b)| a.abs_diff(b));
        (Reverse(c.operator == wanted.operator), Reverse(pattern), Reverse(c.target == wanted.target), level)
    });
    let mut seen = BTreeSet::new();
    found.retain(|c| seen.insert(c.source.as_str()));
    found.truncate(most);
    found
}

#[cfg(test)]
#[path = "memory/tests.rs"]
mod tests;
