//! round: what the next candidates of a kernel will try.

use std::collections::BTreeMap;

use crate::optimize::round::decide;
use kforge_engine::{Execution, Job, RunError};
use kforge_types::record::profile::Roofline;
use kforge_types::record::round::{Decision, RoundParams};

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: RoundParams = io::params(job)?;
    let roofline: Option<Roofline> = io::document(job, "roofline")?;
    let before: Option<Decision> = io::document(job, "before")?;
    let mut attributions = BTreeMap::new();
    for name in job.spec.inputs.keys() {
        match name.split_once(':') {
            Some(("attribution", id)) => drop(io::document(job, name)?.map(|d| attributions.insert(id.to_string(), d))),
            None if matches!(name.as_str(), "roofline" | "before") => {}
            _ => return Err(io::failed(format!("BUG: round does not know input `{name}`"))),
        }
    }
    let decision = decide(&params, roofline.as_ref(), &attributions, before.as_ref());
    let summary = match &decision.stop {
        Some(why) => format!("stop: {why}"),
        None => decision.methods.iter().map(|m| m.id.as_str()).collect::<Vec<_>>().join(", "),
    };
    io::one(job, "decision", &decision, summary)
}
