//! One step as a worker sees it: its spec, its inputs, and the folder for its outputs. Knows files and names; does not know what any kind of step does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hangs::HangMark;
use super::message::{Places, Request, Response};
use kforge_foundation::base::{Severity, worded};
use kforge_types::record::params::CompileParams;
use kforge_types::record::{Note, Spec, ToolMessage, Verdict};

/// A step to execute.
#[derive(Debug, Clone)]
pub struct Task {
    /// Everything that the step may see.
    pub spec: Spec,
    /// The folder of inputs; use [`Task::path`].
    pub input: PathBuf,
    /// The folder for outputs; use [`Task::write`].
    pub output: PathBuf,
    /// Where the tools are.
    pub places: Places,
    /// The UUID of the device to observe, as in [`Request::device`].
    pub device: Option<String>,
    /// The time limit of the step, from [`Task::started`] on.
    pub time_limit: Duration,
    /// The time limit of one run of candidate code, from the start of its process on. Other work of the step does not count.
    pub run_limit: Duration,
    /// The memory limit in bytes of candidate code.
    pub memory_limit: u64,
    /// The memory limit in bytes of compilers.
    pub compiler_memory: u64,
    /// Whether candidate code and compilers may run if the system cannot confine them.
    pub allow_unconfined: bool,
    /// As in [`Request::hang`].
    pub hang: Option<HangMark>,
    /// As in [`Request::planned`].
    pub planned: SystemTime,
    /// As in [`Request::warm_up`].
    pub warm_up: bool,
    /// When the step began.
    pub started: Instant,
    /// The microseconds of that time that it waited for others, as [`Task::waited`] counts them.
    pub waiting_us: Arc<AtomicU64>,
}

impl From<Request> for Task {
    fn from(request: Request) -> Self {
        Task {
            spec: request.spec,
            input: request.input,
            output: request.output,
            places: request.places,
            device: request.device,
            time_limit: Duration::from_secs(request.time_limit_s),
            run_limit: Duration::from_secs(request.run_limit_s),
            memory_limit: request.memory_limit,
            compiler_memory: request.compiler_memory,
            allow_unconfined: request.allow_unconfined,
            hang: request.hang,
            planned: request.planned,
            warm_up: request.warm_up,
            started: Instant::now(),
            waiting_us: Arc::default(),
        }
    }
}

/// The name of the file or folder that holds an input. Colons are replaced, because file names should not contain them.
pub fn file_name(input: &str) -> String {
    input.replace(':', "-")
}

/// A [`Response`] for a step that failed.
pub fn failed(message: impl ToString) -> Response {
    Response::Failed { message: worded(message.to_string()), notes: vec![] }
}

/// A [`Response`] for a source that a compiler refused, with the compiler's output in `log` and the messages that could be read in it in `parts`. For a
/// candidate, the refusal is a failing verdict.
pub fn refused(params: &CompileParams, message: impl Into<String>, log: &str, parts: Vec<ToolMessage>) -> Response {
    let (message, log) = (worded(message), log.trim());
    let notes = match log.is_empty() {
        true => vec![],
        false => vec![Note::new(Severity::Error, "compile.refused", log).of_parts(parts)],
    };
    match params.candidate {
        true => {
            Response::Done { verdict: Some(Verdict::Fail(message)), notes, summary: "refused".into(), forget: false }
        }
        false => Response::Failed { message, notes },
    }
}

/// A [`Response`] for a step with all its outputs and without a verdict.
pub fn done(summary: impl Into<String>, notes: Vec<Note>) -> Response {
    Response::Done { verdict: None, notes, summary: worded(summary), forget: false }
}

impl Task {
    /// The parameters of the step's kind, from exactly the value that was hashed into its key.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, Response> {
        let kind = self.spec.kind;
        serde_json::from_value(self.spec.params.clone())
            .map_err(|e| failed(format!("the parameters are not those of a `{kind}` step: {e}")))
    }

    /// The file or folder of an input; none if the input is absent or the spec does not name it.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.spec.inputs.get(name)?.digest.as_ref()?;
        Some(self.input.join(file_name(name)))
    }

    /// The file or folder of a required input.
    pub fn required(&self, name: &str) -> Result<PathBuf, Response> {
        self.path(name).ok_or_else(|| failed(format!("a `{}` step needs the input `{name}`", self.spec.kind)))
    }

    /// The bytes of a required input.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, Response> {
        fs::read(self.required(name)?).map_err(|e| failed(format!("cannot read the input `{name}`: {e}")))
    }

    /// An input that is a JSON document.
    pub fn document<T: DeserializeOwned>(&self, name: &str) -> Result<T, Response> {
        serde_json::from_slice(&self.read(name)?).map_err(|e| failed(format!("cannot read the input `{name}`: {e}")))
    }

    /// Writes an output.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Response> {
        fs::write(self.output.join(name), bytes).map_err(|e| failed(format!("cannot write the output `{name}`: {e}")))
    }

    /// Writes an output as JSON: fields in declared order, maps sorted by key, so that equal values give equal bytes.
    pub fn write_document(&self, name: &str, value: &impl Serialize) -> Result<(), Response> {
        let bytes = serde_json::to_vec(value).map_err(|e| failed(format!("cannot write the output `{name}`: {e}")))?;
        self.write(name, &bytes)
    }

    /// The absolute path of a tool.
    pub fn tool(&self, name: &str) -> Result<&Path, Response> {
        let missing = || Response::Unavailable { why: format!("no `{name}` on this machine") };
        self.places.tools.get(name).map(PathBuf::as_path).ok_or_else(missing)
    }

    /// The time that the step has left. Time that it waited for others does not count, because a step beside a slow one is not slow itself.
    pub fn left(&self) -> Duration {
        let waited = Duration::from_micros(self.waiting_us.load(Ordering::Relaxed));
        self.time_limit.saturating_sub(self.started.elapsed().saturating_sub(waited))
    }

    /// Adds time for which the step waited for others.
    pub fn waited(&self, so_long: Duration) {
        self.waiting_us.fetch_add(so_long.as_micros() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::StepKind;

    #[test]
    fn what_a_step_waits_for_others_is_not_its_time() {
        let spec = Spec {
            kind: StepKind::Bench,
            version: 1,
            implementation: None,
            params: Default::default(),
            inputs: Default::default(),
        };
        let minute = Duration::from_secs(60);
        let task = Task::from(Request {
            spec,
            input: PathBuf::new(),
            output: PathBuf::new(),
            places: Places::default(),
            device: None,
            time_limit_s: 60,
            run_limit_s: 60,
            memory_limit: 0,
            compiler_memory: 0,
            allow_unconfined: false,
            hang: None,
            planned: SystemTime::UNIX_EPOCH,
            warm_up: false,
        });
        let task = Task { started: task.started - minute, ..task };
        assert_eq!(task.left(), Duration::ZERO);
        task.waited(minute / 2);
        assert!(task.left() > minute / 4 && task.left() <= minute / 2);
    }
}
