//! Judges an observation of a verification under a tolerance and returns a verdict. Pure, so an edited tolerance does not rerun a kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::compare::{GROSS, show};
use super::diagnosed::{Wrong, agreed, sentence, stated};
use kforge_types::model::coordinates::element;
use kforge_types::model::{DType, Nonfinite, Tolerance};
use kforge_types::record::observation::Mismatch;
use kforge_types::record::params::Judgement;
use kforge_types::record::{
    CheckObserved, Determinism, Diagnosis, Finding, FreshTrial, FrontPoint, OutputObserved, Unknown, Verdict,
    VerifyObservation,
};

/// The start of a reason about the element with the largest error relative to its allowance. In all reasons, *wrong* elements exceed their allowance, and *far
/// off* elements are wrong by more than [`GROSS`], under any tolerance.
const WORST: &str = "the worst is at ";

/// How far an element may be from `want`: the tolerance of manifest.md. `want` is already rounded to the output's type.
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

/// An error over its allowance; infinite if nothing is allowed. An error beyond the largest number is recorded as that number and exceeds every tolerance
/// by an unknown amount.
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

/// Whether one output of one trial is correct, and how near it came: the largest error over its allowance.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputJudged {
    /// Whether every condition holds.
    pub pass: bool,
    /// Largest error over its allowance (infinite if nothing is allowed).
    pub worst: f64,
    /// The failing conditions, one line each; empty if the output passes.
    pub reasons: Vec<String>,
}

/// Judges one output of one trial. If a function of the package has decided, the tolerance is not used.
pub fn judge_output(seen: &OutputObserved, tolerance: &Tolerance) -> OutputJudged {
    if let Some(checked) = &seen.checked {
        let reasons: Vec<String> = rejection(seen, checked).into_iter().collect();
        let pass = reasons.is_empty();
        return OutputJudged { pass, worst: if pass { 0.0 } else { f64::INFINITY }, reasons };
    }
    let mut reasons = Vec::new();
    if seen.differing > 0 {
        let first = seen.first_differing.as_ref().map(|m| format!("; first at {}", mismatch(seen, m)));
        let verb = if seen.differing == 1 { "differs" } else { "differ" };
        reasons.push(format!("{} of {} elements {verb}{}", seen.differing, seen.elements, first.unwrap_or_default()));
    }
    let classes = match tolerance.nonfinite {
        Nonfinite::Same => seen.class_differing,
        Nonfinite::Any => seen.class_differing - seen.class_differing_both_nonfinite,
        Nonfinite::Forbid => seen.class_differing.max(seen.nonfinite.0).max(seen.nonfinite.1),
    };
    if classes > 0 {
        let first = seen.first_class_differing.as_ref().map(|m| format!("; first at {}", mismatch(seen, m)));
        let what = match (tolerance.nonfinite == Nonfinite::Forbid, classes) {
            (true, 1) => "is not finite, or only one side is finite",
            (true, _) => "are not finite, or only one side is finite",
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
            "{WORST}{}: got {}, want {}, error {:.3e} where {:.3e} is allowed",
            element(p.index, &seen.shape),
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

/// A wrong element by its coordinates: `[18, 103]: got 7, want 2`.
fn mismatch(seen: &OutputObserved, wrong: &Mismatch) -> String {
    format!("{}: got {}, want {}", element(wrong.index, &seen.shape), wrong.got, wrong.want)
}

/// Why a function of the package rejects the output, in that function's words; none if it accepts.
fn rejection(seen: &OutputObserved, checked: &CheckObserved) -> Option<String> {
    if checked.rejected == 0 {
        return None;
    }
    let words = checked.message.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
    let what = match (checked.whole, &seen.gross) {
        (true, _) => "it as a whole".to_string(),
        (false, first) => {
            let first = first.as_ref().map(|g| &g.first);
            let first = first.map(|m| format!(" (the first at {})", mismatch(seen, m)));
            format!("{} of {} elements{}", checked.rejected, seen.elements, first.unwrap_or_default())
        }
    };
    Some(format!("`{}` rejects {what}{words}", checked.by))
}

/// The conditions if only a share of the elements must pass.
fn matched(seen: &OutputObserved, tolerance: &Tolerance, reasons: &mut Vec<String>) {
    let beyond = seen.beyond.unwrap_or(seen.elements);
    // Divided last, so that 93 of 100 is exactly the 0.93 of a manifest.
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
            "{WORST}{}: got {}, want {}, error {:.3e} above the cap of {cap:e}",
            element(p.index, &seen.shape),
            show(seen.dtype, p.got),
            show(seen.dtype, p.want),
            p.error
        ));
    }
}

/// The verdict on a verification, with a tolerance for each output.
pub fn judge(observation: &VerifyObservation, tolerance: &BTreeMap<String, Tolerance>) -> Judgement {
    let emulated = observation.emulated;
    let done = |verdict, explanation, worst| Judgement {
        no_fresh: observation.no_fresh().filter(|_| verdict == Verdict::Pass),
        verdict,
        explanation,
        emulated,
        interpreted: observation.is_interpreted(),
        in_torch: observation.is_in_torch(),
        unconfined: observation.unconfined.clone(),
        worst,
        confirms: false,
        known_inputs: vec![],
        diagnoses: vec![],
        finding: None,
    };
    let mut wrong: Vec<Wrong<'_>> = vec![];
    let mut lines = String::new();
    // Findings are ordered by kind. An access out of bounds may hit memory that another thread writes, which looks like a race, and either explains the reads
    // of uninitialized memory that come with it.
    let mut findings: Vec<&Finding> = observation.findings.iter().collect();
    findings.sort_by_key(|f| f.kind);
    let shown = |finding: &Finding| {
        let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
        format!("{}{times}\n", finding.message)
    };
    let (explain, say): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.kind.only_explains());
    lines.extend(say.into_iter().copied().map(shown));
    let after_findings = lines.len();
    let mut worst: f64 = 0.0;
    let decisive = findings.iter().find(|f| !f.kind.is_allowed());
    let (finding, mut failed) = (decisive.map(|f| f.kind), decisive.map(|f| f.message.clone()));
    // Whether the kernel fails without what was drawn. What was drawn then adds nothing, and the judgement is the same each time.
    let mut fails_anyway = failed.is_some();
    for trial in &observation.trials {
        let fresh = observation.fresh_trial(trial.trial);
        if fresh.is_some() && fails_anyway {
            continue;
        }
        for seen in &trial.outputs {
            let fallback = Tolerance::default();
            let tolerance = tolerance.get(&seen.output).unwrap_or(&fallback);
            let judged = judge_output(seen, tolerance);
            // What was drawn must not show in a judgement that passes: the same kernel would be judged otherwise each time.
            if fresh.is_none() || !judged.pass {
                worst = worst.max(judged.worst);
            }
            if !judged.pass {
                let inputs = format!("trial {} ({})", trial.trial, trial.distribution);
                let diagnosis = stated(seen, tolerance);
                let text = describe(&inputs, seen, &judged, diagnosis.as_ref());
                failed.get_or_insert_with(|| headline(seen, &judged));
                wrong.push(Wrong { inputs, seen, diagnosis });
                fails_anyway |= fresh.is_none();
                let _ = writeln!(lines, "{text}");
                if let Some(FreshTrial { seed, .. }) = fresh {
                    let _ = writeln!(
                        lines,
                        "  these inputs were drawn for this verification only; `seeds = [{seed}]` of its operator in an overlay repeats them"
                    );
                }
            }
        }
    }
    let worst = (!observation.trials.is_empty()).then_some(worst);
    if let Some(why) = failed {
        let explained: String = explain.into_iter().copied().map(shown).collect();
        lines.insert_str(after_findings, &explained);
        return Judgement { diagnoses: agreed(&wrong), finding, ..done(Verdict::Fail(why), lines, worst) };
    }
    if let Some(why) = &observation.not_launched {
        return done(Verdict::Unknown(Unknown::Missing(why.clone())), String::new(), None);
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

/// The one-line summary of a failure: output, element, got, want.
pub(super) fn headline(seen: &OutputObserved, judged: &OutputJudged) -> String {
    match &seen.gross {
        Some(gross) if seen.checked.is_none() => {
            format!("`{}` is wrong at {}", seen.output, mismatch(seen, &gross.first))
        }
        _ => match judged.reasons[0].strip_prefix(WORST) {
            Some(worst) => format!("`{}` is wrong at {worst}", seen.output),
            None => format!("`{}`: {}", seen.output, judged.reasons[0]),
        },
    }
}

/// The full description of a failure: what failed, where first, how many elements, how the errors are distributed, and what would explain them.
pub(super) fn describe(
    inputs: &str,
    seen: &OutputObserved,
    judged: &OutputJudged,
    diagnosis: Option<&Diagnosis>,
) -> String {
    let mut text = format!("`{}`, {inputs}: {}", seen.output, judged.reasons.join("; "));
    if let Some(gross) = &seen.gross {
        // If a condition counts exactly the same elements, they are not reported twice.
        let told = |count: u64, first: &Option<Mismatch>| count == gross.count && first.as_ref() == Some(&gross.first);
        let told =
            told(seen.differing, &seen.first_differing) || told(seen.class_differing, &seen.first_class_differing);
        if seen.checked.is_none() && !told {
            let _ = write!(
                text,
                "\n  {} of {} elements {} far off (by more than {:.0} % of the expected value and the output's root mean square), {} {}",
                gross.count,
                seen.elements,
                if gross.count == 1 { "is" } else { "are" },
                GROSS * 100.0,
                if gross.count == 1 { "at" } else { "the first at" },
                mismatch(seen, &gross.first)
            );
        }
        if let Some(pattern) = &gross.pattern {
            let _ = write!(text, "\n  {} {pattern}", if gross.count == 1 { "it is" } else { "they are" });
        }
    }
    if let Some(diagnosis) = diagnosis {
        let _ = write!(text, "\n  {}", sentence(diagnosis, seen));
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
mod tests;
