//! What machine code must show for a method to be there. Knows patterns; does not read machine code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Patterns over opcodes: regular expressions, anchored at an opcode's start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SassPatterns {
    /// At least one must occur, more often than in the variant without the method.
    pub any: Vec<String>,
    /// Each must occur, more often than in the variant without the method.
    pub all: Vec<String>,
    /// None may occur.
    pub forbid: Vec<String>,
    /// Least number of times a pattern must occur.
    pub count: BTreeMap<String, u64>,
}
