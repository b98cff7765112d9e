//! What can and cannot be told of a task, before anyone spends time on it. Pure sentences over facts.

use super::facts::{Low, Place, TaskFacts};

/// Something that people must know of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// A word for programs.
    pub kind: FindingKind,
    /// A sentence.
    pub message: String,
    /// The line of the task, from 1.
    pub line: Option<u32>,
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// A result is the same for all inputs.
    ConstantOutput,
    /// A result is below its tolerance.
    BelowTolerance,
    /// A result is not finite.
    NotFinite,
    /// It draws random numbers in training, and is imported in evaluation mode.
    Random,
    /// It computes in floats below float64.
    LowFloats,
    /// Its own size is too large for a reference here.
    TooLarge,
    /// Its values were not computed.
    NotComputed,
    /// It does not run with smaller sizes.
    NoSmallShape,
    /// A workload is left out.
    Workload,
    /// What became of a solution.
    Solution,
    /// Inputs are not drawn as the set's own evaluator draws them.
    Inputs,
    /// The tolerance is not in the set's files.
    Tolerance,
}

impl FindingKind {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            FindingKind::ConstantOutput => "constant-output",
            FindingKind::BelowTolerance => "below-tolerance",
            FindingKind::NotFinite => "not-finite",
            FindingKind::Random => "random",
            FindingKind::LowFloats => "low-floats",
            FindingKind::TooLarge => "too-large",
            FindingKind::NotComputed => "not-computed",
            FindingKind::NoSmallShape => "no-small-shape",
            FindingKind::Workload => "workload",
            FindingKind::Solution => "solution",
            FindingKind::Inputs => "inputs",
            FindingKind::Tolerance => "tolerance",
        }
    }
}

/// A reference that needs no more bytes is small enough as it is.
const LITTLE: u64 = 1 << 20;

/// What is known of a task. `outputs` are the names of its results.
pub(super) fn findings(facts: &TaskFacts, outputs: &[String]) -> Vec<Finding> {
    let mut all = vec![];
    let mut told = |kind, message: String, line| all.push(Finding { kind, message, line });
    if let Some(Place { operation, line }) = &facts.random {
        let by = operation.as_ref().map_or(String::new(), |operation| format!(" (`{operation}`)"));
        let message = format!(
            "draws random numbers in training{by}, which no kernel can reproduce: imported in evaluation mode, so KernelBench's scores do not apply"
        );
        told(FindingKind::Random, message, *line);
    }
    match &facts.values {
        None => told(
            FindingKind::NotComputed,
            "no size was found at which its values can be computed here: whether its results are constant is not known"
                .into(),
            None,
        ),
        Some(values) => {
            for (name, output) in outputs.iter().zip(&values.outputs) {
                match output.largest {
                    _ if !output.finite => {
                        told(FindingKind::NotFinite, format!("`{name}` has values that are not finite"), None);
                    }
                    _ if output.constant => {
                        let message = format!(
                            "`{name}` is the same for all inputs: nothing tells a kernel from one that ignores them"
                        );
                        told(FindingKind::ConstantOutput, message, None);
                    }
                    Some(largest) if largest <= values.tolerance => {
                        let tolerance = values.tolerance;
                        let message = format!(
                            "the largest value of `{name}` is {largest:.1e}, below the tolerance of {tolerance:.1e}: zeros would pass"
                        );
                        told(FindingKind::BelowTolerance, message, None);
                    }
                    _ => {}
                }
            }
            if let Some(Low { floats, operation, line }) = &values.low {
                let message = format!(
                    "computes in {floats} (`{operation}`): kforge takes the casts as ones to float64 where it can"
                );
                told(FindingKind::LowFloats, message, *line);
            }
        }
    }
    if facts.small.is_none() && facts.ragged.is_none() && reference_bytes(facts) > LITTLE {
        told(FindingKind::NoSmallShape, "runs with no smaller sizes: its own is its only shape".into(), None);
    }
    all
}

/// The bytes that a reference needs at a task's own size, at least: inputs and weights in float64 twice, results once.
pub(super) fn reference_bytes(facts: &TaskFacts) -> u64 {
    let bytes = |shapes: &[Vec<i64>]| -> u64 {
        let elements = |shape: &Vec<i64>| {
            shape.iter().fold(1u64, |all, extent| all.saturating_mul(u64::try_from(*extent).unwrap_or(0)))
        };
        shapes.iter().map(elements).fold(0u64, u64::saturating_add).saturating_mul(8)
    };
    let base = &facts.probes[0];
    let read = bytes(&base.inputs).saturating_add(bytes(&base.state));
    read.saturating_mul(2).saturating_add(bytes(&base.outputs))
}

/// The finding that a reference at the task's own size needs more memory than there is.
pub fn too_large(needed: u64, limit: u64) -> Option<Finding> {
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    (needed > limit).then(|| Finding {
        kind: FindingKind::TooLarge,
        message: format!(
            "at its own size the reference needs at least {needed} bytes in float64 ({}), and the limit here is {limit} ({}): its shape `own` is unknown here",
            gigabytes(needed),
            gigabytes(limit)
        ),
        line: None,
    })
}
