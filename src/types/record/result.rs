//! What a step leaves behind: its outputs by content, its verdict, and the messages to show again whenever it is fresh.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Verdict;
use kforge_foundation::base::{Digest, Severity, worded};

/// A message of a step: a compiler's warning, a finding. Shown again when the step is fresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Note {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code: room, then kind.
    pub code: String,
    /// The message, possibly several lines; tools' own words verbatim.
    pub message: String,
    /// The part of a launch that it is about, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchPart>,
}

/// A part of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchPart {
    /// The entry.
    pub entry: String,
    /// The position of the argument, from 1; none where it is about all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<u32>,
}

impl Note {
    /// A note that is about no launch.
    pub fn new(severity: Severity, code: &str, message: impl Into<String>) -> Self {
        Note { severity, code: code.into(), message: worded(message), launch: None }
    }

    /// With the part of a launch that it is about.
    #[must_use]
    pub fn about(self, launch: Option<LaunchPart>) -> Self {
        Note { launch, ..self }
    }

    /// The same with its words hidden, if words are hidden.
    #[must_use]
    pub fn worded(self) -> Self {
        Note { message: worded(self.message), ..self }
    }
}

/// What a step leaves behind. The same for the same key, but for measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepResult {
    /// Outputs by name. Only these are read by other steps.
    pub outputs: BTreeMap<String, Digest>,
    /// What it says, for the kinds that judge.
    pub verdict: Option<Verdict>,
    /// To be shown again.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// One line for people: `42 registers, 0 spills`.
    #[serde(default)]
    pub summary: String,
    /// How long it took when it ran, in milliseconds. No step reads it.
    #[serde(default)]
    pub duration_ms: u64,
}
