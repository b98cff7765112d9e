//! Compares a result of the cache with the one that this machine computed for the same step. Knows results and what verifications see; decides nothing.

use std::collections::BTreeSet;

use kforge_foundation::base::Digest;
use kforge_types::record::{FindingKind, StepKind, StepResult, TrialObserved, VerifyObservation};

/// In what two results of one key differ; none if they are alike. `read` reads an output.
pub(crate) fn differing(
    kind: StepKind,
    theirs: &StepResult,
    ours: &StepResult,
    read: &dyn Fn(&Digest) -> Option<Vec<u8>>,
) -> Option<String> {
    if theirs.verdict != ours.verdict {
        return Some("the verdict".into());
    }
    let observed = |digest: &Digest| -> Option<VerifyObservation> { serde_json::from_slice(&read(digest)?).ok() };
    let names: BTreeSet<&String> = theirs.outputs.keys().chain(ours.outputs.keys()).collect();
    let differs = |name: &&&String| match (theirs.outputs.get(**name), ours.outputs.get(**name)) {
        (theirs, ours) if theirs == ours => false,
        (Some(theirs), Some(ours)) if kind == StepKind::Verify => match (observed(theirs), observed(ours)) {
            (Some(theirs), Some(ours)) => !saw_alike(&theirs, &ours),
            _ => true,
        },
        _ => true,
    };
    names.iter().find(differs).map(|name| format!("`{name}`"))
}

/// Whether two verifications saw the same, apart from the trials that each drew for itself.
fn saw_alike(one: &VerifyObservation, other: &VerifyObservation) -> bool {
    let kinds = |seen: &VerifyObservation| -> BTreeSet<FindingKind> { seen.findings.iter().map(|f| f.kind).collect() };
    let fixed = |seen: &VerifyObservation| -> Vec<TrialObserved> {
        seen.trials.iter().filter(|trial| seen.fresh_trial(trial.trial).is_none()).cloned().collect()
    };
    let how = |seen: &VerifyObservation| (seen.emulated, seen.not_emulated.is_some(), seen.ran_as.clone());
    how(one) == how(other) && kinds(one) == kinds(other) && fixed(one) == fixed(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::Verdict;
    use kforge_types::record::observation::{Fresh, FreshTrial};
    use std::collections::HashMap;

    fn trial(trial: u32) -> TrialObserved {
        TrialObserved { trial, distribution: "normal".into(), outputs: vec![] }
    }

    fn observation(numbers: &[u32], seed: u64) -> VerifyObservation {
        let drawn = FreshTrial { trial: 9, seed, distribution: "normal".into() };
        let distribution = format!("normal {seed}");
        let trials = numbers.iter().map(|number| trial(*number)).chain([TrialObserved { distribution, ..trial(9) }]);
        VerifyObservation {
            trials: trials.collect(),
            fresh: Some(Fresh::Drawn(vec![drawn])),
            ..VerifyObservation::begun(true, 2, "check".into())
        }
    }

    #[test]
    fn what_each_drew_may_differ_and_nothing_else() {
        let mut store: HashMap<Digest, Vec<u8>> = HashMap::new();
        let mut result = |seen: &VerifyObservation| {
            let bytes = serde_json::to_vec(seen).unwrap();
            let digest = Digest::of(&bytes);
            store.insert(digest, bytes);
            let outputs = [("observation".to_string(), digest)].into();
            StepResult { outputs, verdict: None, notes: vec![], summary: String::new(), duration_ms: 0 }
        };
        let (one, other) = (result(&observation(&[0, 1], 1)), result(&observation(&[0, 1], 2)));
        let fewer = result(&observation(&[0], 1));
        let native = result(&VerifyObservation { emulated: false, ..observation(&[0, 1], 1) });
        let compared = |kind, theirs: &StepResult| differing(kind, theirs, &one, &|digest| store.get(digest).cloned());
        let different = Some("`observation`".to_string());
        assert_eq!(compared(StepKind::Verify, &other), None);
        assert_eq!(compared(StepKind::Inspect, &other), different, "only verifications draw");
        assert_eq!(
            (compared(StepKind::Verify, &fewer), compared(StepKind::Verify, &native)),
            (different.clone(), different)
        );
        let failed = StepResult { verdict: Some(Verdict::Fail("x".into())), ..one.clone() };
        assert_eq!(compared(StepKind::Verify, &failed), Some("the verdict".into()));
    }
}
