//! `select`: the champions of a kernel on a target.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::params::SelectParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "select",
    // 2: the reason why a champion is provisional says whether it was timed.
    // 3: a champion says for which shapes it is champion, because a class may split.
    version: 3,
    verb: "Selecting",
    color: "#8a6d3b",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Select,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/kinds/calls",
            "types/problems",
            "numerics/selection",
            "numerics/statistics",
            "pipeline/documents",
            "pipeline/select",
        ],
    },
    observes: None,
    parameters: rewritten::<SelectParams>,
    #[cfg(test)]
    golden: include_str!("../golden/select.json"),
};
