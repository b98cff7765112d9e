//! Suggests the tolerance under which a verification would pass, if it fails only by its tolerance. Pure; does not change a verdict.
//!
//! The front of worst errors decides every `atol` and `rtol`, so the smallest sufficient value is known exactly. It is reported only if every error could be a
//! rounding error: no element is far off (see [`Gross`](kforge_types::record::observation::Gross)), no element differs in being finite, there is no finding,
//! and all trials were compared. Every suggestion is tried first: `judge` itself decides whether it passes.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::GROSS;
use super::judge::{allowance, judge, judge_output};
use kforge_types::model::Tolerance;
use kforge_types::record::{FrontPoint, OutputObserved, Verdict, VerifyObservation};

/// A term of the tolerance that would suffice by itself, with the other terms unchanged.
#[derive(Clone, Copy)]
enum Term {
    Atol,
    Rtol,
}

impl Term {
    const ALL: [Term; 2] = [Term::Atol, Term::Rtol];

    fn name(self) -> &'static str {
        match self {
            Term::Atol => "atol",
            Term::Rtol => "rtol",
        }
    }

    /// The tolerance with that value of the term.
    fn with(self, value: f64, tolerance: &Tolerance) -> Tolerance {
        match self {
            Term::Atol => Tolerance { atol: value, ..tolerance.clone() },
            Term::Rtol => Tolerance { rtol: value, ..tolerance.clone() },
        }
    }

    /// The value of the term that a point needs if the other terms leave `rest` of its error.
    fn needed(self, rest: f64, point: &FrontPoint) -> f64 {
        match self {
            Term::Atol => rest,
            Term::Rtol => rest / point.want.abs(),
        }
    }

    /// The largest value that is suggested. For `rtol`, the share from which elements are far off. An `atol` applies to all trials, so it must be small
    /// relative to the values of each: the values of one trial may be a million times those of another.
    fn most(self, all: &[&OutputObserved]) -> f64 {
        match self {
            Term::Atol => all.iter().map(|seen| 2.0 * GROSS * magnitude(seen)).fold(f64::INFINITY, f64::min),
            Term::Rtol => GROSS,
        }
    }
}

/// A term with which an output would pass.
struct SufficientTerm {
    term: Term,
    tolerance: Tolerance,
    /// Its value, as it is reported.
    text: String,
}

/// A lower bound of the magnitude of an output without far-off elements: an element of that size exists, or the root mean square is larger, because
/// `error <= GROSS * (|want| + rms)` holds for each element. Zero if no error gives a bound.
fn magnitude(seen: &OutputObserved) -> f64 {
    let least = |p: &FrontPoint| p.want.abs().max(p.error / GROSS - p.want.abs());
    seen.front.iter().map(least).fold(0.0, f64::max)
}

/// For each output that fails only by its tolerance, the smallest `atol` and the smallest `rtol` with which it would pass, rounded up
/// to two digits; nothing if anything else fails too.
pub fn tolerated(observation: &VerifyObservation, tolerance: &BTreeMap<String, Tolerance>) -> Vec<String> {
    let outputs = || observation.trials.iter().flat_map(|trial| &trial.outputs);
    let of = |name: &str| tolerance.get(name).cloned().unwrap_or_default();
    // If only a share must pass, elements were counted only at the stated tolerance.
    let fixed = |seen: &OutputObserved| seen.gross.is_some() || of(&seen.output).matched < 1.0;
    let failing: BTreeSet<&str> =
        outputs().filter(|seen| !judge_output(seen, &of(&seen.output)).pass).map(|seen| seen.output.as_str()).collect();
    if failing.is_empty() || outputs().any(|seen| failing.contains(seen.output.as_str()) && fixed(seen)) {
        return vec![];
    }
    let enough = |name: &&str| -> Vec<SufficientTerm> {
        let all: Vec<&OutputObserved> = outputs().filter(|seen| seen.output == *name).collect();
        Term::ALL.into_iter().filter_map(|term| smallest(term, &of(name), &all)).collect()
    };
    let would: Vec<Vec<SufficientTerm>> = failing.iter().map(enough).collect();
    // The verification still fails if no tolerance helps one output, or because of any other finding.
    let mut all = tolerance.clone();
    for (name, terms) in failing.iter().zip(&would) {
        let Some(first) = terms.first() else { return vec![] };
        all.insert((*name).to_string(), first.tolerance.clone());
    }
    if judge(observation, &all).verdict != Verdict::Pass {
        return vec![];
    }
    let told = failing.iter().zip(&would).map(|(name, terms)| {
        let rest = if terms.len() > 1 { "each with the rest" } else { "with the rest" };
        let terms: Vec<String> = terms.iter().map(|e| format!("{} = {}", e.term.name(), e.text)).collect();
        format!(
            "note: `{name}` would pass at this shape with {}, {rest} of its tolerance unchanged; its operator decides whether such an error is acceptable",
            terms.join(" or ")
        )
    });
    told.collect()
}

/// The smallest value of a term with which all of these pass; none if it exceeds the largest value that is suggested.
fn smallest(term: Term, stated: &Tolerance, all: &[&OutputObserved]) -> Option<SufficientTerm> {
    let without = term.with(0.0, stated);
    let mut least: f64 = 0.0;
    for seen in all {
        for point in &seen.front {
            let rest = point.error - allowance(&without, seen.dtype, point.want, point.scale);
            if rest > 0.0 {
                least = least.max(term.needed(rest, point));
            }
        }
    }
    if least > term.most(all) {
        return None;
    }
    // The first is the nearest to the needed value, maybe below it; because of rounding, even the next may be too small.
    (0..3).filter_map(|more| digits(least, more)).find_map(|(value, text)| {
        let tolerance = term.with(value, stated);
        all.iter().all(|seen| judge_output(seen, &tolerance).pass).then_some(SufficientTerm { term, tolerance, text })
    })
}

/// A number of two digits: the nearest to `x`, plus `more` steps of its last digit.
fn digits(x: f64, more: u32) -> Option<(f64, String)> {
    let text = format!("{x:.1e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let tenths = mantissa.replace('.', "").parse::<u32>().ok()? + more;
    let value: f64 = format!("{tenths}e{}", exponent.parse::<i32>().ok()? - 1).parse().ok()?;
    value.is_finite().then(|| (value, format!("{value:e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::compare::{Comparison, rms};
    use crate::measure::testing::observed;
    use kforge_types::model::{DType, Nonfinite};
    use kforge_types::record::{Finding, FindingKind};

    fn seen(got: &[f64], want: &[f64]) -> VerifyObservation {
        let mut compared = Comparison::new("y", DType::F32, &[want.len() as u64], rms(want), None);
        compared.floats(0, got, want, None);
        observed(compared)
    }

    fn with(tolerance: Tolerance) -> BTreeMap<String, Tolerance> {
        [("y".to_string(), tolerance)].into()
    }

    fn tight() -> Tolerance {
        Tolerance { atol: 1e-6, rtol: 1e-6, ..Tolerance::default() }
    }

    /// The suggestion for a single output.
    #[track_caller]
    fn told(observation: &VerifyObservation, tolerance: Tolerance) -> String {
        let told = tolerated(observation, &with(tolerance));
        let [one] = &told[..] else { panic!("{told:?}") };
        one.strip_prefix("note: `y` would pass at this shape with ").unwrap().split(',').next().unwrap().to_string()
    }

    #[test]
    fn the_smallest_terms_that_would_do_are_told_and_do() {
        // 1.001 is off by 0.001, and either term allows 1e-6 of that.
        let off = seen(&[1.001, 2.0, 0.5], &[1.0, 2.0, 0.5]);
        assert_eq!(told(&off, tight()), "atol = 1e-3 or rtol = 1e-3");
        let pass = |tolerance| judge(&off, &with(tolerance)).verdict == Verdict::Pass;
        assert!(pass(Tolerance { atol: 1e-3, ..tight() }) && pass(Tolerance { rtol: 1e-3, ..tight() }));
        assert!(!pass(Tolerance { atol: 9.9e-4, ..tight() }) && !pass(Tolerance { rtol: 9.9e-4, ..tight() }));
        // Every trial counts.
        let mut two = off.clone();
        two.trials.extend(seen(&[1.0, 2.005, 0.5], &[1.0, 2.0, 0.5]).trials);
        assert_eq!(told(&two, tight()), "atol = 5e-3 or rtol = 2.5e-3");
        // The stated terms still count.
        assert_eq!(told(&two, Tolerance { rtol: 1e-3, ..Tolerance::default() }), "atol = 3e-3 or rtol = 2.5e-3");
        assert_eq!(told(&off, Tolerance::default()), "atol = 1e-3 or rtol = 1e-3");
        assert_eq!(tolerated(&off, &with(Tolerance { atol: 1e-2, ..tight() })), Vec::<String>::new(), "it passes");
    }

    #[test]
    fn no_rtol_is_told_where_none_of_sense_would_do() {
        assert_eq!(told(&seen(&[1e-3, 2.0], &[0.0, 2.0]), tight()), "atol = 1e-3");
        assert_eq!(told(&seen(&[2e-3, 2.0], &[1e-3, 2.0]), tight()), "atol = 1e-3");
    }

    #[test]
    fn no_atol_is_told_beside_which_the_values_of_a_trial_are_nothing() {
        let mut two = seen(&[1001.0, 2000.0], &[1000.0, 2000.0]);
        two.trials.extend(seen(&[1.000_01, 2.0], &[1.0, 2.0]).trials);
        assert_eq!(told(&two, tight()), "rtol = 1e-3");
        // A trial without errors does not show how large its values are.
        two.trials[1] = seen(&[1.0, 2.0], &[1.0, 2.0]).trials.remove(0);
        assert_eq!(told(&two, tight()), "rtol = 1e-3");
        two.trials[1] = seen(&[100.01, 200.0], &[100.0, 200.0]).trials.remove(0);
        assert_eq!(told(&two, tight()), "atol = 1e0 or rtol = 1e-3");
    }

    #[test]
    fn nothing_is_told_where_anything_else_is_wrong() {
        let none = |observation: &VerifyObservation, tolerance| {
            assert!(matches!(judge(observation, &with(Tolerance::clone(&tolerance))).verdict, Verdict::Fail(_)));
            assert_eq!(tolerated(observation, &with(tolerance)), Vec::<String>::new());
        };
        let off = seen(&[1.001, 2.0], &[1.0, 2.0]);
        none(&seen(&[7.0, 2.0], &[1.0, 2.0]), tight());
        none(&seen(&[1.001, f64::NAN], &[1.0, 2.0]), tight());
        none(
            &seen(&[1.001, f64::INFINITY], &[1.0, f64::INFINITY]),
            Tolerance { nonfinite: Nonfinite::Forbid, ..tight() },
        );
        none(&VerifyObservation { asked: 2, ..off.clone() }, tight());
        none(&VerifyObservation { not_emulated: Some("mma".into()), ..off.clone() }, tight());
        none(&off, Tolerance { matched: 0.9, ..tight() });
        let mut raced = off.clone();
        raced.findings.push(Finding::new(FindingKind::Race, "race on `s`"));
        none(&raced, tight());
        // Another output that differs.
        let mut both = off;
        let mut counted = Comparison::new("i", DType::I32, &[1], 0.0, None);
        counted.ints(0, &[1], &[2]);
        both.trials[0].outputs.push(counted.finish());
        none(&both, tight());
    }

    #[test]
    fn values_have_two_digits_and_are_not_below_what_is_needed() {
        let of = |x: f64, more| digits(x, more).map(|(_, text)| text);
        assert_eq!([of(1.23e-4, 0), of(1.23e-4, 1)], [Some("1.2e-4".into()), Some("1.3e-4".into())]);
        assert_eq!(
            [of(9.9e-4, 0), of(9.9e-4, 1), of(9.96e-4, 0)],
            [Some("9.9e-4".into()), Some("1e-3".into()), Some("1e-3".into())]
        );
        assert_eq!(of(f64::MAX, 1), None);
        assert_eq!(told(&seen(&[1.00123, 2.0], &[1.0, 2.0]), Tolerance::default()), "atol = 1.3e-3 or rtol = 1.3e-3");
    }
}
