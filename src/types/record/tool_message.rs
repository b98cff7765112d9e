//! A message of a tool with its place, apart from the text in which the tool printed it. Knows no tool: whoever runs one reads its output.

use serde::{Deserialize, Serialize};

use kforge_foundation::base::{Severity, worded};

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourcePlace {
    /// The file, relative to the package.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; none if the tool names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// A message of a compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolMessage {
    /// The severity.
    pub severity: Severity,
    /// Where it is about; none if that is no place in a file of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<SourcePlace>,
    /// Its first line, without place and severity.
    pub message: String,
}

impl ToolMessage {
    /// The message with its words hidden, if words are hidden.
    #[must_use]
    pub fn worded(self) -> Self {
        ToolMessage { message: worded(self.message), ..self }
    }
}
