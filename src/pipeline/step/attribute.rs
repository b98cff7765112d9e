//! attribute: what a method is worth.

use kforge_engine::{Execution, Job, RunError};
use kforge_numerics::measure::attribute::attribute;
use kforge_types::record::params::{AttributeParams, Judgement, Matched, TURNED};
use kforge_types::record::timing::PairsObserved;

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: AttributeParams = io::params(job)?;
    let matched: Option<Matched> = io::document(job, "match")?;
    let mut pairs: Vec<Option<PairsObserved>> = vec![];
    let mut without = vec![];
    for name in job.spec.inputs.keys() {
        match name.split_once(':').map_or(name.as_str(), |(kind, _)| kind) {
            "pairs" => {
                let seen: Option<PairsObserved> = io::document(job, name)?;
                pairs.push(if name.ends_with(TURNED) { seen.map(PairsObserved::turned) } else { seen });
            }
            "judgement" => without.push(io::document::<Judgement>(job, name)?.map(|j| j.verdict)),
            "match" => {}
            _ => return Err(io::failed(format!("BUG: attribute does not know input `{name}`"))),
        }
    }
    let found = attribute(matched.as_ref(), &pairs, &without, &params);
    let summary = format!("{}: {}", found.fate.name(), found.because);
    io::one(job, "attribution", &found, summary)
}
