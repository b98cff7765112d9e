//! Judgements of observations under tolerances: which pass, what a failure says, what stays unknown.

use super::*;
use crate::measure::compare::{Comparison, rms};
use crate::measure::testing::observed;
use kforge_types::record::params::OutputDiagnosis;
use kforge_types::record::{Diagnosis, FindingKind, Fit, Fresh, TrialObserved, WrongPattern};

fn observation(got: &[f64], want: &[f64]) -> VerifyObservation {
    let mut c = Comparison::new("y", DType::F16, &[want.len() as u64], rms(want), None);
    c.floats(0, got, want, None);
    observed(c)
}

fn with(tolerance: Tolerance) -> BTreeMap<String, Tolerance> {
    [("y".to_string(), tolerance)].into()
}

#[test]
fn the_tolerance_decides_and_nothing_else() {
    let seen = observation(&[1.0, 2.01], &[1.0, 2.0]);
    let verdict = |t| judge(&seen, &with(t)).verdict;
    assert!(matches!(verdict(Tolerance { atol: 0.009, ..Tolerance::default() }), Verdict::Fail(_)));
    assert_eq!(verdict(Tolerance { atol: 0.011, ..Tolerance::default() }), Verdict::Pass);
    assert_eq!(verdict(Tolerance { rtol: 0.0051, ..Tolerance::default() }), Verdict::Pass);
    // One ulp of f16 at 2 is 2^-9.
    assert_eq!(verdict(Tolerance { ulp: 6.0, ..Tolerance::default() }), Verdict::Pass);
    assert!(matches!(verdict(Tolerance { ulp: 5.0, ..Tolerance::default() }), Verdict::Fail(_)));
}

#[test]
fn an_error_beyond_the_largest_number_exceeds_every_tolerance() {
    let of = |error| excess(&Tolerance { rtol: 1.5, ..Tolerance::default() }, DType::F64, error, 1.7e308, None);
    assert_eq!((of(f64::MAX), of(1.6e308)), (f64::INFINITY, 0.0));
    let none = |error| excess(&Tolerance::default(), DType::F64, error, 1.0, None);
    assert_eq!((none(0.0), none(5e-324)), (0.0, f64::INFINITY));
    // Neighbors whose quotient rounds to one are still distinguished.
    let atol = 5e-324;
    let of = |error| excess(&Tolerance { atol, ..Tolerance::default() }, DType::F64, error, 0.0, None);
    assert_eq!((of(atol), of(2.0 * atol)), (1.0, 2.0));
    let (below, above) = (1.0 - f64::EPSILON / 2.0, 1.0);
    assert!(excess(&Tolerance { atol: below, ..Tolerance::default() }, DType::F64, above, 0.0, None) > 1.0);
}

#[test]
fn a_failure_names_output_index_got_and_want() {
    let judged = judge(&observation(&[1.0, 7.0], &[1.0, 2.0]), &with(Tolerance::default()));
    assert_eq!(judged.verdict, Verdict::Fail("`y` is wrong at 1: got 7, want 2".into()));
    assert!(
        judged.explanation.contains("\n  1 of 2 elements is far off (by more than 1 % of "),
        "{}",
        judged.explanation
    );
    assert!(judged.explanation.contains("), at 1: got 7, want 2\n"), "{}", judged.explanation);
    let judged = judge(&observation(&[5.0, 7.0], &[1.0, 2.0]), &with(Tolerance::default()));
    let several = "root mean square), the first at 0: got 5, want 1\n";
    assert!(judged.explanation.contains(several), "{}", judged.explanation);
}

#[test]
fn a_fresh_trial_is_judged_like_others_and_shows_only_where_it_fails() {
    let fresh = |got: &[f64], want: &[f64]| {
        let mut seen = observation(&[1.0, 2.0], &[1.0, 2.0]);
        let drawn = TrialObserved { trial: 1, distribution: "tiny".into(), ..observation(got, want).trials.remove(0) };
        seen.trials.push(drawn);
        seen.asked = 2;
        let trial = FreshTrial { trial: 1, seed: 1 << 62, distribution: "tiny".into() };
        seen.fresh = Some(Fresh::Drawn(vec![trial]));
        seen
    };
    let loose = with(Tolerance { atol: 0.1, ..Tolerance::default() });
    let judged = judge(&fresh(&[1.09, 2.0], &[1.0, 2.0]), &loose);
    assert_eq!((&judged.verdict, judged.worst, &judged.no_fresh), (&Verdict::Pass, Some(0.0), &None));
    assert_eq!(judged, judge(&fresh(&[1.0, 2.0], &[1.0, 2.0]), &loose), "whatever was drawn");
    let judged = judge(&fresh(&[1.2, 2.0], &[1.0, 2.0]), &loose);
    let Verdict::Fail(why) = &judged.verdict else { panic!("{judged:?}") };
    assert!(why.starts_with("`y` is wrong at 0: got 1.2, want 1"), "{why}");
    assert!(judged.worst.unwrap() > 1.0);
    assert!(judged.explanation.contains("`y`, trial 1 (tiny): "), "{}", judged.explanation);
    assert!(judged.explanation.contains("`seeds = [4611686018427387904]`"), "{}", judged.explanation);
    // A fresh trial that was drawn and not compared is missing like any other.
    let mut lost = fresh(&[1.0, 2.0], &[1.0, 2.0]);
    lost.trials.pop();
    let missing = Unknown::Missing("only 1 of 2 trials were compared".into());
    assert_eq!(judge(&lost, &loose).verdict, Verdict::Unknown(missing));
}

#[test]
fn a_pass_without_a_fresh_trial_says_why() {
    let told = |fresh: Option<Fresh>, got: f64| {
        let seen = VerifyObservation { fresh, ..observation(&[got, 2.0], &[1.0, 2.0]) };
        judge(&seen, &with(Tolerance::default())).no_fresh
    };
    assert_eq!(told(Some(Fresh::LeftOut("no Python".into())), 1.0), Some("no Python".into()));
    assert_eq!(told(None, 1.0), Some("the kforge that observed it ran none".into()));
    assert_eq!(told(None, 7.0), None, "a failure needs none");
    // Observations from before there were fresh trials can be read, and judgements that have one do not mention it.
    let seen = serde_json::to_value(observation(&[1.0, 2.0], &[1.0, 2.0])).unwrap();
    assert!(seen.get("fresh").is_none());
    assert_eq!(serde_json::from_value::<VerifyObservation>(seen).unwrap().fresh, None);
    let judged = serde_json::to_value(Judgement::bare(Verdict::Pass)).unwrap();
    assert!(judged.get("no_fresh").is_none());
}

#[test]
fn what_is_wrong_and_what_is_far_off_are_told_in_the_same_words_in_every_trial() {
    let said = |got: &[f64]| judge(&observation(got, &[1.0, 2.0, 4.0]), &with(Tolerance::default()));
    // One element is slightly wrong, another is far off: the failure reports the first that is far off.
    let judged = said(&[1.001, 2.0, 8.0]);
    assert_eq!(judged.verdict, Verdict::Fail("`y` is wrong at 2: got 8, want 4".into()));
    assert!(judged.explanation.contains(": the worst is at "), "{}", judged.explanation);
    assert!(judged.explanation.contains("1 of 3 elements is far off"), "{}", judged.explanation);
    // None is far off: the failure reports the worst, in the same words.
    let judged = said(&[1.001, 2.0, 4.0]);
    let Verdict::Fail(why) = &judged.verdict else { panic!("{judged:?}") };
    assert!(why.starts_with("`y` is wrong at 0: got 1.001") && why.contains(", want 1, error "), "{why}");
    assert!(judged.explanation.contains(": the worst is at 0: "), "{}", judged.explanation);
    assert!(!judged.explanation.contains("far off"), "{}", judged.explanation);
    // For integers, every difference counts, once.
    let mut exact = Comparison::new("y", DType::I32, &[3], 0.0, None);
    exact.ints(0, &[1, 2, 5], &[1, 2, 4]);
    let trial = TrialObserved { trial: 0, distribution: "uniform".into(), outputs: vec![exact.finish()] };
    let seen = VerifyObservation { trials: vec![trial], ..VerifyObservation::begun(true, 1, "check".into()) };
    let judged = judge(&seen, &with(Tolerance::default()));
    assert_eq!(judged.verdict, Verdict::Fail("`y` is wrong at 2: got 5, want 4".into()));
    assert_eq!(judged.explanation.matches("got 5, want 4").count(), 1, "{}", judged.explanation);
}

#[test]
fn elements_are_told_by_coordinates_where_there_are_two_axes_or_more() {
    let shape = [2, 3, 4];
    let mut want = vec![1.0; 24];
    want[23] = 2.0;
    let got = |at: usize, value: f64| (0..24).map(|i| if i == at { value } else { want[i] }).collect::<Vec<_>>();
    let seen = |at, value| {
        let mut c = Comparison::new("y", DType::F16, &shape, rms(&want), None);
        c.floats(0, &got(at, value), &want, None);
        c.finish()
    };
    let of = |output: &OutputObserved, tolerance: &Tolerance| judge_output(output, tolerance).reasons.join(" ");
    let gross = seen(18, 7.0);
    assert_eq!(gross.gross.as_ref().unwrap().first.index, 18, "what is recorded is a number");
    let judged = judge(
        &VerifyObservation {
            trials: vec![TrialObserved { trial: 0, distribution: "uniform".into(), outputs: vec![gross.clone()] }],
            ..VerifyObservation::begun(true, 1, "check".into())
        },
        &with(Tolerance::default()),
    );
    assert_eq!(judged.verdict, Verdict::Fail("`y` is wrong at [1, 1, 2]: got 7, want 1".into()));
    assert!(judged.explanation.contains("root mean square), at [1, 1, 2]: got 7"), "{}", judged.explanation);
    assert!(of(&gross, &Tolerance::default()).starts_with("the worst is at [1, 1, 2]: got 7, want 1, error"));
    let capped = Tolerance { matched: 0.5, max_error: Some(1.0), ..Tolerance::default() };
    assert!(
        of(&OutputObserved { beyond: Some(1), ..gross.clone() }, &capped)
            .starts_with("the worst is at [1, 1, 2]: got 7")
    );
    let class = of(&seen(23, f64::NAN), &Tolerance::default());
    assert!(class.ends_with("; first at [1, 2, 3]: got NaN, want 2"), "{class}");
    let mut exact = Comparison::new("y", DType::I32, &shape, 0.0, None);
    exact.ints(0, &(1..25).collect::<Vec<i64>>(), &(0..24).map(|i| i + i64::from(i != 4)).collect::<Vec<i64>>());
    assert_eq!(
        of(&exact.finish(), &Tolerance::default()),
        "1 of 24 elements differs; first at [0, 1, 0]: got 5, want 4"
    );
    let mut said = Comparison::new("y", DType::F16, &shape, 1.0, None);
    let checked = CheckObserved { by: "ref.py::check".into(), rejected: 1, whole: false, message: None };
    said.checked(checked, 24, |i| i != 7, |i| (i.to_string(), "0".into()));
    let word = of(&said.finish(), &Tolerance::default());
    assert_eq!(word, "`ref.py::check` rejects 1 of 24 elements (the first at [0, 1, 3]: got 7, want 0)");
    // Observations from before shapes were recorded have numbers.
    let before = OutputObserved { shape: vec![], ..gross };
    assert!(of(&before, &Tolerance::default()).starts_with("the worst is at 18: got 7"));
}

#[test]
fn one_element_differs_and_two_differ() {
    let of = |got: &[i64], want: &[i64]| {
        let mut c = Comparison::new("i", DType::I32, &[want.len() as u64], 0.0, None);
        c.ints(0, got, want);
        judge_output(&c.finish(), &Tolerance::default()).reasons.join(" ")
    };
    assert_eq!(of(&[1, 7], &[1, 2]), "1 of 2 elements differs; first at 1: got 7, want 2");
    assert_eq!(of(&[3, 7], &[1, 2]), "2 of 2 elements differ; first at 0: got 3, want 1");
    let nan = |got: &[f64], nonfinite| {
        let seen = observation(got, &[1.0, 1.0]);
        let tolerance = Tolerance { nonfinite, ..Tolerance::default() };
        judge_output(&seen.trials[0].outputs[0], &tolerance).reasons.join(" ")
    };
    let one = [1.0, f64::NAN];
    assert!(nan(&one, Nonfinite::Same).starts_with("1 of 2 elements differs in being finite"));
    assert!(nan(&one, Nonfinite::Forbid).starts_with("1 of 2 elements is not finite, or only one side is finite"));
    assert!(nan(&[f64::NAN; 2], Nonfinite::Same).starts_with("2 of 2 elements differ in being finite"));
    assert!(nan(&[f64::NAN; 2], Nonfinite::Forbid).starts_with("2 of 2 elements are not finite, or only one"));
}

#[test]
fn a_finding_fails_even_where_outputs_are_right() {
    let mut seen = observation(&[1.0], &[1.0]);
    seen.findings.push(Finding::new(FindingKind::Race, "race on `s`"));
    assert_eq!(judge(&seen, &with(Tolerance::default())).verdict, Verdict::Fail("race on `s`".into()));
}

#[test]
fn what_is_not_emulated_is_unknown_unless_something_is_wrong() {
    let mut seen = observation(&[1.0], &[1.0]);
    seen.not_emulated = Some("mma.sync at line 41".into());
    assert!(matches!(judge(&seen, &with(Tolerance::default())).verdict, Verdict::Unknown(Unknown::NotEmulated(_))));
    seen.findings.push(Finding::new(FindingKind::Crash, "crashed"));
    assert!(matches!(judge(&seen, &with(Tolerance::default())).verdict, Verdict::Fail(_)));
}

#[test]
fn a_wrong_output_fails_whatever_is_said_not_to_be_emulated() {
    let mut seen = observation(&[3.0], &[1.0]);
    seen.not_emulated = Some("everything".into());
    assert!(matches!(judge(&seen, &with(Tolerance::default())).verdict, Verdict::Fail(_)));
}

#[test]
fn fewer_trials_than_asked_pass_nothing_and_hide_no_failure() {
    let judged = |got: f64, asked| {
        let mut seen = observation(&[got], &[1.0]);
        // Another order of the same trial does not count as another trial.
        seen.trials.push(seen.trials[0].clone());
        seen.asked = asked;
        judge(&seen, &with(Tolerance::default())).verdict
    };
    assert_eq!(judged(1.0, 1), Verdict::Pass);
    assert_eq!(judged(1.0, 0), Verdict::Pass);
    let why = "only 1 of 2 trials were compared".to_string();
    assert_eq!(judged(1.0, 2), Verdict::Unknown(Unknown::Missing(why)));
    assert!(matches!(judged(3.0, 2), Verdict::Fail(_)));
}

#[test]
fn threads_that_left_before_a_barrier_are_shown_and_no_failure() {
    let mut seen = observation(&[1.0], &[1.0]);
    seen.findings = vec![Finding::new(FindingKind::ExitedBeforeBarrier, "3 threads left")];
    let judged = judge(&seen, &with(Tolerance::default()));
    assert_eq!((judged.verdict, judged.explanation.trim()), (Verdict::Pass, "3 threads left"));
}

#[test]
fn an_absent_lane_is_shown_only_beside_a_failure() {
    let mut seen = observation(&[1.0], &[1.0]);
    seen.findings = vec![Finding::new(FindingKind::AbsentLane, "lane 0 reads lane 16")];
    let judged = judge(&seen, &with(Tolerance::default()));
    assert_eq!((judged.verdict, judged.explanation.as_str()), (Verdict::Pass, ""));
    let mut wrong = observation(&[2.0], &[1.0]);
    wrong.findings = seen.findings;
    let judged = judge(&wrong, &with(Tolerance::default()));
    assert!(
        matches!(&judged.verdict, Verdict::Fail(why) if why.starts_with("`y` is wrong at")),
        "{:?}",
        judged.verdict
    );
    assert!(judged.explanation.starts_with("lane 0 reads lane 16\n`y`"), "{}", judged.explanation);
}

#[test]
fn a_race_is_named_before_what_it_leads_to() {
    let mut seen = observation(&[1.0], &[1.0]);
    seen.findings =
        vec![Finding::new(FindingKind::Uninitialised, "read early"), Finding::new(FindingKind::Race, "race on `s`")];
    assert_eq!(judge(&seen, &with(Tolerance::default())).verdict, Verdict::Fail("race on `s`".into()));
    // The access out of bounds may hit memory that another thread writes.
    seen.findings.push(Finding::new(FindingKind::OutOfBounds, "outside `x`"));
    let judged = judge(&seen, &with(Tolerance::default()));
    assert_eq!(judged.verdict, Verdict::Fail("outside `x`".into()));
    assert!(judged.explanation.starts_with("outside `x`\nrace on `s`\nread early\n"), "{}", judged.explanation);
}

#[test]
fn nothing_compared_is_unknown() {
    let mut seen = observation(&[1.0], &[1.0]);
    seen.trials.clear();
    assert!(matches!(judge(&seen, &with(Tolerance::default())).verdict, Verdict::Unknown(_)));
}

#[test]
fn the_word_of_a_check_decides_whatever_the_tolerance_and_is_shown() {
    let said = |rejected: &[u64], whole: bool, message: Option<&str>| {
        let mut c = Comparison::new("y", DType::F16, &[8], 1.0, None);
        let rejected_count = if whole { 8 * rejected.len() as u64 } else { rejected.len() as u64 };
        let by = "ref.py::check".to_string();
        let checked = CheckObserved { by, rejected: rejected_count, whole, message: message.map(str::to_string) };
        c.checked(checked, 8, |i| !rejected.contains(&i), |i| (i.to_string(), "0".to_string()));
        let mut seen = observation(&[1.0], &[1.0]);
        seen.trials[0].outputs = vec![c.finish()];
        judge(&seen, &with(Tolerance { atol: 100.0, matched: 0.5, ..Tolerance::default() }))
    };
    let accepted = said(&[], false, None);
    assert_eq!((accepted.verdict, accepted.worst), (Verdict::Pass, Some(0.0)));
    let some = said(&[6, 7], false, Some("too large"));
    let why = "`y`: `ref.py::check` rejects 2 of 8 elements (the first at 6: got 6, want 0): too large";
    assert_eq!(some.verdict, Verdict::Fail(why.into()));
    assert!(some.explanation.contains("they are the last 2 of 8 elements"), "{}", some.explanation);
    assert!(!some.explanation.contains("relative errors"), "{}", some.explanation);
    let all = said(&[0], true, None);
    assert_eq!(all.verdict, Verdict::Fail("`y`: `ref.py::check` rejects it as a whole".into()));
    assert_eq!(all.worst, Some(f64::INFINITY));
}

#[test]
fn the_very_share_that_must_match_is_enough() {
    let all = 1000_u32;
    for beyond in 1..all {
        let matched = Tolerance { matched: f64::from(all - beyond) / f64::from(all), ..Tolerance::default() };
        let mut seen = observation(&[1.0], &[1.0]).trials[0].outputs[0].clone();
        (seen.elements, seen.beyond) = (u64::from(all), Some(u64::from(beyond)));
        assert!(judge_output(&seen, &matched).pass, "{beyond} beyond");
        seen.beyond = Some(u64::from(beyond) + 1);
        assert!(!judge_output(&seen, &matched).pass, "{beyond} and one more beyond");
    }
    let mut none = observation(&[], &[]).trials[0].outputs[0].clone();
    none.beyond = Some(0);
    assert!(
        judge_output(&none, &Tolerance { matched: 0.5, ..Tolerance::default() }).pass,
        "nothing is wrong of nothing"
    );
}

#[test]
fn nonfinite_rules_are_three() {
    let seen = observation(&[f64::INFINITY, 1.0], &[f64::NAN, 1.0]);
    let verdict = |nonfinite| judge(&seen, &with(Tolerance { nonfinite, ..Tolerance::default() })).verdict;
    assert!(matches!(verdict(Nonfinite::Same), Verdict::Fail(_)));
    assert_eq!(verdict(Nonfinite::Any), Verdict::Pass);
    let same = observation(&[f64::NAN], &[f64::NAN]);
    assert_eq!(judge(&same, &with(Tolerance::default())).verdict, Verdict::Pass);
    assert!(matches!(
        judge(&same, &with(Tolerance { nonfinite: Nonfinite::Forbid, ..Tolerance::default() })).verdict,
        Verdict::Fail(_)
    ));
}

#[test]
fn a_diagnosis_is_told_where_the_output_fails_and_kept_apart_from_the_text() {
    let mut compared = Comparison::new("y", DType::F32, &[2, 4], 1.0, None);
    compared.floats(0, &[-1.0; 8], &[1.0; 8], None);
    let diagnosis = Diagnosis { pattern: WrongPattern::Negated, wrong: 8, explained: 8, whole: true };
    let fit = Some(Fit::default());
    let seen = OutputObserved { diagnosis: Some(diagnosis.clone()), fit, ..compared.finish() };
    let trial = TrialObserved { trial: 0, distribution: "uniform".into(), outputs: vec![seen] };
    let observation = VerifyObservation { trials: vec![trial], ..VerifyObservation::begun(true, 1, "check".into()) };
    let judged = judge(&observation, &with(Tolerance::default()));
    let text = "every element has the opposite sign".to_string();
    assert!(judged.explanation.contains(&format!("\n  {text}\n")), "{}", judged.explanation);
    assert_eq!(judged.diagnoses, [OutputDiagnosis { output: "y".into(), text, diagnosis }]);
    let loose = judge(&observation, &with(Tolerance { atol: 3.0, ..Tolerance::default() }));
    assert_eq!((loose.verdict, loose.explanation.as_str(), loose.diagnoses.len()), (Verdict::Pass, "", 0));
    // An observation of an earlier kforge has none.
    let mut old = serde_json::to_value(&observation).unwrap();
    old["trials"][0]["outputs"][0].as_object_mut().unwrap().remove("diagnosis");
    let old: VerifyObservation = serde_json::from_value(old).unwrap();
    let judged = judge(&old, &with(Tolerance::default()));
    assert!(matches!(judged.verdict, Verdict::Fail(_)) && judged.diagnoses.is_empty());
}
