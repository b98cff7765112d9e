//! `rate`: whether a baseline is correct, and how its device time compares with the champion's.

use super::EngineCode;
use super::baseline::documents::RateParams;
use super::descriptor::{Descriptor, Runs, rewritten};

pub(super) const KIND: Descriptor = Descriptor {
    name: "rate",
    version: 1,
    verb: "Rating",
    color: "#a8763e",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Rate,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/kinds/baseline",
            "types/kinds/calls",
            "types/problems",
            "numerics/comparison",
            "numerics/tolerance",
            "numerics/statistics",
            "numerics/second-device",
            "pipeline/documents",
            "pipeline/judge",
            "pipeline/rate",
        ],
    },
    observes: None,
    parameters: rewritten::<RateParams>,
    #[cfg(test)]
    golden: include_str!("../golden/rate.json"),
};
