//! Outcome and verdict: whether a step was executed, and what its result says. Neither is derived from the other.

use std::fmt;

use serde::{Deserialize, Serialize};

use kforge_foundation::base::worded;

/// What a result says about a kernel. Unknown is never shown, counted or cached as pass, fail or zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The requirement holds.
    Pass,
    /// The requirement does not hold; the text says why in one line.
    Fail(String),
    /// The requirement could not be decided.
    Unknown(Unknown),
}

/// Why the requirement could not be decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// There is no suitable device here and no evidence from one; the text names the device that is needed.
    NoDevice(String),
    /// The device's counters cannot be read.
    NoCounters(String),
    /// The measurements are not decisive.
    Undecided(String),
    /// The kernel uses a feature that the emulator does not support; the text says which, and where.
    NotEmulated(String),
    /// The work exceeds the limit for the emulator.
    TooLarge(String),
    /// Something that is required is missing.
    Missing(String),
    /// The measured time is shorter than the hardware allows.
    Implausible(String),
    /// The operator's tolerance accepts answers that need no work, so that a pass would mean nothing; the text names the outputs and such answers.
    Indecisive(String),
}

impl Unknown {
    /// The reason with its words hidden, if words are hidden.
    #[must_use]
    pub fn worded(self) -> Self {
        match self {
            Unknown::NoDevice(t) => Unknown::NoDevice(worded(t)),
            Unknown::NoCounters(t) => Unknown::NoCounters(worded(t)),
            Unknown::Undecided(t) => Unknown::Undecided(worded(t)),
            Unknown::NotEmulated(t) => Unknown::NotEmulated(worded(t)),
            Unknown::TooLarge(t) => Unknown::TooLarge(worded(t)),
            Unknown::Missing(t) => Unknown::Missing(worded(t)),
            Unknown::Implausible(t) => Unknown::Implausible(worded(t)),
            Unknown::Indecisive(t) => Unknown::Indecisive(worded(t)),
        }
    }
}

impl Unknown {
    /// What is unknown, in a few words, of a step for a target. The reason itself says more.
    pub fn kind(&self, target: Option<&str>) -> String {
        match (self, target) {
            (Unknown::NoDevice(_), Some(target)) => format!("no evidence of {target}"),
            (Unknown::NoDevice(_), None) => "no evidence of a device".into(),
            (Unknown::NoCounters(_), _) => "no counters".into(),
            (Unknown::Undecided(_), _) => "undecided".into(),
            (Unknown::NotEmulated(_), _) => "not emulated".into(),
            (Unknown::TooLarge(_), _) => "too large".into(),
            (Unknown::Missing(_), _) => "missing results".into(),
            (Unknown::Implausible(_), _) => "implausible times".into(),
            (Unknown::Indecisive(_), _) => "indecisive".into(),
        }
    }
}

impl Verdict {
    /// Whether a kernel with these verdicts at its shapes is correct: it passes, except at shapes whose results tell nothing. If the operator tells nothing, it
    /// passes nowhere.
    pub fn all_pass<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> bool {
        let mut passes = false;
        for verdict in verdicts {
            match verdict {
                Verdict::Pass => passes = true,
                Verdict::Unknown(Unknown::Indecisive(_)) => {}
                Verdict::Fail(_) | Verdict::Unknown(_) => return false,
            }
        }
        passes
    }

    /// The verdict with its words hidden, if words are hidden.
    #[must_use]
    pub fn worded(self) -> Self {
        match self {
            Verdict::Pass => Verdict::Pass,
            Verdict::Fail(why) => Verdict::Fail(worded(why)),
            Verdict::Unknown(why) => Verdict::Unknown(why.worded()),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::NoDevice(t) => write!(f, "no device: {t}"),
            Unknown::NoCounters(t) => write!(f, "no counters: {t}"),
            Unknown::Undecided(t) => write!(f, "undecided: {t}"),
            Unknown::NotEmulated(t) => write!(f, "not emulated: {t}"),
            Unknown::TooLarge(t) => write!(f, "too large: {t}"),
            Unknown::Missing(t) => write!(f, "missing: {t}"),
            Unknown::Implausible(t) => write!(f, "implausible: {t}"),
            Unknown::Indecisive(t) => write!(f, "indecisive: {t}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Pass => f.write_str("pass"),
            Verdict::Fail(why) => write!(f, "fail: {why}"),
            Verdict::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

/// The outcome of a step in one build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was executed.
    Executed,
    /// Its result was known, because nothing that it reads has changed.
    Fresh,
    /// This machine cannot run it; the text says what is missing. Never stored.
    Unavailable(String),
    /// A step that it needs gave no result; the text names that step.
    Skipped(String),
    /// It was executed and gave no result: a compile error, a time-out or an internal error. Never stored.
    Failed(String),
}
