//! `judge`: the verdict on what a verification saw, under the tolerance.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::params::JudgeParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "judge",
    // 2: a derived tolerance comes with the parameters. 3: if a function of the package compares an output, only the function decides; an error beyond the
    // largest number always fails.
    // 4: threads that left before a barrier are a warning.
    // 5: a pass under a tolerance that cannot decide is unknown.
    version: 5,
    verb: "Judging",
    color: "#5f9440",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Judge,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/kinds/calls",
            "types/problems",
            "numerics/comparison",
            "numerics/tolerance",
            "pipeline/documents",
            "pipeline/judge",
        ],
    },
    observes: None,
    parameters: rewritten::<JudgeParams>,
    #[cfg(test)]
    golden: include_str!("../golden/judge.json"),
};
