//! `attribute`: what a method is worth.

use super::EngineCode;
use super::descriptor::{Descriptor, Runs, rewritten};
use crate::record::params::AttributeParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "attribute",
    // 2: a method may be harmful, or not used, and pairs may be turned.
    version: 2,
    verb: "Attributing",
    color: "#96603f",
    usual_ms: 1,
    memory_mib: 1,
    runs: Runs::Engine {
        code: EngineCode::Attribute,
        is_pure: true,
        parts: &[
            "foundation/documents",
            "types/documents",
            "types/problems",
            "numerics/attribution",
            "numerics/statistics",
            "pipeline/documents",
            "pipeline/attribute",
        ],
    },
    observes: None,
    parameters: rewritten::<AttributeParams>,
    #[cfg(test)]
    golden: include_str!("../golden/attribute.json"),
};
