//! attribute: what a method buys.

use crate::engine::{Job, Ran, RunError};
use crate::measure::attribute::attribute;
use crate::record::params::{AttributeParams, Judgement, Matched};
use crate::record::timing::PairsObserved;

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Ran, RunError> {
    let params: AttributeParams = io::params(job)?;
    let matched: Option<Matched> = io::document(job, "match")?;
    let pairs: Option<PairsObserved> = io::document(job, "pairs")?;
    let without: Option<Judgement> = io::document(job, "judgement")?;
    let found = attribute(matched.as_ref(), pairs.as_ref(), without.as_ref().map(|j| &j.verdict), params.threshold);
    let fate =
        serde_json::to_value(found.fate).ok().and_then(|v| v.as_str().map(|s| s.replace('-', " "))).unwrap_or_default();
    let summary = format!("{fate}: {}", found.because);
    io::one(job, "attribution", &found, summary)
}
