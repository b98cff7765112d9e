//! Outcome and verdict: whether a step ran, and what its result says. Two things; neither is derived from the other.

use std::fmt;

use serde::{Deserialize, Serialize};

use kforge_foundation::base::worded;

/// What a result says of a kernel. Unknown is never shown, counted or cached as pass, fail or zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// What was asked for holds.
    Pass,
    /// It does not; the text says why in a line.
    Fail(String),
    /// It could not be decided.
    Unknown(Unknown),
}

/// Why nothing could be decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// There is no such device here and no evidence from one; the text names what would do.
    NoDevice(String),
    /// The device's counters cannot be read.
    NoCounters(String),
    /// The measurements do not decide it.
    Undecided(String),
    /// The emulator does not do what the kernel asks: what, and where.
    NotEmulated(String),
    /// Too much work for the emulator by its stated limit.
    TooLarge(String),
    /// Something that would have to be there is missing.
    Missing(String),
    /// The measured time is below what the hardware can do.
    Implausible(String),
}

impl Unknown {
    /// With its words hidden, where words are.
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
        }
    }
}

impl Verdict {
    /// With its words hidden, where words are.
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

/// What became of a step in one build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran.
    Executed,
    /// Its result was known: nothing it reads has changed.
    Fresh,
    /// This machine cannot run it; the text says what is missing. Never stored.
    Unavailable(String),
    /// A step it needs gave nothing; the text names that step.
    Skipped(String),
    /// It ran and gave no result: could not compile, timed out, internal error. Never stored.
    Failed(String),
}
