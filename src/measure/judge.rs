//! From what a verification saw to a verdict, under a tolerance. Pure, so an edited tolerance costs no run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::compare::show;
use crate::model::{DType, Nonfinite, Tolerance};
use crate::record::params::Judgement;
use crate::record::{
    Checked, Determinism, Finding, FrontPoint, OutputObserved, TrialObserved, Unknown, Verdict, VerifyObservation,
};

/// How far an element may lie from `want`: the tolerance of manifest.md, with `want` rounded to the output's type already.
pub fn allowance(tolerance: &Tolerance, dtype: DType, want: f64, scale: Option<f64>) -> f64 {
    let mut allowed = tolerance.atol + tolerance.rtol * want.abs();
    if tolerance.ulp > 0.0 {
        allowed += tolerance.ulp * dtype.ulp(want);
    }
    if let Some(scale) = scale {
        allowed += tolerance.scaled * tolerance.acc.epsilon() * scale.abs();
    }
    allowed
}

/// An error over what is allowed; infinite where nothing is. An error beyond the largest number, which is kept as that, exceeds every tolerance: how far
/// beyond is not known.
pub fn excess(tolerance: &Tolerance, dtype: DType, error: f64, want: f64, scale: Option<f64>) -> f64 {
    let allowed = allowance(tolerance, dtype, want, scale);
    match error {
        0.0 => 0.0,
        f64::MAX => f64::INFINITY,
        error if allowed > 0.0 => {
            let ratio = error / allowed;
            // A division that rounds to one must not decide.
            if ratio == 1.0 && error > allowed { 1.0 + f64::EPSILON } else { ratio }
        }
        _ => f64::INFINITY,
    }
}

/// Whether one output of one trial is right, and how near it came: the largest error over its allowance.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputJudged {
    /// Whether every condition holds.
    pub pass: bool,
    /// Largest error over its allowance (infinite where nothing is allowed).
    pub worst: f64,
    /// The failing conditions, a line each; empty if it passes.
    pub reasons: Vec<String>,
}

/// Judges one output of one trial. Where a function of the package has spoken, the tolerance says nothing.
pub fn judge_output(seen: &OutputObserved, tolerance: &Tolerance) -> OutputJudged {
    if let Some(checked) = &seen.checked {
        let reasons: Vec<String> = rejection(seen, checked).into_iter().collect();
        let pass = reasons.is_empty();
        return OutputJudged { pass, worst: if pass { 0.0 } else { f64::INFINITY }, reasons };
    }
    let mut reasons = Vec::new();
    if seen.differing > 0 {
        let first =
            seen.first_differing.as_ref().map(|m| format!("; first at {}: got {}, want {}", m.index, m.got, m.want));
        let verb = if seen.differing == 1 { "differs" } else { "differ" };
        reasons.push(format!("{} of {} elements {verb}{}", seen.differing, seen.elements, first.unwrap_or_default()));
    }
    let classes = match tolerance.nonfinite {
        Nonfinite::Same => seen.class_differing,
        Nonfinite::Any => seen.class_differing - seen.class_differing_both_nonfinite,
        Nonfinite::Forbid => seen.class_differing.max(seen.nonfinite.0).max(seen.nonfinite.1),
    };
    if classes > 0 {
        let first = seen
            .first_class_differing
            .as_ref()
            .map(|m| format!("; first at {}: got {}, want {}", m.index, m.got, m.want));
        let what = match (tolerance.nonfinite == Nonfinite::Forbid, classes) {
            (true, 1) => "is not finite or differs in being so",
            (true, _) => "are not finite or differ in being so",
            (false, 1) => "differs in being finite, infinite or NaN",
            (false, _) => "differ in being finite, infinite or NaN",
        };
        reasons.push(format!("{classes} of {} elements {what}{}", seen.elements, first.unwrap_or_default()));
    }
    let ratio = |p: &FrontPoint| excess(tolerance, seen.dtype, p.error, p.want, p.scale);
    let worst = seen.front.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let worst_ratio = worst.map_or(0.0, ratio);
    if tolerance.matched < 1.0 {
        matched(seen, tolerance, &mut reasons);
    } else if let Some(p) = worst
        && worst_ratio > 1.0
    {
        let allowed = allowance(tolerance, seen.dtype, p.want, p.scale);
        reasons.push(format!(
            "element {}: got {}, want {}, error {:.3e} where {:.3e} is allowed",
            p.index,
            show(seen.dtype, p.got),
            show(seen.dtype, p.want),
            p.error,
            allowed
        ));
    }
    OutputJudged {
        pass: reasons.is_empty(),
        worst: if seen.differing > 0 || classes > 0 { f64::INFINITY } else { worst_ratio },
        reasons,
    }
}

/// What a function of the package rejects, in its own words; none if it accepts.
fn rejection(seen: &OutputObserved, checked: &Checked) -> Option<String> {
    if checked.rejected == 0 {
        return None;
    }
    let words = checked.message.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
    let what = match (checked.whole, &seen.gross) {
        (true, _) => "it as a whole".to_string(),
        (false, first) => {
            let first = first.as_ref().map(|g| &g.first);
            let first = first.map(|m| format!(" (the first at {}: got {}, want {})", m.index, m.got, m.want));
            format!("{} of {} elements{}", checked.rejected, seen.elements, first.unwrap_or_default())
        }
    };
    Some(format!("`{}` rejects {what}{words}", checked.by))
}

/// The conditions where only a share of the elements must pass.
fn matched(seen: &OutputObserved, tolerance: &Tolerance, reasons: &mut Vec<String>) {
    let beyond = seen.beyond.unwrap_or(seen.elements);
    // Divided last, so that 93 of 100 is the very number that a manifest's 0.93 is.
    let share = match seen.elements {
        0 => 1.0,
        all => all.saturating_sub(beyond) as f64 / all as f64,
    };
    if share < tolerance.matched {
        reasons
            .push(format!("{share:.6} of the elements are within the tolerance where {} must be", tolerance.matched));
    }
    if let (Some(cap), Some(p)) = (tolerance.max_error, seen.front.first())
        && p.error > cap
    {
        reasons.push(format!(
            "element {}: got {}, want {}, error {:.3e} above the cap of {cap:e}",
            p.index,
            show(seen.dtype, p.got),
            show(seen.dtype, p.want),
            p.error
        ));
    }
}

/// The verdict on a verification, under one tolerance an output.
pub fn judge(observation: &VerifyObservation, tolerance: &BTreeMap<String, Tolerance>) -> Judgement {
    let emulated = observation.emulated;
    let done = |verdict, explanation, worst| Judgement {
        verdict,
        explanation,
        emulated,
        unconfined: observation.unconfined.clone(),
        worst,
    };
    let mut lines = String::new();
    // A race or an access out of bounds explains the reads of uninitialised memory that come with it, so it comes first.
    let mut findings: Vec<&Finding> = observation.findings.iter().collect();
    findings.sort_by_key(|f| f.kind);
    for finding in &findings {
        let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
        let _ = writeln!(lines, "{}{times}", finding.message);
    }
    let mut worst: f64 = 0.0;
    let mut failed: Option<String> = findings.iter().find(|f| !f.kind.is_allowed()).map(|f| f.message.clone());
    for trial in &observation.trials {
        for seen in &trial.outputs {
            let fallback = Tolerance::default();
            let judged = judge_output(seen, tolerance.get(&seen.output).unwrap_or(&fallback));
            worst = worst.max(judged.worst);
            if !judged.pass {
                let text = describe(trial, seen, &judged);
                failed.get_or_insert_with(|| headline(seen, &judged));
                let _ = writeln!(lines, "{text}");
            }
        }
    }
    let worst = (!observation.trials.is_empty()).then_some(worst);
    if let Some(why) = failed {
        return done(Verdict::Fail(why), lines, worst);
    }
    if let Some(what) = &observation.not_emulated {
        return done(Verdict::Unknown(Unknown::NotEmulated(what.clone())), String::new(), None);
    }
    if observation.trials.is_empty() {
        return done(Verdict::Unknown(Unknown::Missing("no trial was compared".into())), String::new(), None);
    }
    let compared = observation.trials.iter().map(|trial| trial.trial).collect::<BTreeSet<_>>().len();
    if compared < observation.asked as usize {
        let why = format!("only {compared} of {} trials were compared", observation.asked);
        return done(Verdict::Unknown(Unknown::Missing(why)), lines, worst);
    }
    if let Determinism::Differs { output, spread } = &observation.determinism {
        let _ = writeln!(
            lines,
            "not deterministic: `{output}` differs by up to {spread:.3e} between runs on the same inputs"
        );
    }
    done(Verdict::Pass, lines, worst)
}

/// The line that stands for a failure: output, element, got, want.
fn headline(seen: &OutputObserved, judged: &OutputJudged) -> String {
    match &seen.gross {
        Some(gross) if seen.checked.is_none() => format!(
            "`{}` is wrong at {}: got {}, want {}",
            seen.output, gross.first.index, gross.first.got, gross.first.want
        ),
        _ => format!("`{}`: {}", seen.output, judged.reasons[0]),
    }
}

/// A failure in full: what, where first, how many, how the errors are distributed, what would explain it.
fn describe(trial: &TrialObserved, seen: &OutputObserved, judged: &OutputJudged) -> String {
    let mut text =
        format!("`{}`, trial {} ({}): {}", seen.output, trial.trial, trial.distribution, judged.reasons.join("; "));
    if let Some(gross) = &seen.gross {
        if seen.checked.is_none() {
            let _ = write!(
                text,
                "\n  {} of {} elements {} at {}: got {}, want {}",
                gross.count,
                seen.elements,
                if gross.count == 1 { "is plainly wrong," } else { "are plainly wrong, the first" },
                gross.first.index,
                gross.first.got,
                gross.first.want
            );
        }
        if let Some(pattern) = &gross.pattern {
            let _ = write!(text, "\n  {} {pattern}", if gross.count == 1 { "it is" } else { "they are" });
        }
    }
    if seen.checked.is_some() {
        return text;
    }
    let bars: Vec<String> = seen
        .histogram
        .iter()
        .enumerate()
        .filter(|(_, n)| **n > 0)
        .map(|(i, n)| match i {
            0 => format!("below 1e-9: {n}"),
            10 => format!("1 and above: {n}"),
            i => format!("1e-{}: {n}", 10 - i),
        })
        .collect();
    let _ = write!(text, "\n  relative errors: {}", bars.join(", "));
    text
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Comparison, rms};
    use super::*;
    use crate::record::FindingKind;

    fn observation(got: &[f64], want: &[f64]) -> VerifyObservation {
        let mut c = Comparison::new("y", DType::F16, &[want.len() as u64], rms(want), None);
        c.floats(0, got, want, None);
        let trial = TrialObserved { trial: 0, distribution: "uniform".into(), outputs: vec![c.finish()] };
        VerifyObservation {
            trials: vec![trial],
            determinism: Determinism::Stable,
            ..VerifyObservation::begun(true, 1, "check".into())
        }
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
        // An ulp of f16 at 2 is 2^-9.
        assert_eq!(verdict(Tolerance { ulp: 6.0, ..Tolerance::default() }), Verdict::Pass);
        assert!(matches!(verdict(Tolerance { ulp: 5.0, ..Tolerance::default() }), Verdict::Fail(_)));
    }

    #[test]
    fn an_error_beyond_the_largest_number_exceeds_every_tolerance() {
        let of = |error| excess(&Tolerance { rtol: 1.5, ..Tolerance::default() }, DType::F64, error, 1.7e308, None);
        assert_eq!((of(f64::MAX), of(1.6e308)), (f64::INFINITY, 0.0));
        let none = |error| excess(&Tolerance::default(), DType::F64, error, 1.0, None);
        assert_eq!((none(0.0), none(5e-324)), (0.0, f64::INFINITY));
        // Neighbours whose quotient rounds to one are told apart.
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
        assert!(judged.explanation.contains("1 of 2 elements is plainly wrong, at 1: got 7"), "{}", judged.explanation);
        let judged = judge(&observation(&[5.0, 7.0], &[1.0, 2.0]), &with(Tolerance::default()));
        let several = "2 of 2 elements are plainly wrong, the first at 0: got 5";
        assert!(judged.explanation.contains(several), "{}", judged.explanation);
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
        assert!(nan(&one, Nonfinite::Forbid).starts_with("1 of 2 elements is not finite or differs in being so"));
        assert!(nan(&[f64::NAN; 2], Nonfinite::Same).starts_with("2 of 2 elements differ in being finite"));
        assert!(nan(&[f64::NAN; 2], Nonfinite::Forbid).starts_with("2 of 2 elements are not finite or differ"));
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
            // Another order of the same trial is no other trial.
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
    fn a_race_is_named_before_what_it_leads_to() {
        let mut seen = observation(&[1.0], &[1.0]);
        seen.findings = vec![
            Finding::new(FindingKind::Uninitialised, "read early"),
            Finding::new(FindingKind::Race, "race on `s`"),
        ];
        assert_eq!(judge(&seen, &with(Tolerance::default())).verdict, Verdict::Fail("race on `s`".into()));
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
            let checked = Checked { by, rejected: rejected_count, whole, message: message.map(str::to_string) };
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
}
