//! Input and output documents of steps that run in the coordinator. Knows JSON and the store; does not know what the documents mean.

use serde::Serialize;
use serde::de::DeserializeOwned;

use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::{Digest, Severity};
use kforge_types::record::{Note, Verdict};

/// A failure in one line.
pub fn failed(message: impl Into<String>) -> RunError {
    RunError::failed(message)
}

/// The step's parameters.
pub fn params<T: DeserializeOwned>(job: &Job<'_>) -> Result<T, RunError> {
    serde_json::from_value(job.spec.params.clone()).map_err(|e| failed(format!("BUG: parameters of `{}`: {e}", job.id)))
}

/// The bytes of an input; none if it is absent.
pub fn bytes(job: &Job<'_>, name: &str) -> Result<Option<Vec<u8>>, RunError> {
    let Some(digest) = job.spec.inputs.get(name).and_then(|i| i.digest) else { return Ok(None) };
    match job.blobs.get(&digest) {
        Ok(Some(bytes)) => Ok(Some(bytes)),
        Ok(None) => {
            Err(failed(format!("input `{name}` ({digest}) is no longer in the store; build again to recreate it")))
        }
        Err(e) => Err(RunError::io(&format!("cannot read input `{name}`: "), &e)),
    }
}

/// An input as a document; none if it is absent.
pub fn document<T: DeserializeOwned>(job: &Job<'_>, name: &str) -> Result<Option<T>, RunError> {
    let Some(bytes) = bytes(job, name)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| failed(format!("input `{name}` has an unexpected form: {e}")))
}

/// A required input as a document.
pub fn required<T: DeserializeOwned>(job: &Job<'_>, name: &str) -> Result<T, RunError> {
    document(job, name)?.ok_or_else(|| failed(format!("BUG: input `{name}` of `{}` is absent", job.id)))
}

/// The kind of an input and its numbers, from its name: `bench:3:0`.
pub fn numbered(name: &str) -> (&str, Vec<u32>) {
    let mut parts = name.split(':');
    (parts.next().unwrap_or_default(), parts.filter_map(|part| part.parse().ok()).collect())
}

/// Stores a document. The same value gives the same bytes: fields in declared order, maps sorted.
pub fn keep<T: Serialize>(job: &Job<'_>, value: &T) -> Result<Digest, RunError> {
    let bytes = serde_json::to_vec(value).map_err(|e| failed(format!("BUG: cannot write a document: {e}")))?;
    job.blobs.put(&bytes).map_err(|e| RunError::io("", &e))
}

/// A result with one output.
pub fn one<T: Serialize>(job: &Job<'_>, name: &str, value: &T, summary: String) -> Result<Execution, RunError> {
    Ok(Execution { outputs: [(name.to_string(), keep(job, value)?)].into(), summary, ..Execution::default() })
}

/// A result with a verdict.
pub fn judged(ran: Execution, verdict: Verdict) -> Execution {
    Execution { verdict: Some(verdict), ..ran }
}

/// A note.
pub fn note(severity: Severity, code: &str, message: impl Into<String>) -> Note {
    Note::new(severity, code, message)
}
