//! `search`: the tunables to try next.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::search::SearchParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "search",
    version: 1,
    verb: "Searching",
    color: "#7d6a2f",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Search,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/problems",
            "types/limits",
            "types/search",
            "numerics/search",
            "numerics/statistics",
            "pipeline/documents",
            "pipeline/search",
        ],
    },
    observes: None,
    parameters: rewritten::<SearchParams>,
    #[cfg(test)]
    golden: include_str!("../golden/search.json"),
};
