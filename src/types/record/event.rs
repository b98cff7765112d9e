//! Events of a build: one JSON line each, with a `reason`.

use serde::{Deserialize, Serialize};

use super::{Note, Outcome, Standing, StepKind, Verdict};
use kforge_foundation::base::{Digest, Severity};

/// Where a result came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheOrigin {
    /// This workspace's journal.
    Journal,
    /// The shared local cache.
    Local,
    /// The evidence index.
    Evidence,
    /// A remote cache; of a step that was executed, a worker behind it.
    Remote,
    /// No origin: the step was executed on this machine, or has no result.
    None,
}

/// Why a step ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Why {
    /// `new`, `changed`, `not-cached`, `remeasure`, `forgotten`.
    pub code: String,
    /// The first field that differs, such as `inputs.source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Its value last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its value now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A fault of the system, or an act of another process, that makes steps fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// A file system has no space left.
    Full,
    /// This user lacks the permission to write.
    Refused,
    /// A folder that existed when the command started was removed.
    Gone,
    /// Another process or the system killed the worker that executed the step.
    Killed,
}

impl Trouble {
    /// What to do about it.
    pub fn help(self) -> &'static str {
        match self {
            Trouble::Full => "free some space, or remove old entries with `kforge cache gc`",
            Trouble::Refused => {
                "make the folder writable for this user, or name another one: `KFORGE_HOME` for the home, `--target-dir` for outputs"
            }
            Trouble::Gone => "the folder was removed while kforge was running: run the command again",
            Trouble::Killed => {
                "the system kills processes when memory runs out: run the command again, with fewer `--jobs` if that is the cause"
            }
        }
    }
}

/// What a step is about, for people and filters. Never part of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Labels {
    /// The package.
    pub package: String,
    /// The kernel, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The operator, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The variant: `T=f16,BLOCK=256,VEC=4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The choice of types of a step of a round: `T=f16`. The variant of other steps names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// The round of the optimisation loop that tried it, counted from 1; none for a declared kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The target: `cpu`, `h200`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The baseline that is timed beside the variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Whether it confirms a champion, in a process that runs no other candidate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms: bool,
}

/// Where and when an observation was made, for events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EvidenceSeen {
    /// A bundle's name, its path if it is in the repository, or `here`.
    pub origin: String,
    /// When, as RFC 3339.
    pub measured_at: String,
    /// The device class as text.
    pub device_class: String,
    /// The full driver version.
    #[serde(default)]
    pub driver: String,
    /// Version of kforge that observed it.
    #[serde(default)]
    pub kforge: String,
    /// How far the build trusts the observation.
    #[serde(default)]
    pub standing: Standing,
    /// Who signed it, by the principal of the trusted key; none unless the standing is `signed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// SM clock and memory clock at that time, in MHz, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_mhz: Option<(u32, u32)>,
    /// Temperature of the device in degrees Celsius, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u32>,
    /// Why its clocks were held down, by the names of NVML.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle: Vec<String>,
}

/// Number of steps by outcome. The outcomes add up to `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepCounts {
    /// All steps.
    pub total: u64,
    /// Steps that were executed and gave a result.
    pub executed: u64,
    /// Steps whose result was known.
    pub fresh: u64,
    /// Steps that cannot run on this machine.
    pub unavailable: u64,
    /// Steps that were skipped because a step they need gave no result.
    pub skipped: u64,
    /// Steps that were executed and failed.
    pub failed: u64,
}

/// Number of verdicts by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[expect(missing_docs, reason = "the names of the verdicts")]
pub struct VerdictCounts {
    pub pass: u64,
    pub fail: u64,
    pub unknown: u64,
}

impl VerdictCounts {
    /// Counts a verdict.
    pub fn add(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Fail(_) => &mut self.fail,
            Verdict::Unknown(_) => &mut self.unknown,
        } += 1;
    }

    /// The number of all verdicts.
    pub fn total(&self) -> u64 {
        self.pass + self.fail + self.unknown
    }

    /// Whether there is no verdict.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }
}

impl std::iter::Sum for VerdictCounts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(VerdictCounts::default(), |a, b| VerdictCounts {
            pass: a.pass + b.pass,
            fail: a.fail + b.fail,
            unknown: a.unknown + b.unknown,
        })
    }
}

/// What a step waits for before it starts. Where a step lacks several, its time counts for the last of them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitReason {
    /// The steps that it needs, or the step whose result added it to the plan.
    Dependency,
    /// A slot of pure steps.
    PureSlot,
    /// A processor slot.
    Processor,
    /// Memory that running steps are expected to need.
    Memory,
    /// The end of steps that load the processors, or of measurements, where both are kept apart.
    Quiet,
    /// A slot of a device.
    Device,
}

impl WaitReason {
    /// Every reason, in order.
    pub const ALL: [WaitReason; 6] = [
        WaitReason::Dependency,
        WaitReason::PureSlot,
        WaitReason::Processor,
        WaitReason::Memory,
        WaitReason::Quiet,
        WaitReason::Device,
    ];

    /// The reason in words, after "waited for".
    pub fn name(self) -> &'static str {
        match self {
            WaitReason::Dependency => "what it needs",
            WaitReason::PureSlot => "a slot of pure steps",
            WaitReason::Processor => "a processor slot",
            WaitReason::Memory => "memory",
            WaitReason::Quiet => "quiet processors",
            WaitReason::Device => "a device slot",
        }
    }
}

/// How long a step waited for something before it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Wait {
    /// What for.
    pub reason: WaitReason,
    /// How long, in milliseconds.
    pub ms: u64,
    /// The step whose end ended the wait, by its id; none if that is not known, and for every wait but the last for a resource and that for dependencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_by: Option<String>,
}

/// A step that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepFinished {
    /// The step's readable id.
    pub id: String,
    /// Its kind.
    pub kind: StepKind,
    /// What the step is about.
    pub labels: Labels,
    /// The outcome of the step.
    pub outcome: Outcome,
    /// The verdict of its result, if its kind has one.
    pub verdict: Option<Verdict>,
    /// Where a result came from.
    pub cache: CacheOrigin,
    /// Its key, if all its inputs were known.
    pub key: Option<Digest>,
    /// The digest of its result, if it has one.
    pub result: Option<Digest>,
    /// Why it was executed, if it was.
    pub why: Option<Why>,
    /// For a step that observes a device, the product whose observation counts; none if any product counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Where its observation comes from, if it observes a device.
    pub evidence: Option<EvidenceSeen>,
    /// A summary in one line.
    pub summary: String,
    /// Its messages.
    pub notes: Vec<Note>,
    /// The fault of the system that made it fail, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Whether it was skipped because of an interrupted build.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// When it started, in milliseconds after the start of the build; none if it was not executed.
    pub started_ms: Option<u64>,
    /// What it waited for before it started, from the start of the build on, each reason once and in their order. Empty if it was not executed, and in events of
    /// an earlier kforge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
}

/// One line of `--message-format json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Event {
    /// The first line.
    BuildStarted {
        /// The version of the format of these lines.
        format_version: u32,
        /// Version of kforge.
        kforge: String,
        /// The id of this build in logs.
        run: String,
        /// The number of steps of the plan; results may add more.
        #[serde(default)]
        planned: u64,
    },
    /// A step was started.
    StepStarted {
        /// The step's readable id.
        id: String,
        /// Its kind.
        kind: StepKind,
    },
    /// A step ended.
    StepFinished(Box<StepFinished>),
    /// A message about the manifest or the build.
    Diagnostic {
        /// The severity.
        severity: Severity,
        /// Its stable code.
        code: String,
        /// The message.
        message: String,
        /// The message as it is shown, with its place.
        rendered: String,
        /// File, line and column (counted from one), if it has a place.
        place: Option<(String, usize, usize)>,
    },
    /// The champion of a class of shapes.
    Champion {
        /// The package.
        package: String,
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
        /// The class of shapes: `all`, a shape's name, or the value of the class expression; with `@` and a shape's name, the class of a shape that was split
        /// from it.
        class: String,
        /// The shapes of the class.
        #[serde(default)]
        shapes: Vec<String>,
        /// The variant.
        variant: String,
        /// Whether it was selected without measurements.
        provisional: bool,
    },
    /// Files changed that the last build read, so another build begins: only with `--watch`.
    FilesChanged {
        /// The files, folders with other entries, and files that are gone.
        files: Vec<String>,
    },
    /// A step that a build would execute: only with `--dry-run`.
    StepPlanned {
        /// The step's readable id.
        id: String,
        /// Its kind.
        kind: Option<StepKind>,
        /// Whether it will run rather than may run. A step that may run does so only if its inputs change.
        certain: bool,
        /// Whether its result determines further steps.
        adds: bool,
        /// Why it will run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
    },
    /// The last line with `--dry-run`.
    PlanFinished {
        /// Steps that will run.
        will: u64,
        /// Steps that may run.
        may: u64,
        /// Steps whose results are known.
        fresh: u64,
        /// Steps that this machine cannot run.
        unavailable: u64,
    },
    /// The last line.
    BuildFinished {
        /// Whether the exit code is 0.
        success: bool,
        /// How many steps ended how.
        steps: StepCounts,
        /// Number of verdicts by kind.
        verdicts: VerdictCounts,
    },
}
