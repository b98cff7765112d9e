//! The result of an evaluation. Holdout shapes are in it as a verdict only: no name, number or finding of theirs.

use serde::{Deserialize, Serialize};

use kforge_pipeline::report::baselines::BaselineReport;
use kforge_pipeline::report::calls::CallsReport;
use kforge_types::record::FindingKind;

/// A verdict in a word. Unknown is neither a pass nor a failure, and has a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of the verdicts")]
pub enum VerdictWord {
    Pass,
    Fail,
    Unknown,
}

impl VerdictWord {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            VerdictWord::Pass => "pass",
            VerdictWord::Fail => "fail",
            VerdictWord::Unknown => "unknown",
        }
    }
}

/// Why a result is no pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The manifest, the operator or the launches are wrong: nothing was compiled. The verdict is unknown, because it is about no kernel.
    NotAccepted,
    /// A compiler refuses a kernel. The verdict is fail.
    NotCompiled,
    /// A kernel is wrong. The verdict is fail.
    Wrong,
    /// A run of a kernel made no progress, or took too long. The verdict is fail.
    NoProgress,
    /// The evaluation did not end in time. The verdict is unknown.
    TimedOut,
    /// The server lacks a device or a tool. The verdict is unknown.
    Unavailable,
    /// What was observed does not decide: for example, the emulator does not support a construct. The verdict is unknown.
    Undecided,
    /// A fault of the server. The verdict is unknown.
    Internal,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EvaluationResult {
    /// Fail if a kernel fails; otherwise unknown if one is unknown, or if there is none; otherwise pass.
    pub verdict: VerdictWord,
    /// Why it is no pass, as a text. Every result has it that is no pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it is no pass, as a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Whether everything compiled; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiled: Option<bool>,
    /// The kernels on their targets.
    pub kernels: Vec<KernelResult>,
    /// What compilers, verifications and calibration said, with places.
    pub messages: Vec<MessageResult>,
    /// The seconds from the start of the evaluation to its end.
    pub seconds: f64,
    /// The version of kforge.
    pub kforge: String,
}

/// A kernel on a target, for one choice of types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelResult {
    /// Its name; `candidate` for a candidate of an operator.
    pub kernel: String,
    /// Its operator.
    pub operator: String,
    /// The target.
    pub target: String,
    /// The types, if the operator has a choice: `T=f16`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub types: String,
    /// Pass if a variant passes, fail if every variant fails, otherwise unknown.
    pub verdict: VerdictWord,
    /// Why it is no pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its variants. A kernel without tunables has one, with an empty name.
    pub variants: Vec<VariantResult>,
    /// The variants that were selected, each with its shapes, if the whole build was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub champions: Vec<(String, Vec<String>)>,
    /// The devices that were observed: product, architecture and driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_on: Vec<String>,
    /// Baselines beside champions, if the whole build was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<BaselineReport>,
    /// Call times of kernels in PyTorch, if the whole build was requested. They compare with no device time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallsReport>,
    /// What the server could not do, and why: kind of steps, their number, reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<(String, u64, String)>,
    /// Why it has no times, if times were requested and none were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed: Option<String>,
}

/// A variant of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VariantResult {
    /// Its name: the values of its tunables.
    pub variant: String,
    /// Fail if it fails at a shape; otherwise unknown if it is unknown at one; otherwise pass.
    pub verdict: VerdictWord,
    /// Its verdicts at shapes, and its times.
    pub shapes: Vec<ShapeResult>,
    /// The verdict at holdout shapes, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<HoldoutReport>,
}

/// The verdict of a variant at all holdout shapes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HoldoutReport {
    /// Fail if it fails at one; otherwise unknown if it is unknown at one; otherwise pass.
    pub verdict: VerdictWord,
}

/// A variant at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShapeResult {
    /// The shape.
    pub shape: String,
    /// The verdict.
    pub verdict: VerdictWord,
    /// Why it is no pass, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was found: element, thread, line, and a diagnosis where values are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingReport>,
    /// The largest error relative to the allowed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<f64>,
    /// Whether the verdict is that of the emulator, of Triton's interpreter or of PyTorch on the processor, and not of a device.
    pub emulated: bool,
    /// Whether a process that ran no other kernel confirmed the verdict.
    pub confirmed: bool,
    /// Its times, if it was timed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeResult>,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FindingReport {
    /// The kind of the finding that decides; none if only values are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FindingKind>,
    /// The full explanation.
    pub explanation: String,
}

/// Times of a variant at a bench shape, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimeResult {
    /// The median with cold caches, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_ns: Option<f64>,
    /// Its interval of 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_interval_ns: Option<(f64, f64)>,
    /// The median with warm caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_ns: Option<f64>,
    /// Its interval of 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_interval_ns: Option<(f64, f64)>,
    /// The device class: product, architecture and the driver's major version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// How serious a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageSeverity {
    /// It adds to another message, or is about nothing that is wrong.
    Note,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
}

/// A message of a compiler, a verification or a calibration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MessageResult {
    /// Its stable code: what reported it, then what it is about, such as `compile.error` or `verify.race`.
    pub code: String,
    /// How serious it is.
    pub severity: MessageSeverity,
    /// The message.
    pub message: String,
    /// The field of the request that it is about, such as `candidate.operator.launch[0].grid[0]`, if that is neither a file nor a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The file, if it is about one. The source of a candidate of an operator is `candidate.cu` or `candidate.py`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The kernel, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The shape at which it was reported first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
}
