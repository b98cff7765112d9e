//! The kinds of step, their order and their semantic versions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of step (design, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "documented in the table of the design and in step/, one file a kind")]
pub enum StepKind {
    Generate,
    Compile,
    Inspect,
    Oracle,
    Calibrate,
    Verify,
    Bench,
    Peaks,
    Judge,
    Match,
    Search,
    Select,
    Pairs,
    Attribute,
    Profile,
    Roofline,
    Round,
}

/// What a step is for, by its parameter `arch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Platform {
    /// Steps without an architecture.
    Any,
    /// `arch` is `cpu`.
    Cpu,
    /// `arch` is anything else.
    Device,
}

impl Platform {
    /// That of a step with these parameters.
    pub fn of(params: &serde_json::Value) -> Platform {
        match params.get("arch").and_then(serde_json::Value::as_str) {
            None => Platform::Any,
            Some("cpu") => Platform::Cpu,
            Some(_) => Platform::Device,
        }
    }
}

impl StepKind {
    /// Every kind, in the order in which one may read another within a phase.
    pub const ALL: [StepKind; 17] = [
        StepKind::Generate,
        StepKind::Compile,
        StepKind::Inspect,
        StepKind::Oracle,
        StepKind::Calibrate,
        StepKind::Verify,
        StepKind::Bench,
        StepKind::Peaks,
        StepKind::Judge,
        StepKind::Match,
        StepKind::Search,
        StepKind::Select,
        StepKind::Pairs,
        StepKind::Attribute,
        StepKind::Profile,
        StepKind::Roofline,
        StepKind::Round,
    ];

    /// The name in ids, events and specs.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Generate => "generate",
            StepKind::Compile => "compile",
            StepKind::Inspect => "inspect",
            StepKind::Oracle => "oracle",
            StepKind::Calibrate => "calibrate",
            StepKind::Verify => "verify",
            StepKind::Bench => "bench",
            StepKind::Peaks => "peaks",
            StepKind::Judge => "judge",
            StepKind::Match => "match",
            StepKind::Search => "search",
            StepKind::Select => "select",
            StepKind::Pairs => "pairs",
            StepKind::Profile => "profile",
            StepKind::Attribute => "attribute",
            StepKind::Roofline => "roofline",
            StepKind::Round => "round",
        }
    }

    /// The version of what a step of this kind means. What it does enters keys by content ([`super::implementation`]) and needs no raise.
    pub fn version(self) -> u32 {
        match self {
            // 2: a binary for the emulator calls for what is not emulated only where its source does.
            StepKind::Compile => 2,
            // 2: null candidates are compared as kernels are, and judged output by output. 3: functions of the package are asked about them too; NaN is the
            // most extreme of a row; references changed at values that are not finite.
            StepKind::Oracle => 3,
            // 3: what was derived is noted, and an operator of which nothing is computed is unknown.
            StepKind::Calibrate => 3,
            // 2: a function of the package that compares an output alone decides; NaN is the most extreme of a row.
            StepKind::Verify => 2,
            // 2: a derived tolerance comes with the parameters. 3: a function of the package decides alone; an error beyond the largest number always fails.
            // 4: that threads left before a barrier is a warning.
            StepKind::Judge => 4,
            // 2: why a champion is provisional says whether it was timed.
            StepKind::Select => 2,
            _ => 1,
        }
    }

    /// Whether steps of this kind measure a device, so that their results are observations valid for a device class.
    pub fn observes_device(self) -> bool {
        matches!(self, StepKind::Verify | StepKind::Bench | StepKind::Peaks | StepKind::Pairs | StepKind::Profile)
    }

    /// Whether it is a pure function of its inputs that runs in the coordinator.
    pub fn is_pure(self) -> bool {
        matches!(
            self,
            StepKind::Calibrate
                | StepKind::Judge
                | StepKind::Match
                | StepKind::Search
                | StepKind::Select
                | StepKind::Attribute
                | StepKind::Roofline
                | StepKind::Round
        )
    }

    /// The status verb shown when one runs.
    pub fn verb(self) -> &'static str {
        match self {
            StepKind::Generate => "Generating",
            StepKind::Compile => "Compiling",
            StepKind::Inspect => "Inspecting",
            StepKind::Oracle => "Computing",
            StepKind::Calibrate => "Calibrating",
            StepKind::Verify => "Verifying",
            StepKind::Bench => "Timing",
            StepKind::Peaks => "Measuring",
            StepKind::Judge => "Judging",
            StepKind::Match => "Matching",
            StepKind::Search => "Searching",
            StepKind::Select => "Selecting",
            StepKind::Pairs => "Pairing",
            StepKind::Profile => "Profiling",
            StepKind::Attribute => "Attributing",
            StepKind::Roofline => "Bounding",
            StepKind::Round => "Planning",
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for StepKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        StepKind::ALL.into_iter().find(|k| k.name() == text).ok_or(())
    }
}
