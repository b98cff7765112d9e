//! roofline: how far a champion is from the peaks of its device.

use std::collections::BTreeMap;

use kforge_engine::{Execution, Job, RunError};
use kforge_numerics::measure::roofline::roofline;
use kforge_types::record::peaks::PeaksObserved;
use kforge_types::record::profile::RooflineParams;

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: RooflineParams = io::params(job)?;
    let (mut bench, mut profiles) = (BTreeMap::new(), BTreeMap::new());
    let measured: Option<PeaksObserved> = io::document(job, "peaks")?;
    for name in job.spec.inputs.keys().filter(|name| *name != "peaks") {
        let parts = name.split_once(':').and_then(|(kind, at)| Some((kind, at.parse::<u32>().ok()?)));
        match parts {
            Some(("bench", at)) => drop(io::document(job, name)?.map(|d| bench.insert(at, d))),
            Some(("profile", at)) => drop(io::document(job, name)?.map(|d| profiles.insert(at, d))),
            _ => return Err(io::failed(format!("BUG: roofline does not know input `{name}`"))),
        }
    }
    let found = roofline(&params, &bench, &profiles, measured.as_ref());
    // The distance from a peak is not a verdict on a kernel.
    let summary = found.summary();
    io::one(job, "roofline", &found, summary)
}
