//! search: which variants of a space to compile, verify and time next, or that the search is over.

use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::Severity;
use kforge_numerics::measure::search::{WaveResults, walk};
use kforge_types::record::search::{Over, SearchParams, Searched, Tally, Trail};

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: SearchParams = io::params(job)?;
    let space = io::required(job, "space")?;
    let trail: Trail = io::document(job, "trail")?.unwrap_or_default();
    let mut known = WaveResults::default();
    for name in job.spec.inputs.keys() {
        let (kind, numbers) = io::numbered(name);
        match (kind, &numbers[..]) {
            ("space" | "trail", []) => {}
            ("inspection", [v]) => drop(known.inspections.insert(*v, io::document(job, name)?)),
            ("judgement", [v, s]) => drop(known.judgements.insert((*v, *s), io::document(job, name)?)),
            ("few", [v, s]) => drop(known.few.insert((*v, *s), io::document(job, name)?)),
            ("bench", [v, s]) => drop(known.full.insert((*v, *s), io::document(job, name)?)),
            _ => return Err(io::failed(format!("BUG: search does not know input `{name}`"))),
        }
    }
    let (trail, searched) = walk(&params, &space, trail, &known);
    let mut ran = io::one(job, "search", &searched, summary(&searched))?;
    ran.outputs.insert("trail".into(), io::keep(job, &trail)?);
    if searched.tally.over == Some(Over::Unrecorded) {
        let text = "the search ends early: it needs observations that were never made, here or elsewhere; run it on a machine that has the device, or import evidence from one";
        ran.notes.push(io::note(Severity::Note, "search.unrecorded", text));
    }
    Ok(ran)
}

fn summary(searched: &Searched) -> String {
    let Tally { visited, of, over, .. } = &searched.tally;
    let asked = [(&searched.compile, "to compile"), (&searched.sample, "to sample"), (&searched.time, "to time")];
    let mut parts = vec![format!("{visited} of {of} visited")];
    parts
        .extend(asked.iter().filter(|(list, _)| !list.is_empty()).map(|(list, what)| format!("{} {what}", list.len())));
    if !searched.dropped.is_empty() {
        parts.push(format!("{} dropped", searched.dropped.len()));
    }
    parts.extend(over.map(|over| format!("over: {}", over.why())));
    parts.join(", ")
}
