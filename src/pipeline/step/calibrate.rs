//! calibrate: can this operator's tolerance tell correct from wrong?

use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::{Severity, count};
use kforge_numerics::measure::calibrate::calibrate;
use kforge_types::model::Tolerance;
use kforge_types::record::Verdict;
use kforge_types::record::params::{CalibrateParams, NullsObserved};

use super::io;

/// The tolerances that were derived for `tolerance = "auto"`, one line for each length of sums.
fn derived(params: &CalibrateParams) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for (terms, tolerance) in params.cases.iter().filter_map(|case| Some((case.derived?, &case.tolerance))) {
        let stated = tolerance.iter().filter(|(_, t)| **t != Tolerance::default());
        let parts: Vec<String> =
            stated.map(|(output, t)| format!("`{output}` atol = rtol = {:.2e}, ulp = {}", t.atol, t.ulp)).collect();
        let line = format!("tolerance derived for sums of up to {terms} terms: {}", parts.join("; "));
        if !parts.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: CalibrateParams = io::params(job)?;
    let nulls: Vec<NullsObserved> =
        (0..params.cases.len()).map(|i| io::required(job, &format!("nulls:{i}"))).collect::<Result<_, _>>()?;
    let calibration = calibrate(&params, &nulls);
    let mut notes = Vec::new();
    for (candidate, cases) in &calibration.weak {
        let which: Vec<&str> =
            cases.iter().filter_map(|c| params.cases.get(*c)).map(|c| c.distribution.as_str()).collect();
        let text = format!(
            "a kernel that gives {candidate} would pass {} of {} ({})",
            cases.len(),
            count(params.cases.len(), "trial"),
            which.join(", ")
        );
        notes.push(io::note(Severity::Note, "calibrate.weak", text));
    }
    for candidate in &calibration.indecisive {
        let text = format!(
            "indecisive: a kernel that gives {candidate} would pass every shape and distribution\nhelp: tighten the tolerance, or declare shapes and inputs whose outputs differ from it"
        );
        notes.push(io::note(Severity::Error, "calibrate.indecisive", text));
    }
    for text in derived(&params) {
        notes.push(io::note(Severity::Note, "calibrate.derived", text));
    }
    let verdict = match (calibration.indecisive.first(), params.absent) {
        (Some(candidate), _) => Verdict::Fail(format!("indecisive: `{candidate}` passes everywhere")),
        // Nothing was compared, so it is unknown whether the tolerance can tell correct from wrong.
        (None, Some(why)) => Verdict::Unknown(why),
        (None, None) => Verdict::Pass,
    };
    let candidates: std::collections::BTreeSet<&String> = nulls.iter().flat_map(|n| n.candidates.keys()).collect();
    let mut ran = io::one(
        job,
        "calibration",
        &calibration,
        format!("{} over {}", count(candidates.len(), "null candidate"), count(params.cases.len(), "trial")),
    )?;
    ran.notes = notes;
    Ok(io::judged(ran, verdict))
}
