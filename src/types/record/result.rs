//! What a step leaves behind: its outputs by content, its verdict, and the messages to show again when the result is fresh.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ToolMessage, Verdict};
use kforge_foundation::base::{Digest, Severity, worded};

/// A message of a step: a compiler's warning, a finding. Shown again when the step is fresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Note {
    /// The severity.
    pub severity: Severity,
    /// A stable code: room, then kind.
    pub code: String,
    /// The message, possibly of several lines. Messages of tools are quoted verbatim.
    pub message: String,
    /// The part of a launch that the message is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchPart>,
    /// For the output of a tool: its messages one by one, as far as they could be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ToolMessage>,
}

/// A part of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchPart {
    /// The entry.
    pub entry: String,
    /// The position of the argument, from 1. None if the message is about all arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<u32>,
    /// What the message is about.
    #[serde(default, skip_serializing_if = "LaunchField::is_args")]
    pub field: LaunchField,
}

/// What of a launch a message is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchField {
    /// Its arguments.
    #[default]
    Args,
    /// The threads of a block.
    Block,
    /// What it requests otherwise: shared memory, clusters, registers.
    Request,
}

impl LaunchField {
    fn is_args(&self) -> bool {
        *self == LaunchField::Args
    }
}

impl Note {
    /// A note that is not about a launch.
    pub fn new(severity: Severity, code: &str, message: impl Into<String>) -> Self {
        Note { severity, code: code.into(), message: worded(message), launch: None, parts: vec![] }
    }

    /// Sets the part of a launch that the note is about.
    #[must_use]
    pub fn about(self, launch: Option<LaunchPart>) -> Self {
        Note { launch, ..self }
    }

    /// Sets the messages of the tool whose output the note is.
    #[must_use]
    pub fn of_parts(self, parts: Vec<ToolMessage>) -> Self {
        Note { parts, ..self }
    }

    /// The note with its words hidden, if words are hidden.
    #[must_use]
    pub fn worded(self) -> Self {
        let parts = self.parts.into_iter().map(ToolMessage::worded).collect();
        Note { message: worded(self.message), parts, ..self }
    }
}

/// What a step leaves behind. Except for measurements, equal keys give equal results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepResult {
    /// Outputs by name. Only these are read by other steps.
    pub outputs: BTreeMap<String, Digest>,
    /// The verdict, for kinds that judge.
    pub verdict: Option<Verdict>,
    /// Messages to show again.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// One line for people: `42 registers, 0 spills`.
    #[serde(default)]
    pub summary: String,
    /// How long the step took when it was executed, in milliseconds. No step reads this.
    #[serde(default)]
    pub duration_ms: u64,
}
