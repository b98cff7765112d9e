//! judge: a verification under a tolerance.

use crate::base::Severity;
use crate::engine::{Job, Ran, RunError};
use crate::measure::judge::judge;
use crate::record::params::{JudgeParams, Judgement};
use crate::record::{Unknown, Verdict, VerifyObservation};

use super::io;

/// What is said of a kernel that is right though threads of it never come to a barrier.
const DOUBTFUL: &str = "\nthe barrier waits for the others alone, from compute capability 7.0 on; a mistake where those that left had to write what the others read";

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Ran, RunError> {
    let params: JudgeParams = io::params(job)?;
    let mut doubtful = false;
    let judgement = match io::document::<VerifyObservation>(job, "observation")? {
        Some(observation) => {
            doubtful = observation.findings.iter().any(|finding| finding.kind.is_allowed());
            judge(&observation, &params.tolerance)
        }
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
        let (severity, about) = match judgement.verdict {
            Verdict::Pass if doubtful => (Severity::Warning, DOUBTFUL),
            Verdict::Pass => (Severity::Note, ""),
            _ => (Severity::Error, ""),
        };
        let text = format!("{}{about}", judgement.explanation.trim_end());
        ran.notes.push(io::note(severity, "verify.judged", text));
    }
    if !judgement.unconfined.is_empty() {
        let message = format!("the kernel ran unconfined: {}", judgement.unconfined.join("; "));
        ran.notes.push(io::note(Severity::Warning, "verify.unconfined", &message));
    }
    Ok(io::judged(ran, judgement.verdict))
}
