//! `match`: whether machine code shows a method.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::params::MatchParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "match",
    version: 1,
    verb: "Matching",
    color: "#4c8a8a",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Match,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/methods",
            "numerics/signatures",
            "pipeline/documents",
            "pipeline/matching",
        ],
    },
    observes: None,
    parameters: rewritten::<MatchParams>,
    #[cfg(test)]
    golden: include_str!("../golden/match.json"),
};
