//! judge: a verification under a tolerance.

use crate::base::Severity;
use crate::engine::{Job, Ran, RunError};
use crate::measure::judge::judge;
use crate::record::params::{JudgeParams, Judgement};
use crate::record::{Unknown, Verdict, VerifyObservation};

use super::io;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Ran, RunError> {
    let params: JudgeParams = io::params(job)?;
    let judgement = match io::document::<VerifyObservation>(job, "observation")? {
        Some(observation) => judge(&observation, &params.tolerance),
        None => {
            let why = params.absent.unwrap_or_else(|| Unknown::Missing("verify gave no result".into()));
            Judgement::bare(Verdict::Unknown(why))
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
    if !judgement.unconfined.is_empty() {
        let message = format!("the kernel ran unconfined: {}", judgement.unconfined.join("; "));
        ran.notes.push(io::note(Severity::Warning, "verify.unconfined", &message));
    }
    Ok(io::judged(ran, judgement.verdict))
}
