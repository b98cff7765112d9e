//! judge: a verification under a tolerance.

use std::collections::BTreeMap;

use crate::base::Severity;
use crate::engine::{Job, Ran, RunError};
use crate::measure::judge::judge;
use crate::model::Tolerance;
use crate::record::params::{Calibration, JudgeParams, Judgement};
use crate::record::{Unknown, Verdict, VerifyObservation};

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Ran, RunError> {
    let params: JudgeParams = io::params(job)?;
    let judgement = match io::document::<VerifyObservation>(job, "observation")? {
        Some(observation) => judge(&observation, &tolerance(job, &params)?),
        None => {
            let why = params.absent.unwrap_or_else(|| Unknown::Missing("verify gave no result".into()));
            Judgement { verdict: Verdict::Unknown(why), explanation: String::new(), emulated: false, worst: None }
        }
    };
    let summary = match (&judgement.verdict, judgement.worst) {
        (Verdict::Pass, Some(worst)) => format!("worst error is {:.2} of what is allowed", worst),
        _ => String::new(),
    };
    let mut ran = io::one(job, "judgement", &judgement, summary)?;
    if !judgement.explanation.is_empty() {
        let severity = if judgement.verdict == Verdict::Pass { Severity::Note } else { Severity::Error };
        ran.notes.push(io::note(severity, "verify.judged", judgement.explanation.trim_end()));
    }
    Ok(io::judged(ran, judgement.verdict))
}

/// The tolerance of each output: the declared one, or what calibration derived.
fn tolerance(job: &Job<'_>, params: &JudgeParams) -> Result<BTreeMap<String, Tolerance>, RunError> {
    if let Some(declared) = &params.tolerance {
        return Ok(declared.clone());
    }
    let calibration: Calibration = io::required(job, "calibration")?;
    calibration.tolerance.get(params.case).cloned().ok_or_else(|| io::failed("BUG: the calibration lacks this case"))
}
