//! What a verify step saw, free of policy: no tolerance is read here, so an edited tolerance costs no run.

use serde::{Deserialize, Serialize};

use super::LaunchPart;
use crate::model::DType;
use kforge_foundation::base::worded;

/// What went wrong while a candidate ran, in the order in which findings are reported: possible causes come before their consequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An access outside its buffer.
    OutOfBounds,
    /// Two threads touch the same bytes without a barrier between, one of them writing.
    Race,
    /// A read of memory nothing wrote.
    Uninitialised,
    /// A barrier that not all threads of the block reached, or reached at different places.
    DivergentBarrier,
    /// A barrier that some threads left the kernel before reaching.
    ExitedBeforeBarrier,
    /// A warp operation whose mask names lanes that never come, or that leaves the caller out.
    WarpMask,
    /// An access whose address is not a multiple of what its size asks for.
    Misaligned,
    /// The bytes before or after a buffer were changed.
    Canary,
    /// An input was changed.
    InputModified,
    /// An output was not written, or only in part.
    Unwritten,
    /// A `zero-once` workspace was not zero again.
    WorkspaceDirty,
    /// Repeated runs on the same inputs differ by thread order in more than rounding, or at all where they must not.
    OrderDependent,
    /// A launch gave something else after another launch, on other inputs, than alone: the kernel keeps something between launches.
    KeepsState,
    /// `assert` failed in the kernel.
    Assertion,
    /// `__trap` or `abort`.
    Trap,
    /// It tried what no kernel may: a system call that is refused.
    Forbidden,
    /// The process died of a signal.
    Crash,
    /// The process ended itself.
    Exited,
    /// Threads wait for each other for ever, or spin without progress.
    NoProgress,
    /// The launch itself was refused: too many threads, too much shared memory, a wrong argument.
    LaunchRefused,
    /// Memory or processes beyond the limits.
    LimitExceeded,
    /// The candidate broke the protocol with its runner: what it said cannot be trusted.
    Protocol,
}

impl FindingKind {
    /// Whether hardware allows what such a finding says: it is shown and fails nothing. Since compute capability 7.0 a barrier waits only for the threads of
    /// the block that have not left; on older parts, and where the barrier guards what those threads wrote, that is a mistake.
    pub fn is_allowed(self) -> bool {
        self == FindingKind::ExitedBeforeBarrier
    }
}

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "CUDA's own names")]
pub enum Space {
    Global,
    Shared,
    Constant,
    Local,
}

/// A structural failure: wrong whatever the tolerance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// The whole of it in one line for people.
    pub message: String,
    /// The buffer or shared variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<String>,
    /// Which memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
    /// The element in it; may lie outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
    /// Package-relative file and line, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<(String, u32)>,
    /// The other line of a race or a divergent barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_line: Option<(String, u32)>,
    /// The part of the launch that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchPart>,
    /// Block index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// Thread index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<[u32; 3]>,
    /// How many like it were seen.
    pub count: u64,
}

impl Finding {
    /// A finding with nothing but its kind and message.
    pub fn new(kind: FindingKind, message: impl Into<String>) -> Self {
        Finding {
            kind,
            message: worded(message),
            buffer: None,
            space: None,
            index: None,
            line: None,
            other_line: None,
            launch: None,
            block: None,
            thread: None,
            count: 1,
        }
    }
}

/// An element that no other makes irrelevant: none has a larger error and a smaller expected magnitude (and a smaller scale).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FrontPoint {
    /// Row-major index of the element.
    pub index: u64,
    /// |got - want|, finite.
    pub error: f64,
    /// What the kernel wrote.
    pub got: f64,
    /// What was expected, rounded to the output's dtype.
    pub want: f64,
    /// The operator on absolute values there, where the tolerance declares `scaled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

/// A differing element of an exactly compared output, or one whose class (NaN, infinities, finite) differs. Texts, because neither need fit a float.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mismatch {
    /// Row-major index of the element.
    pub index: u64,
    /// What the kernel wrote.
    pub got: String,
    /// What was expected.
    pub want: String,
}

/// Where the elements lie that are far off: those off by more than a hundredth of the expected magnitude plus that of the whole output (root mean square).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gross {
    /// How many.
    pub count: u64,
    /// The first, with its values.
    pub first: Mismatch,
    /// What would explain where they lie, where the pattern is plain: `the last of 257 columns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// One output of one trial, compared whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OutputObserved {
    /// Its name.
    pub output: String,
    /// Its element type, which fixes the unit in the last place.
    pub dtype: DType,
    /// How many elements were compared.
    pub elements: u64,
    /// Its extents, outermost first: by them people are told which elements are wrong. Empty where they were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<u64>,
    /// The Pareto front of (error, |want|) over elements finite on both sides; by error, largest first. Empty if all are equal.
    pub front: Vec<FrontPoint>,
    /// Elements exactly compared that differ (integers, truth values, indices), and how many.
    pub differing: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_differing: Option<Mismatch>,
    /// Elements whose class differs: finite against not, NaN against infinity, sign of infinity.
    pub class_differing: u64,
    /// Of them, those where both are not finite.
    pub class_differing_both_nonfinite: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_class_differing: Option<Mismatch>,
    /// Elements not finite in the output, and in the expectation.
    pub nonfinite: (u64, u64),
    /// Histogram of |got - want| / max(|want|, tiny) by decade, from below 1e-9 to above 1: eleven counts.
    pub histogram: Vec<u64>,
    /// Where the elements lie that are far off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gross: Option<Gross>,
    /// Elements beyond the tolerance that the spec names; only where the operator declares `matched` below one, which a front cannot decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<u64>,
    /// What a function of the package says of the output, where the operator compares it by one: it alone decides, and nothing else is filled but the number
    /// of elements and where those it rejects lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<CheckObserved>,
}

/// The word of a function of the package on an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckObserved {
    /// The function: `ref.py::check`.
    pub by: String,
    /// How many elements it rejects: all, where it rejects the output as a whole.
    pub rejected: u64,
    /// Whether it spoke of the output as a whole rather than of its elements.
    pub whole: bool,
    /// Why it rejects, in its own words, if it gave any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One trial: one seed, one distribution of inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialObserved {
    /// Its number.
    pub trial: u32,
    /// The distribution its inputs were drawn from.
    pub distribution: String,
    /// Every output.
    pub outputs: Vec<OutputObserved>,
}

/// Whether repeated runs on the same inputs give the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Determinism {
    /// Bit for bit.
    Stable,
    /// They differ; the largest difference and the output it is in.
    Differs {
        /// The output.
        output: String,
        /// Largest absolute difference between runs.
        spread: f64,
    },
    /// Not looked at, because a run failed.
    Unknown,
}

/// What a verify step saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VerifyObservation {
    /// Whether this was the emulator: labelled so wherever it is shown.
    pub emulated: bool,
    /// Structural failures: any one is a fail, but for kinds that are allowed.
    pub findings: Vec<Finding>,
    /// What the emulator does not do, with its place: makes the verdict unknown, unless there is a finding or a wrong output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_emulated: Option<String>,
    /// How many trials were asked for; 0 where that was not recorded. If fewer were compared and nothing failed, nothing is known.
    #[serde(default)]
    pub asked: u32,
    /// Every trial whose outputs could be compared.
    pub trials: Vec<TrialObserved>,
    /// Repetition.
    pub determinism: Determinism,
    /// What the system could not do to confine the candidate, a sentence each; empty where it was confined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfined: Vec<String>,
    /// How it was run: `check`, `plain`, or the device's class, after [`HOST_LAUNCHED`] where a launcher of the kernel's own ran it.
    pub ran_as: String,
}

/// How [`VerifyObservation::ran_as`] begins where a launcher of the kernel's own ran it.
pub const HOST_LAUNCHED: &str = "host-launched, ";

impl VerifyObservation {
    /// Nothing seen yet of the trials that are asked for.
    pub fn begun(emulated: bool, asked: u32, ran_as: String) -> Self {
        VerifyObservation {
            emulated,
            findings: vec![],
            not_emulated: None,
            asked,
            trials: vec![],
            determinism: Determinism::Unknown,
            unconfined: vec![],
            ran_as,
        }
    }

    /// Whether a launcher of the kernel's own ran it, in a process that is trusted with nothing.
    pub fn is_host_launched(&self) -> bool {
        self.ran_as.starts_with(HOST_LAUNCHED)
    }
}
