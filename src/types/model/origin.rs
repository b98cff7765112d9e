//! The problem set that an operator is from. It is in no key: what is computed does not depend on it.

use serde::{Deserialize, Serialize};

/// The problem set that an operator is from, and its place there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Origin {
    /// The problem set: `kernelbench`.
    pub set: String,
    /// The level there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// The number there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The name there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
