//! match: does machine code show a method, compared with the variant without it?

use kforge_engine::{Execution, Job, RunError};
use kforge_numerics::measure::signature::matched;
use kforge_types::record::Inspection;
use kforge_types::record::params::{MatchParams, Matched, Shown};

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: MatchParams = io::params(job)?;
    let absent = params
        .absent
        .as_deref()
        .unwrap_or("neither the manifest nor the registry has a signature for this architecture");
    let mut found: Option<Matched> = None;
    for at in 0.. {
        let [on, off] = MatchParams::inputs(at);
        if at > 0 && job.spec.inputs.get(&on).is_none_or(|input| input.digest.is_none()) {
            break;
        }
        let (on, off): (Inspection, Inspection) = (io::required(job, &on)?, io::required(job, &off)?);
        let of_this = matched(params.signature.as_ref().ok_or(absent), &on, &off);
        // A method is shown if every binary shows it.
        found = match found {
            Some(before) if before.shown != Shown::Shown => Some(before),
            _ => Some(of_this),
        };
    }
    let found = found.unwrap_or(Matched { shown: Shown::Unknown("there is no binary".into()), counts: vec![] });
    let counts: Vec<String> =
        found.counts.iter().map(|(p, with, without)| format!("{p} {with} times, {without} without it")).collect();
    // A match is not a verdict on a kernel: correct code need not show a method.
    io::one(job, "match", &found, counts.join("; "))
}
