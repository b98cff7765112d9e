//! Verdicts and times as traces of FlashInfer-Trace: from what was observed to a status, and to the texts of solutions and traces. Pure; knows the form, and which
//! results it has no place for.
//!
//! | observed | status |
//! |---|---|
//! | a pass with a time, on a device | `PASSED` |
//! | wrong values | `INCORRECT_NUMERICAL` |
//! | threads that make no progress | `TIMEOUT` |
//! | a kernel that keeps state, does something forbidden or breaks the protocol, or whose outputs are right until it is timed | `REWARD_HACK` in SOL-ExecBench's form, otherwise `RUNTIME_ERROR` with the reason in the log |
//! | a module of PyTorch whose output has another shape or type than the operator declares | `INCORRECT_SHAPE`, `INCORRECT_DTYPE` |
//! | any other finding, a launch that is refused, a baseline that raises an error | `RUNTIME_ERROR` |
//! | a source that does not compile | `COMPILE_ERROR` |
//! | unknown, on the emulator only, or correct without a time | no trace, and the reason |

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::json;

use kforge_types::model::Language;
use kforge_types::record::event::EvidenceSeen;
use kforge_types::record::{Finding, FindingKind, OutputObserved, Verdict, VerifyObservation};

/// What became of a solution at a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// In a word.
    pub status: Status,
    /// Where.
    pub environment: Environment,
    /// When, as RFC 3339.
    pub timestamp: String,
    /// Why, in words.
    pub log: String,
    /// How far off its values are; only with [`Status::Passed`] and [`Status::IncorrectNumerical`].
    pub correctness: Option<Correctness>,
    /// How long it takes; only with [`Status::Passed`].
    pub performance: Option<Performance>,
}

/// The status of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the words of FlashInfer-Trace; the head says what they stand for")]
pub enum Status {
    Passed,
    IncorrectNumerical,
    IncorrectShape,
    IncorrectDtype,
    RuntimeError,
    CompileError,
    Timeout,
    RewardHack,
}

/// Where an evaluation was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// The device class as text.
    pub hardware: String,
    /// Versions by name.
    pub libs: BTreeMap<String, String>,
}

/// The largest errors over all elements of all outputs and trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correctness {
    /// Relative to the expected value.
    #[serde(serialize_with = "number")]
    pub max_relative_error: f64,
    /// The absolute error; NaN if it is not known, as for values of another class.
    #[serde(serialize_with = "number")]
    pub max_absolute_error: f64,
}

/// Times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Performance {
    /// The median device time in milliseconds.
    pub latency_ms: f64,
    /// The same of the reference, if a baseline is the reference as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_latency_ms: Option<f64>,
    /// The reference's time over the solution's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_factor: Option<f64>,
}

/// JSON has no infinities and no NaN; the form has texts for them.
fn number<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    match value {
        value if value.is_finite() => to.serialize_f64(*value),
        value if value.is_nan() => to.serialize_str("NaN"),
        value if *value > 0.0 => to.serialize_str("Infinity"),
        _ => to.serialize_str("-Infinity"),
    }
}

/// What is open of a speed-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeedUpDoubt {
    /// It stands as unconfirmed, and why.
    Unconfirmed(String),
    /// A second device confirms it, as somebody says whom the build does not trust.
    Claimed,
}

/// What is known of a solution at a workload.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The verdict.
    pub verdict: &'a Verdict,
    /// Its explanation.
    pub explanation: &'a str,
    /// What was observed when outputs were compared.
    pub observation: Option<&'a VerifyObservation>,
    /// Whether the compared outputs are wrong. A failure without wrong outputs was seen when it was timed.
    pub wrong_values: bool,
    /// The median device time in nanoseconds.
    pub time_ns: Option<f64>,
    /// The reference's median device time, and its ratio to the solution's.
    pub reference: Option<(f64, f64)>,
    /// What is open of the speed-up over the reference.
    pub doubt: Option<&'a SpeedUpDoubt>,
    /// Where and when; none if no device was asked.
    pub seen: Option<&'a EvidenceSeen>,
    /// Whether the statuses are those of SOL-ExecBench.
    pub extended: bool,
}

/// Why there is no trace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// The verdict is unknown.
    Unknown(String),
    /// Only the emulator ran it.
    Emulated,
    /// It passes, and nothing is known of its time.
    Untimed,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOut::Unknown(why) => write!(f, "unknown: {why}"),
            LeftOut::Emulated => f.write_str("only the emulator ran it"),
            LeftOut::Untimed => f.write_str("it passes, and it has no time"),
        }
    }
}

/// The evaluation for a trace.
///
/// # Errors
/// The form has no place for what is known.
pub fn evaluation(known: &Known<'_>) -> Result<Evaluation, LeftOut> {
    if let Verdict::Unknown(why) = known.verdict {
        return Err(LeftOut::Unknown(why.to_string()));
    }
    let seen = known.seen.filter(|_| !known.observation.is_some_and(|o| o.emulated)).ok_or(LeftOut::Emulated)?;
    let (status, log) = match known.verdict {
        Verdict::Fail(why) => failed(known, why),
        // The form has no other place for it.
        _ => match known.reference.zip(known.doubt) {
            Some(((_, ratio), SpeedUpDoubt::Unconfirmed(why))) => {
                (Status::Passed, format!("unconfirmed: the speed-up of {ratio:.3}: {why}"))
            }
            Some(((_, ratio), SpeedUpDoubt::Claimed)) => {
                (Status::Passed, format!("confirmed by a claim only: the speed-up of {ratio:.3}"))
            }
            None => (Status::Passed, String::new()),
        },
    };
    let correctness = matches!(status, Status::Passed | Status::IncorrectNumerical)
        .then(|| correctness(known.observation.into_iter().flat_map(|o| &o.trials).flat_map(|t| &t.outputs)));
    let performance = match (status, known.time_ns) {
        (Status::Passed, None) => return Err(LeftOut::Untimed),
        (Status::Passed, Some(ns)) => Some(Performance {
            latency_ms: ns / 1e6,
            reference_latency_ms: known.reference.map(|(ns, _)| ns / 1e6),
            speedup_factor: known.reference.map(|(_, ratio)| ratio),
        }),
        _ => None,
    };
    Ok(Evaluation {
        environment: environment(seen),
        timestamp: seen.measured_at.clone(),
        status,
        log,
        correctness,
        performance,
    })
}

/// The evaluation of a source that does not compile. Nothing ran, so `hardware` is the target.
pub fn not_compiled(target: &str, kforge: &str, when: &str, log: &str) -> Evaluation {
    Evaluation {
        status: Status::CompileError,
        environment: Environment { hardware: target.into(), libs: [("kforge".to_string(), kforge.to_string())].into() },
        timestamp: when.into(),
        log: log.into(),
        correctness: None,
        performance: None,
    }
}

fn environment(seen: &EvidenceSeen) -> Environment {
    let versions = [("kforge", &seen.kforge), ("driver", &seen.driver)];
    let libs = versions.into_iter().filter(|(_, version)| !version.is_empty());
    Environment {
        hardware: seen.device_class.clone(),
        libs: libs.map(|(name, version)| (name.to_string(), version.clone())).collect(),
    }
}

/// The status of a failure, and the log.
fn failed(known: &Known<'_>, why: &str) -> (Status, String) {
    let log = if known.explanation.is_empty() { why } else { known.explanation }.trim_end().to_string();
    let findings = known.observation.into_iter().flat_map(|o| &o.findings).filter(|f| !f.kind.is_allowed());
    let status = match findings.min_by_key(|finding| finding.kind) {
        Some(finding) => of_finding(finding, known),
        None if known.wrong_values => Status::IncorrectNumerical,
        None => hack(known),
    };
    (status, log)
}

fn hack(known: &Known<'_>) -> Status {
    if known.extended { Status::RewardHack } else { Status::RuntimeError }
}

fn of_finding(finding: &Finding, known: &Known<'_>) -> Status {
    match finding.kind {
        FindingKind::NoProgress => Status::Timeout,
        FindingKind::WrongShape => Status::IncorrectShape,
        FindingKind::WrongType => Status::IncorrectDtype,
        FindingKind::KeepsState | FindingKind::Forbidden | FindingKind::Protocol | FindingKind::Policy => hack(known),
        // Values that are not what they must be, wherever they were compared.
        FindingKind::Unwritten | FindingKind::OrderDependent if known.wrong_values => Status::IncorrectNumerical,
        _ => Status::RuntimeError,
    }
}

/// The largest errors. The front of worst errors holds the element with the largest absolute and the one with the largest relative error.
fn correctness<'o>(outputs: impl Iterator<Item = &'o OutputObserved>) -> Correctness {
    let mut worst = Correctness { max_relative_error: 0.0, max_absolute_error: 0.0 };
    let mut is_known = true;
    for output in outputs {
        for point in &output.front {
            worst.max_absolute_error = worst.max_absolute_error.max(point.error);
            let relative = if point.error == 0.0 { 0.0 } else { point.error / point.want.abs() };
            worst.max_relative_error = worst.max_relative_error.max(relative);
        }
        let is_counted = output.front.is_empty() && output.differing > 0;
        is_known &= !is_counted && output.class_differing == 0 && output.checked.is_none();
    }
    if is_known { worst } else { Correctness { max_relative_error: f64::NAN, max_absolute_error: f64::NAN } }
}

/// A kernel as a solution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSolution {
    /// Its name in the dataset.
    pub name: String,
    /// What it solves.
    pub definition: String,
    /// What it is written in.
    pub language: Language,
    /// The file and the function that it launches first.
    pub entry: (String, String),
    /// Its files by path.
    pub sources: BTreeMap<String, String>,
    /// The variant.
    pub variant: String,
    /// The tables of the kernel, which kforge reads again.
    pub kernel: String,
}

impl OwnSolution {
    /// The text of its file.
    pub fn text(&self) -> String {
        let sources: Vec<_> =
            self.sources.iter().map(|(path, content)| json!({ "path": path, "content": content })).collect();
        // The form has one `::` in an entry point.
        let function = self.entry.1.split('<').next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
        let (language, dependencies, description) = match self.language {
            Language::Cuda => ("cuda", vec![], LAUNCHED),
            Language::Triton => ("triton", vec![], LAUNCHED),
            Language::Torch => ("python", vec!["torch"], CALLED),
        };
        let spec = json!({
            "language": language,
            "target_hardware": ["cuda"],
            "entry_point": format!("{}::{function}", self.entry.0),
            "dependencies": dependencies,
            "destination_passing_style": self.language != Language::Torch,
        });
        let document = json!({
            "name": self.name,
            "definition": self.definition,
            "author": AUTHOR,
            "description": description,
            "spec": spec,
            "sources": sources,
            "kforge": { "kernel": self.kernel, "variant": self.variant },
        });
        format!("{document:#}\n")
    }
}

/// What a kernel that is launched is, for people.
const LAUNCHED: &str = "The kernel and its launch, without host code: kforge launches it.";
/// What a kernel in PyTorch is, for people.
const CALLED: &str = "A module or function of PyTorch: kforge calls it with the inputs by name.";

/// The author of solutions that are kernels of kforge.
pub const AUTHOR: &str = "kforge";

/// The line of a trace. `workload` is the workload as it is in the dataset.
pub fn trace_line(
    definition: &str,
    workload: &impl Serialize,
    solution: &str,
    evaluation: &Evaluation,
) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Trace<'a, W: Serialize> {
        definition: &'a str,
        workload: &'a W,
        solution: &'a str,
        evaluation: &'a Evaluation,
    }
    serde_json::to_string(&Trace { definition, workload, solution, evaluation })
}

#[cfg(test)]
mod tests;
