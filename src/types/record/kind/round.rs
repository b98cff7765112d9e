//! `round`: the methods that the next round tries.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::round::RoundParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "round",
    version: 1,
    verb: "Planning",
    color: "#54606b",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Round,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/problems",
            "types/methods",
            "types/metrics",
            "types/rounds",
            "pipeline/documents",
            "pipeline/round",
        ],
    },
    observes: None,
    parameters: rewritten::<RoundParams>,
    #[cfg(test)]
    golden: include_str!("../golden/round.json"),
};
