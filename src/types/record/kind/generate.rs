//! `generate`: the source of a kernel or of a round's candidate, from a file, a template or a recorded answer.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::params::GenerateParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "generate",
    version: 1,
    verb: "Generating",
    color: "#7a8691",
    usual_ms: 100,
    memory_mib: 32,
    runs: Runs::Engine {
        code: EngineCode::Generate,
        is_pure: false,
        parts: &["foundation/documents", "types/documents", "pipeline/documents", "pipeline/generate"],
    },
    observes: None,
    parameters: rewritten::<GenerateParams>,
    #[cfg(test)]
    golden: include_str!("../golden/generate.json"),
};
