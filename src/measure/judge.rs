//! From what a verification saw to a verdict, under a tolerance. Pure, so an edited tolerance costs no run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::compare::show;
use crate::model::{DType, Nonfinite, Tolerance};
use crate::record::params::Judgement;
use crate::record::{
    Determinism, Finding, FrontPoint, OutputObserved, TrialObserved, Unknown, Verdict, VerifyObservation,
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

/// Judges one output of one trial.
pub fn judge_output(seen: &OutputObserved, tolerance: &Tolerance) -> OutputJudged {
    let mut reasons = Vec::new();
    if seen.differing > 0 {
        let first =
            seen.first_differing.as_ref().map(|m| format!("; first at {}: got {}, want {}", m.index, m.got, m.want));
        reasons.push(format!("{} of {} elements differ{}", seen.differing, seen.elements, first.unwrap_or_default()));
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
        let what = if tolerance.nonfinite == Nonfinite::Forbid {
            "are not finite or differ in being so"
        } else {
            "differ in being finite, infinite or NaN"
        };
        reasons.push(format!("{classes} of {} elements {what}{}", seen.elements, first.unwrap_or_default()));
    }
    let ratio = |p: &FrontPoint| {
        let allowed = allowance(tolerance, seen.dtype, p.want, p.scale);
        if allowed > 0.0 { p.error / allowed } else { f64::INFINITY }
    };
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
            show(p.got),
            show(p.want),
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

/// The conditions where only a share of the elements must pass.
fn matched(seen: &OutputObserved, tolerance: &Tolerance, reasons: &mut Vec<String>) {
    let beyond = seen.beyond.unwrap_or(seen.elements);
    let share = 1.0 - beyond as f64 / seen.elements.max(1) as f64;
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
            show(p.got),
            show(p.want),
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
        Some(gross) => format!(
            "`{}` is wrong at {}: got {}, want {}",
            seen.output, gross.first.index, gross.first.got, gross.first.want
        ),
        None => format!("`{}`: {}", seen.output, judged.reasons[0]),
    }
}

/// A failure in full: what, where first, how many, how the errors are distributed, what would explain it.
fn describe(trial: &TrialObserved, seen: &OutputObserved, judged: &OutputJudged) -> String {
    let mut text =
        format!("`{}`, trial {} ({}): {}", seen.output, trial.trial, trial.distribution, judged.reasons.join("; "));
    if let Some(gross) = &seen.gross {
        let _ = write!(
            text,
            "\n  {} of {} elements are plainly wrong, the first at {}: got {}, want {}",
            gross.count, seen.elements, gross.first.index, gross.first.got, gross.first.want
        );
        if let Some(pattern) = &gross.pattern {
            let _ = write!(text, "\n  they are {pattern}");
        }
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
            emulated: true,
            findings: vec![],
            not_emulated: None,
            asked: 1,
            trials: vec![trial],
            determinism: Determinism::Stable,
            unconfined: vec![],
            ran_as: "check".into(),
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
    fn a_failure_names_output_index_got_and_want() {
        let judged = judge(&observation(&[1.0, 7.0], &[1.0, 2.0]), &with(Tolerance::default()));
        assert_eq!(judged.verdict, Verdict::Fail("`y` is wrong at 1: got 7, want 2".into()));
        assert!(judged.explanation.contains("1 of 2 elements are plainly wrong"), "{}", judged.explanation);
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
