//! calibrate: can this operator's tolerance tell right from wrong?

use crate::base::Severity;
use crate::engine::{Job, Ran, RunError};
use crate::measure::calibrate::calibrate;
use crate::record::Verdict;
use crate::record::params::{CalibrateParams, NullsObserved};

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Ran, RunError> {
    let params: CalibrateParams = io::params(job)?;
    let nulls: Vec<NullsObserved> =
        (0..params.cases.len()).map(|i| io::required(job, &format!("nulls:{i}"))).collect::<Result<_, _>>()?;
    let calibration = calibrate(&params, &nulls);
    let mut notes = Vec::new();
    for (candidate, cases) in &calibration.weak {
        let which: Vec<&str> =
            cases.iter().filter_map(|c| params.cases.get(*c)).map(|c| c.distribution.as_str()).collect();
        let text = format!(
            "a kernel that gives {candidate} would pass {} of {} trials ({})",
            cases.len(),
            params.cases.len(),
            which.join(", ")
        );
        notes.push(io::note(Severity::Note, "calibrate.weak", text));
    }
    for candidate in &calibration.indecisive {
        let text = format!(
            "indecisive: a kernel that gives {candidate} would pass every shape and distribution\nhelp: tighten the tolerance, or declare shapes and inputs whose outputs differ from that"
        );
        notes.push(io::note(Severity::Error, "calibrate.indecisive", text));
    }
    for output in &params.left_out {
        let text = format!(
            "`{output}` is compared by a function of the package, so that its tolerance is not calibrated: whether it can tell right from wrong is not known"
        );
        notes.push(io::note(Severity::Note, "calibrate.left-out", text));
    }
    let verdict = match calibration.indecisive.first() {
        Some(candidate) => Verdict::Fail(format!("indecisive: `{candidate}` passes everywhere")),
        None => Verdict::Pass,
    };
    let candidates: std::collections::BTreeSet<&String> = nulls.iter().flat_map(|n| n.candidates.keys()).collect();
    let mut ran = io::one(
        job,
        "calibration",
        &calibration,
        format!("{} null candidates over {} trials", candidates.len(), params.cases.len()),
    )?;
    ran.notes = notes;
    Ok(io::judged(ran, verdict))
}
