//! judge: from the observation of a verification and a tolerance to a verdict.

use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::Severity;
use kforge_numerics::measure::confirm::{called_again, confirmed};
use kforge_numerics::measure::judge::judge;
use kforge_numerics::measure::own_share::under;
use kforge_numerics::measure::tolerate::tolerated;
use kforge_types::record::kind::calls::documents::CallsObserved;
use kforge_types::record::params::{Indecision, JudgeParams, Judgement};
use kforge_types::record::{Unknown, Verdict, VerifyObservation};

use super::io;

/// The note for a correct kernel in which some threads never reach a barrier.
const DOUBTFUL: &str = "\nfrom compute capability 7.0 on, the barrier waits only for the other threads; this is a mistake if the threads that left had to write what the others read";

/// The code of a note on the tolerance under which a kernel would have passed. The note is not part of the judgement, which authors of kernels read.
pub const TOLERATED: &str = "verify.tolerated";

/// The code of the note that explains a judgement.
pub const JUDGED: &str = "verify.judged";

/// The code of the note that explains a failure for which only values are known to be wrong. [`JUDGED`] stands for a failure with a finding, which explains wrong
/// values.
pub const VALUES: &str = "verify.values";

/// The verdict, if the operator's tolerance can tell correct from wrong. Where it cannot, or nothing is known about it, a failure is still a failure, and a pass
/// means nothing.
pub(super) fn decided(verdict: Verdict, calibration: Option<Indecision>) -> Verdict {
    match (verdict, calibration) {
        (Verdict::Pass, None) => Verdict::Unknown(Unknown::Missing(
            "calibrate gave no result, so it is unknown whether a pass means anything".into(),
        )),
        (Verdict::Pass, Some(Indecision { why: Some(why) })) => Verdict::Unknown(Unknown::Indecisive(why)),
        (verdict, _) => verdict,
    }
}

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: JudgeParams = io::params(job)?;
    let (mut doubtful, mut would, mut refused, mut code) = (false, vec![], None, JUDGED);
    let called: Option<CallsObserved> = io::document(job, "called")?;
    let untimed = called.as_ref().and_then(|called| called.untimed.clone());
    let launched = called.as_ref().and_then(|called| called.launched.clone());
    let is_called = called.is_some();
    let observed = match called {
        Some(called) => Some(called.compared),
        None => io::document::<VerifyObservation>(job, "observation")?,
    };
    let judgement = match observed {
        Some(observation) if untimed.is_some() && observation.findings.is_empty() => {
            let why = untimed.unwrap_or_default();
            Judgement::bare(Verdict::Unknown(Unknown::Missing(format!("its calls were not timed: {why}"))))
        }
        Some(observation) => {
            doubtful = observation.findings.iter().any(|f| f.kind.is_allowed() && !f.kind.only_explains());
            let first = observation.findings.iter().filter(|f| !f.kind.is_allowed()).min_by_key(|f| f.kind);
            let mut judgement = judge(&observation, &params.tolerance);
            judgement.verdict = decided(judgement.verdict, io::document(job, "calibration")?);
            if first.is_none() && matches!(judgement.verdict, Verdict::Fail(_)) {
                code = VALUES;
            }
            refused = first.and_then(|finding| finding.launch.clone());
            would = tolerated(&observation, &params.tolerance);
            judgement.known_inputs.clone_from(&params.known_inputs);
            judgement
        }
        None => {
            let why = params.absent.unwrap_or_else(|| Unknown::Missing("verify gave no result".into()));
            Judgement::bare(Verdict::Unknown(why))
        }
    };
    let judgement = match params.confirms {
        true if is_called => match &params.policy {
            Some(policy) => under(policy, launched.as_ref(), called_again(judgement)),
            None => called_again(judgement),
        },
        true => confirmed(judgement, io::document(job, "timed")?.as_ref(), &params.tolerance),
        false => judgement,
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
        ran.notes.push(io::note(severity, code, text).about(refused));
    }
    ran.notes.extend(would.into_iter().map(|text| io::note(Severity::Note, TOLERATED, text)));
    if !judgement.unconfined.is_empty() {
        let message = format!("the kernel ran unconfined: {}", judgement.unconfined.join("; "));
        ran.notes.push(io::note(Severity::Warning, "verify.unconfined", &message));
    }
    Ok(io::judged(ran, judgement.verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_tolerance_cannot_decide_a_pass_is_unknown_and_a_failure_is_one() {
        let of = |verdict: Verdict, why: Option<Option<&str>>| {
            decided(verdict, why.map(|why| Indecision { why: why.map(String::from) }))
        };
        let (fail, absent) = (Verdict::Fail("wrong".into()), Verdict::Unknown(Unknown::NoDevice("none".into())));
        assert_eq!(of(Verdict::Pass, Some(None)), Verdict::Pass);
        assert_eq!(of(Verdict::Pass, Some(Some("zeros"))), Verdict::Unknown(Unknown::Indecisive("zeros".into())));
        assert!(matches!(of(Verdict::Pass, None), Verdict::Unknown(Unknown::Missing(_))));
        for known in [fail, absent] {
            for why in [None, Some(None), Some(Some("zeros"))] {
                assert_eq!(of(known.clone(), why), known);
            }
        }
    }
}
