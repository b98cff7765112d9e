//! `calibrate`: whether a tolerance distinguishes correct outputs from null candidates, and the derived tolerance if none is stated.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::params::CalibrateParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "calibrate",
    // 3: a derived tolerance is noted, and an operator that computes nothing is unknown.
    // 4: an indecisive operator is unknown unless the manifest requires that it decides; candidates are listed by output.
    // 5: an output that is one value for all inputs is indecisive also if it is not zero, and each shape has an indecision of its own.
    version: 5,
    verb: "Calibrating",
    color: "#a05aa8",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Calibrate,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/problems",
            "numerics/comparison",
            "numerics/tolerance",
            "numerics/calibration",
            "pipeline/documents",
            "pipeline/judge",
            "pipeline/calibrate",
        ],
    },
    observes: None,
    parameters: rewritten::<CalibrateParams>,
    #[cfg(test)]
    golden: include_str!("../golden/calibrate.json"),
};
