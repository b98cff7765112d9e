//! match: does machine code show a method, compared with the variant without it?

use kforge_engine::{Execution, Job, RunError};
use kforge_numerics::measure::signature::matched;
use kforge_types::record::Inspection;
use kforge_types::record::params::MatchParams;

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: MatchParams = io::params(job)?;
    let (on, off): (Inspection, Inspection) = (io::required(job, "on")?, io::required(job, "off")?);
    let absent = params
        .absent
        .as_deref()
        .unwrap_or("neither the manifest nor the registry has a signature for this architecture");
    let found = matched(params.signature.as_ref().ok_or(absent), &on, &off);
    let counts: Vec<String> =
        found.counts.iter().map(|(p, with, without)| format!("{p} {with} times, {without} without it")).collect();
    // A match is not a verdict on a kernel: correct code need not show a method.
    io::one(job, "match", &found, counts.join("; "))
}
