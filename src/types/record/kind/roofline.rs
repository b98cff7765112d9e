//! `roofline`: how far a kernel is from what its device can reach, and what bounds the kernel.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::profile::RooflineParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "roofline",
    version: 1,
    verb: "Bounding",
    color: "#6b7a3a",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Roofline,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/problems",
            "types/methods",
            "types/metrics",
            "numerics/roofline",
            "numerics/statistics",
            "pipeline/documents",
            "pipeline/roofline",
        ],
    },
    observes: None,
    parameters: rewritten::<RooflineParams>,
    #[cfg(test)]
    golden: include_str!("../golden/roofline.json"),
};
