//! Compares a result of the cache with the one that this machine computed for the same step. Knows results and what verifications see; decides nothing.

use std::collections::BTreeSet;

use kforge_foundation::base::Digest;
use kforge_types::record::observation::{Determinism, Fresh};
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

/// Whether two verifications saw the same, apart from the trials that each drew for itself and what these explain: a candidate may be wrong only on the inputs
/// that one of them drew. How a machine confines candidates is its own.
fn saw_alike(one: &VerifyObservation, other: &VerifyObservation) -> bool {
    let kinds = |seen: &VerifyObservation| -> BTreeSet<FindingKind> { seen.findings.iter().map(|f| f.kind).collect() };
    let has_drawn = |seen: &VerifyObservation| matches!(&seen.fresh, Some(Fresh::Drawn(drawn)) if !drawn.is_empty());
    let (of_one, of_other) = (kinds(one), kinds(other));
    // A verification that fails before its own trials draws none.
    let explained = |seen: &VerifyObservation, more: &BTreeSet<FindingKind>, less: &BTreeSet<FindingKind>| {
        more.is_subset(less) || has_drawn(seen)
    };
    let is_explained = explained(one, &of_one, &of_other) && explained(other, &of_other, &of_one);
    let is_one_wrong = of_one != of_other;
    let asked = |seen: &VerifyObservation| match &seen.fresh {
        Some(Fresh::Drawn(drawn)) => seen.asked.saturating_sub(drawn.len() as u32),
        _ => seen.asked,
    };
    let fixed = |seen: &VerifyObservation| -> Vec<TrialObserved> {
        seen.trials.iter().filter(|trial| seen.fresh_trial(trial.trial).is_none()).cloned().collect()
    };
    let repeats = |seen: &VerifyObservation| matches!(seen.determinism, Determinism::Differs { .. });
    // A difference between runs on inputs that both had shows in those trials as well.
    let is_determined = repeats(one) == repeats(other)
        || (repeats(one) && has_drawn(one))
        || (repeats(other) && has_drawn(other))
        || is_one_wrong;
    let fresh = |seen: &VerifyObservation| match &seen.fresh {
        Some(Fresh::Drawn(drawn)) => Some(Ok(drawn.len())),
        Some(Fresh::LeftOut(_)) => Some(Err(())),
        None => None,
    };
    let how = |seen: &VerifyObservation| {
        let lacks = (seen.not_emulated.is_some(), seen.not_launched.is_some());
        (seen.emulated, lacks, seen.ran_as.clone(), asked(seen))
    };
    is_explained
        && is_determined
        && how(one) == how(other)
        && fixed(one) == fixed(other)
        && (fresh(one) == fresh(other) || is_one_wrong && [one, other].iter().all(|seen| fresh(seen) != Some(Err(()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::Verdict;
    use kforge_types::record::observation::FreshTrial;
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

    #[test]
    fn a_finding_is_explained_only_by_a_trial_that_its_side_drew() {
        let finding = |kind| kforge_types::record::Finding {
            kind,
            message: "m".into(),
            buffer: None,
            space: None,
            index: None,
            line: None,
            other_line: None,
            launch: None,
            block: None,
            thread: None,
            count: 1,
        };
        let (clean, other) = (observation(&[0, 1], 1), observation(&[0, 1], 2));
        let found = VerifyObservation { findings: vec![finding(FindingKind::Race)], ..observation(&[0, 1], 2) };
        assert!(saw_alike(&clean, &found) && saw_alike(&found, &clean), "only the drawn inputs show it");
        let before = VerifyObservation { fresh: None, trials: clean.trials[..2].to_vec(), asked: 1, ..found };
        assert!(!saw_alike(&clean, &before) && !saw_alike(&before, &clean), "the inputs of both show it");
        let left_out = VerifyObservation { fresh: Some(Fresh::LeftOut("x".into())), ..before.clone() };
        assert!(!saw_alike(&clean, &VerifyObservation { findings: vec![], ..left_out }));
        let differs = Determinism::Differs { output: "y".into(), spread: 1.0 };
        let unsteady =
            |seen: &VerifyObservation| VerifyObservation { fresh: None, determinism: differs.clone(), ..seen.clone() };
        let stable = VerifyObservation { fresh: None, ..other.clone() };
        assert!(!saw_alike(&stable, &unsteady(&other)));
    }
}
