//! What the outside world may learn while a build runs: one event a JSON line, each with a `reason`.

use serde::{Deserialize, Serialize};

use super::{Note, Outcome, StepKind, Verdict};
use kforge_foundation::base::{Digest, Severity};

/// Where a fresh result came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheOrigin {
    /// This workspace's journal.
    Journal,
    /// The shared local cache.
    Local,
    /// The evidence index.
    Evidence,
    /// A remote cache.
    Remote,
    /// None: it ran, or has no result.
    None,
}

/// Why a step ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Why {
    /// `new`, `changed`, `not-cached`, `remeasure`, `forgotten`.
    pub code: String,
    /// The first field that differs: `inputs.source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Its value last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its value now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// What of the system makes steps fail that are not at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// A file system has no space left.
    Full,
    /// This user may not write.
    Refused,
    /// A folder was removed that was there when the command began.
    Gone,
}

impl Trouble {
    /// What to do about it.
    pub fn help(self) -> &'static str {
        match self {
            Trouble::Full => "free some space, or remove what is old with `kforge cache gc`",
            Trouble::Refused => {
                "this user must be able to write there, or another folder must be named: `KFORGE_HOME` for the home, `--target-dir` for outputs"
            }
            Trouble::Gone => "it was removed while kforge was at work: run the command again",
        }
    }
}

/// What a step is about, for people and filters; never part of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Labels {
    /// The package.
    pub package: String,
    /// The kernel, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The operator, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The variant: `T=f16,BLOCK=256,VEC=4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The choice of types of a step of a round: `T=f16`. The variant of other steps names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// The round of the optimisation loop that tried it, from 1; none for what is declared.
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
}

/// Where and when an observation was made, for events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EvidenceSeen {
    /// A bundle's name, its path if it lies in the repository, or `here`.
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
}

/// How many steps ended how. The outcomes sum to `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepCounts {
    /// All steps.
    pub total: u64,
    /// Ran and gave a result.
    pub executed: u64,
    /// Result was known.
    pub fresh: u64,
    /// Cannot run on this machine.
    pub unavailable: u64,
    /// Something they need gave nothing.
    pub skipped: u64,
    /// Ran and gave no result.
    pub failed: u64,
}

/// How many verdicts of which kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[expect(missing_docs, reason = "the names of the verdicts")]
pub struct VerdictCounts {
    pub pass: u64,
    pub fail: u64,
    pub unknown: u64,
}

/// A step that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepFinished {
    /// Its readable id.
    pub id: String,
    /// Its kind.
    pub kind: StepKind,
    /// What it is about.
    pub labels: Labels,
    /// What became of it.
    pub outcome: Outcome,
    /// What its result says, if it judges.
    pub verdict: Option<Verdict>,
    /// Where a fresh result came from.
    pub cache: CacheOrigin,
    /// Its key, where all its inputs were known.
    pub key: Option<Digest>,
    /// The digest of its result, where it has one.
    pub result: Option<Digest>,
    /// Why it ran, if it did.
    pub why: Option<Why>,
    /// The product whose observation counts, for a step that asks a device; none where any may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Where its observation comes from, if it is one of a device.
    pub evidence: Option<EvidenceSeen>,
    /// Its one line for people.
    pub summary: String,
    /// Its messages.
    pub notes: Vec<Note>,
    /// What of the system made it fail, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Whether it was skipped because the build was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// When it started, in milliseconds after the build did; none if it did not run.
    pub started_ms: Option<u64>,
}

/// One line of `--message-format json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Event {
    /// First.
    BuildStarted {
        /// Version of these lines.
        format_version: u32,
        /// Version of kforge.
        kforge: String,
        /// Names this build in logs.
        run: String,
    },
    /// A step began to run.
    StepStarted {
        /// Its readable id.
        id: String,
        /// Its kind.
        kind: StepKind,
    },
    /// A step ended.
    StepFinished(Box<StepFinished>),
    /// A message about the manifest or the build.
    Diagnostic {
        /// How bad it is.
        severity: Severity,
        /// Its stable code.
        code: String,
        /// The message.
        message: String,
        /// The message as people see it, with its place.
        rendered: String,
        /// File, line and column, from one, where it has a place.
        place: Option<(String, usize, usize)>,
    },
    /// The variant that stands for a class of shapes.
    Champion {
        /// The package.
        package: String,
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
        /// The class of shapes: `all`, a shape's name, or the value of the class expression.
        class: String,
        /// The variant.
        variant: String,
        /// Whether it stands for want of evidence rather than by it.
        provisional: bool,
    },
    /// A step that a build would run: of `--dry-run` only.
    StepPlanned {
        /// Its readable id.
        id: String,
        /// Its kind.
        kind: Option<StepKind>,
        /// Whether it will run, rather than may: what may run does so only if what it reads turns out otherwise than before.
        certain: bool,
        /// Whether its result decides which further steps there are.
        adds: bool,
        /// Why it will run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
    },
    /// Last of `--dry-run`.
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
    /// Last.
    BuildFinished {
        /// Whether the exit code is 0.
        success: bool,
        /// How many steps ended how.
        steps: StepCounts,
        /// How many verdicts of which kind.
        verdicts: VerdictCounts,
    },
}
