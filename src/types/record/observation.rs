//! What a verify step saw, free of policy. No tolerance is read here, so a changed tolerance needs no new run.

use serde::{Deserialize, Serialize};

use super::LaunchPart;
use super::diagnosis::{Diagnosis, Fit};
use crate::model::DType;
use kforge_foundation::base::worded;

/// What went wrong while a candidate ran. Findings are reported in this order: possible causes before their consequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An access outside its buffer.
    OutOfBounds,
    /// Two threads access the same bytes without a barrier in between, and one of them writes.
    Race,
    /// A read of memory that nothing wrote.
    Uninitialised,
    /// A read through the read-only cache of memory that the same launch wrote before.
    StaleRead,
    /// A barrier that not all threads of the block reached, or that they reached at different places.
    DivergentBarrier,
    /// Some threads left the kernel before they reached a barrier.
    ExitedBeforeBarrier,
    /// A warp operation whose mask names lanes that never arrive, or leaves out the calling lane.
    WarpMask,
    /// A shuffle that reads a lane which takes no part in it.
    AbsentLane,
    /// An access whose address is not a multiple of the alignment that its size requires.
    Misaligned,
    /// The bytes before or after a buffer were changed.
    Canary,
    /// An input was changed.
    InputModified,
    /// An output was not written, or only partly.
    Unwritten,
    /// What a module of PyTorch returned is not what the operator declares, in another way than by its shape or type: another count, layout or device, or no plain
    /// tensor.
    WrongForm,
    /// A module of PyTorch returned an output of another shape than the operator declares.
    WrongShape,
    /// A module of PyTorch returned an output of another type than the operator declares.
    WrongType,
    /// A `zero-once` workspace was not zero again.
    WorkspaceDirty,
    /// Results of repeated runs on the same inputs depend on the order of threads: by more than rounding, or at all although they must not.
    OrderDependent,
    /// A launch gave a different result after another launch on other inputs than by itself. The kernel keeps state between launches.
    KeepsState,
    /// `assert` failed in the kernel.
    Assertion,
    /// `__trap` or `abort`.
    Trap,
    /// The kernel raised an exception: one in Triton, in its interpreter, or one in PyTorch. In observations of an earlier kforge, this is a trap.
    Raised,
    /// The kernel tried something forbidden: a system call that is refused.
    Forbidden,
    /// A signal killed the process, or an access went to an address in no buffer, where one would.
    Crash,
    /// The process ended itself.
    Exited,
    /// Threads wait for each other forever, or spin without progress.
    NoProgress,
    /// The launch itself was refused: too many threads, too much shared memory, a wrong argument.
    LaunchRefused,
    /// Memory or processes beyond the limits.
    LimitExceeded,
    /// The candidate broke the protocol with its runner, so its answers cannot be trusted.
    Protocol,
    /// Calls of a kernel in PyTorch spend time of the device in another way than the kernel's policy permits.
    Policy,
}

impl FindingKind {
    /// Whether hardware allows what such a finding reports. It is then shown but fails nothing. Since compute capability 7.0, a barrier waits only for the
    /// threads of the block that have not left. On older devices, or if the barrier protects what those threads wrote, it is a mistake.
    /// CUDA leaves the value that a shuffle reads from an absent lane undefined, and many correct kernels discard it.
    pub fn is_allowed(self) -> bool {
        matches!(self, FindingKind::ExitedBeforeBarrier | FindingKind::AbsentLane)
    }

    /// What kept a kernel from running to its end, in words; none for a finding of a kernel that ran and whose accesses or results are wrong.
    pub fn not_run(self) -> Option<&'static str> {
        match self {
            FindingKind::Assertion => Some("an assertion fails"),
            FindingKind::Trap => Some("the kernel stops itself"),
            FindingKind::Raised => Some("an exception is raised"),
            FindingKind::Crash => Some("the kernel crashes"),
            FindingKind::Exited => Some("the kernel ends its process"),
            FindingKind::NoProgress => Some("the kernel makes no progress"),
            FindingKind::LaunchRefused => Some("the launch is refused"),
            FindingKind::LimitExceeded => Some("a limit of memory or processes is exceeded"),
            _ => None,
        }
    }

    /// Whether such a finding is shown only with a failure, which it may explain: it says nothing of a kernel whose results are correct.
    pub fn only_explains(self) -> bool {
        self == FindingKind::AbsentLane
    }
}

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "CUDA's own names")]
pub enum Space {
    Global,
    Shared,
    Constant,
    Local,
}

/// A structural failure: wrong under any tolerance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// The kind of failure.
    pub kind: FindingKind,
    /// The whole finding in one line, for people.
    pub message: String,
    /// The buffer or shared variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<String>,
    /// The kind of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
    /// The element of the buffer or variable; may be outside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
    /// Package-relative file, and line counted from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<(String, u32)>,
    /// The other line of a race or a divergent barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_line: Option<(String, u32)>,
    /// The part of the launch that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchPart>,
    /// The index of the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// The index of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<[u32; 3]>,
    /// How many such findings were seen.
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

/// An element that no other element makes irrelevant: no other element has both a larger error and a smaller expected magnitude (and a smaller scale).
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
    /// The operator applied to absolute values at this element, if the tolerance declares `scaled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

/// A differing element of an output that is compared exactly, or an element whose class (NaN, infinities, finite) differs. The values are texts, because they
/// need not fit a float.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mismatch {
    /// Row-major index of the element.
    pub index: u64,
    /// What the kernel wrote.
    pub got: String,
    /// What was expected.
    pub want: String,
}

/// The elements that are far off, and where they are. An element is far off if its error exceeds a hundredth of the sum of its expected magnitude and the
/// magnitude of the whole output (root mean square).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gross {
    /// How many elements are far off.
    pub count: u64,
    /// The first such element, with its values.
    pub first: Mismatch,
    /// What would explain their position, if the pattern is plain: `the last of 257 columns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// The comparison of one whole output of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OutputObserved {
    /// Its name.
    pub output: String,
    /// Its element type, which determines the unit in the last place.
    pub dtype: DType,
    /// How many elements were compared.
    pub elements: u64,
    /// Its extents, outermost first. Messages use them to say which elements are wrong. Empty if they were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<u64>,
    /// The Pareto front of (error, |want|) over elements that are finite on both sides, sorted by error with the largest first. Empty if all elements are
    /// equal.
    pub front: Vec<FrontPoint>,
    /// How many exactly compared elements (integers, truth values, indices) differ.
    pub differing: u64,
    /// The first element that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_differing: Option<Mismatch>,
    /// How many elements differ in class: finite or not, NaN or infinity, sign of infinity.
    pub class_differing: u64,
    /// How many of these elements are not finite on both sides.
    pub class_differing_both_nonfinite: u64,
    /// The first element that differs in class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_class_differing: Option<Mismatch>,
    /// How many elements are not finite in the output, and how many in the expected values.
    pub nonfinite: (u64, u64),
    /// Histogram of |got - want| / max(|want|, tiny) by decade, from below 1e-9 to above 1: eleven counts.
    pub histogram: Vec<u64>,
    /// The position of the elements that are far off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gross: Option<Gross>,
    /// What explains the values of these elements, if their pattern is plain. None in observations of an earlier kforge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
    /// How near the elements are to what the diagnosis says, for the tolerance to judge. None if the diagnosis says nothing of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// How many elements exceed the tolerance in the spec. Only if the operator declares `matched` below one, which a front cannot decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<u64>,
    /// What a function of the package says of the output, if the operator compares the output with a function. Only the function decides then. All other fields
    /// are empty, except the number of elements and the position of those that the function rejects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<CheckObserved>,
}

/// What a function of the package says of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckObserved {
    /// The function: `ref.py::check`.
    pub by: String,
    /// How many elements it rejects. If it rejects the output as a whole, all elements.
    pub rejected: u64,
    /// Whether it judges the output as a whole rather than its elements.
    pub whole: bool,
    /// Why it rejects, in the function's words, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One trial: one seed, one distribution of inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialObserved {
    /// Its number.
    pub trial: u32,
    /// The distribution from which its inputs were drawn.
    pub distribution: String,
    /// Every output.
    pub outputs: Vec<OutputObserved>,
}

/// A trial that was drawn from the system's entropy when the verification ran, so that nobody knew its inputs before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FreshTrial {
    /// Its number among the trials of the observation.
    pub trial: u32,
    /// The seed that was drawn. An overlay with this seed repeats the trial.
    pub seed: u64,
    /// The distribution from which its inputs were drawn.
    pub distribution: String,
}

/// The trials that only one verification had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fresh {
    /// They were run. What was seen of them is among the other trials.
    Drawn(Vec<FreshTrial>),
    /// They were left out, for this reason.
    LeftOut(String),
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
    /// Not checked, because a run failed.
    Unknown,
}

/// What a verify step saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VerifyObservation {
    /// Whether the emulator ran the candidate, or Triton's interpreter, or PyTorch on the processor. Every display of the observation says so.
    pub emulated: bool,
    /// Structural failures. Each one is a fail, except the kinds that hardware allows.
    pub findings: Vec<Finding>,
    /// What the emulator does not support, with its place. It makes the verdict unknown, unless there is a finding or a wrong output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_emulated: Option<String>,
    /// Why the candidate was not launched at all. It makes the verdict unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_launched: Option<String>,
    /// How many trials were requested; 0 if that was not recorded. If fewer trials were compared and nothing failed, the verdict is unknown.
    #[serde(default)]
    pub asked: u32,
    /// Every trial whose outputs could be compared.
    pub trials: Vec<TrialObserved>,
    /// Which of these trials nobody knew before. None if a failure ended the verification before them, or if the kforge that observed ran none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Fresh>,
    /// Whether repeated runs agree.
    pub determinism: Determinism,
    /// What the system could not do to confine the candidate, one sentence each. Empty if the candidate was confined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfined: Vec<String>,
    /// How it was run: `check`, `plain`, [`INTERPRETED`], [`TORCH_CPU`], or the device's class. [`HOST_LAUNCHED`] precedes this if the kernel's own launcher ran it.
    pub ran_as: String,
}

/// The beginning of [`VerifyObservation::ran_as`] if the kernel's own launcher ran the candidate.
pub const HOST_LAUNCHED: &str = "host-launched, ";

/// [`VerifyObservation::ran_as`] if Triton's interpreter ran the candidate.
pub const INTERPRETED: &str = "triton interpreter";

/// [`VerifyObservation::ran_as`] if PyTorch ran the candidate on the processor.
pub const TORCH_CPU: &str = "torch on cpu";

/// What the witness of a verdict is called: nothing for a device.
pub fn witness(emulated: bool, interpreted: bool, in_torch: bool) -> &'static str {
    match (emulated, interpreted, in_torch) {
        (_, true, _) => "emulated (triton interpreter)",
        (_, _, true) => "emulated (torch on cpu)",
        (true, ..) => "emulated",
        (false, ..) => "",
    }
}

impl VerifyObservation {
    /// An observation at the start, when nothing has been seen of the `asked` trials.
    pub fn begun(emulated: bool, asked: u32, ran_as: String) -> Self {
        VerifyObservation {
            emulated,
            findings: vec![],
            not_emulated: None,
            not_launched: None,
            asked,
            trials: vec![],
            fresh: None,
            determinism: Determinism::Unknown,
            unconfined: vec![],
            ran_as,
        }
    }

    /// The fresh trial of that number, if it is one.
    pub fn fresh_trial(&self, trial: u32) -> Option<&FreshTrial> {
        match &self.fresh {
            Some(Fresh::Drawn(all)) => all.iter().find(|fresh| fresh.trial == trial),
            Some(Fresh::LeftOut(_)) | None => None,
        }
    }

    /// Why there was no fresh trial; none if there was one.
    pub fn no_fresh(&self) -> Option<String> {
        match &self.fresh {
            Some(Fresh::Drawn(_)) => None,
            Some(Fresh::LeftOut(why)) => Some(why.clone()),
            None => Some("the kforge that observed it ran none".into()),
        }
    }

    /// Whether the kernel's own launcher ran the candidate, in a process that is not trusted.
    pub fn is_host_launched(&self) -> bool {
        self.ran_as.starts_with(HOST_LAUNCHED)
    }

    /// Whether Triton's interpreter ran the candidate.
    pub fn is_interpreted(&self) -> bool {
        self.emulated && self.ran_as == INTERPRETED
    }

    /// Whether PyTorch ran the candidate on the processor.
    pub fn is_in_torch(&self) -> bool {
        self.emulated && self.ran_as == TORCH_CPU
    }
}
