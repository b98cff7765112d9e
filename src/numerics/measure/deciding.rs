//! The tolerance under which an operator that is indecisive would decide, and that correct results can meet. Pure; changes no tolerance and no verdict.
//!
//! The fronts of the null candidates decide every `atol`, `rtol` and `ulp`, so each proposal is tried before it is made: under it, every null candidate must
//! fail somewhere. What correct results can meet follows from two facts:
//!
//! | term | why correct results meet it |
//! |---|---|
//! | `ulp = 1` | a result is rounded once to the output's type |
//! | `rtol` of four epsilons of the accumulator | a sum over a tree loses about one epsilon for every four levels |
//! | `atol` of a quarter to a sixteenth of the null candidate's error | inputs that are rounded one precision lower move a result at least a thousand times further than inputs that are rounded to the accumulator, and a correct result is what slightly different inputs would give |
//!
//! If the null candidate's error is no larger than these terms together, no tolerance can tell it from a correct result, and none is proposed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::calibrate::may_pass;
use kforge_types::model::{DType, Nonfinite, Tolerance};
use kforge_types::record::OutputObserved;
use kforge_types::record::params::{CalibrateParams, Calibration, NullsObserved};

/// The share of a null candidate's error that the proposed `atol` allows, as divisors: the loosest is tried first.
const SHARES: [f64; 3] = [4.0, 8.0, 16.0];

/// How to make an indecisive operator decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The line for the manifest that states tolerances; none if no tolerance that correct results can meet decides.
    pub tolerance: Option<String>,
    /// The outputs that it would decide.
    pub decided: Vec<String>,
    /// The outputs that no tolerance decides.
    pub undecidable: Vec<String>,
}

/// Proposes how to make an operator decide. `nulls[i]` belongs to `params.cases[i]`.
pub fn proposal(params: &CalibrateParams, nulls: &[NullsObserved], calibration: &Calibration) -> Proposal {
    let mut stated = stated(params, nulls);
    let mut dtypes: BTreeMap<&str, DType> = BTreeMap::new();
    let mut undecidable = vec![];
    for (output, candidates) in &calibration.indecisive {
        match deciding(params, nulls, output, candidates) {
            Some((dtype, tolerance)) => {
                stated.insert(output.clone(), tolerance);
                dtypes.insert(output, dtype);
            }
            None => undecidable.push(output.clone()),
        }
    }
    let tolerance = (!dtypes.is_empty()).then(|| match (params.typed, dtypes.len()) {
        // The tolerances of the other choices are unknown here, so only those of this choice are stated.
        (true, _) => {
            let mut by_dtype: BTreeMap<&str, &Tolerance> = BTreeMap::new();
            for (output, dtype) in &dtypes {
                let tightest = by_dtype.entry(dtype.name()).or_insert(&stated[*output]);
                if stated[*output].atol < tightest.atol {
                    *tightest = &stated[*output];
                }
            }
            by_dtype.iter().map(|(dtype, t)| format!("{dtype} = {}", toml(t))).collect::<Vec<_>>().join(", ")
        }
        (false, _) if stated.len() == 1 => format!("tolerance = {}", stated.values().map(toml).collect::<String>()),
        (false, _) => {
            let parts: Vec<String> = stated.iter().map(|(output, t)| format!("{output} = {}", toml(t))).collect();
            format!("tolerance = {{ {} }}", parts.join(", "))
        }
    });
    let decided = dtypes.keys().map(|output| output.to_string()).collect();
    Proposal { tolerance, decided, undecidable }
}

/// The cases that a tolerance of the operator decides: those without a tolerance of their own, or all if each has one.
fn open<'c>(
    params: &'c CalibrateParams,
    nulls: &'c [NullsObserved],
) -> impl Iterator<Item = (&'c BTreeMap<String, Tolerance>, &'c NullsObserved)> {
    let all_own = params.cases.iter().all(|case| case.own);
    params.cases.iter().zip(nulls).filter(move |(case, _)| all_own || !case.own).map(|(case, n)| (&case.tolerance, n))
}

/// The tolerance of every output that is not compared exactly: of those that differ between shapes, the loosest.
fn stated(params: &CalibrateParams, nulls: &[NullsObserved]) -> BTreeMap<String, Tolerance> {
    let mut out: BTreeMap<String, Tolerance> = BTreeMap::new();
    for (tolerances, seen) in open(params, nulls) {
        let floats: BTreeSet<&str> =
            seen.candidates.values().flatten().filter(|o| o.dtype.is_float()).map(|o| o.output.as_str()).collect();
        for (output, tolerance) in tolerances {
            if *tolerance == Tolerance::default() && !floats.contains(output.as_str()) {
                continue;
            }
            let known = out.entry(output.clone()).or_insert_with(|| tolerance.clone());
            known.atol = known.atol.max(tolerance.atol);
            known.rtol = known.rtol.max(tolerance.rtol);
            known.ulp = known.ulp.max(tolerance.ulp);
            known.scaled = known.scaled.max(tolerance.scaled);
        }
    }
    out
}

/// The output's type, and a tolerance for it under which every null candidate fails somewhere; none if there is none that correct results can meet.
fn deciding(
    params: &CalibrateParams,
    nulls: &[NullsObserved],
    output: &str,
    passing: &[String],
) -> Option<(DType, Tolerance)> {
    let seen: Vec<(&str, &OutputObserved)> = open(params, nulls)
        .flat_map(|(_, n)| &n.candidates)
        .flat_map(|(candidate, outputs)| outputs.iter().map(move |o| (candidate.as_str(), o)))
        .filter(|(_, o)| o.output == output)
        .collect();
    let dtype = seen.first()?.1.dtype;
    // A function of the package, or equality, decides these.
    if !dtype.is_float() || seen.iter().any(|(_, o)| o.checked.is_some()) {
        return None;
    }
    let of = |candidate: &str| {
        let errors =
            seen.iter().filter(|(name, _)| *name == candidate).filter_map(|(_, o)| Some(o.front.first()?.error));
        errors.filter(|error| *error < f64::MAX).reduce(f64::max)
    };
    // The loosest tolerance must still reject the candidate with the smallest error. An output that is always zero has a candidate without any.
    let errors: Option<Vec<f64>> = passing.iter().map(|candidate| of(candidate)).collect();
    let least = errors?.into_iter().reduce(f64::min)?;
    let decides = |tolerance: &Tolerance| {
        let names: BTreeSet<&str> = seen.iter().map(|(name, _)| *name).collect();
        names.iter().all(|name| seen.iter().any(|(other, o)| other == name && !may_pass(o, tolerance)))
    };
    let first = open(params, nulls).find_map(|(tolerances, _)| tolerances.get(output))?;
    let acc = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let base =
        Tolerance { rtol: up(4.0 * acc.epsilon()), ulp: 1.0, nonfinite: first.nonfinite, ..Tolerance::default() };
    // Without the elements that need not match, the stated terms may suffice.
    let whole = Tolerance { matched: 1.0, max_error: None, ..first.clone() };
    let whole = (first.matched < 1.0 && whole.scaled == 0.0).then_some(whole);
    let computed = SHARES.iter().map(|share| Tolerance { atol: down(least / share), ..base.clone() });
    whole.into_iter().chain(computed.filter(|t| t.atol > 0.0)).find(decides).map(|tolerance| (dtype, tolerance))
}

/// A positive number with two significant digits, rounded down.
fn down(x: f64) -> f64 {
    two_digits(x, f64::floor)
}

/// A positive number with two significant digits, rounded up.
fn up(x: f64) -> f64 {
    two_digits(x, f64::ceil)
}

fn two_digits(x: f64, round: fn(f64) -> f64) -> f64 {
    let exponent = x.log10().floor() as i32 - 1;
    // Through text, so that the number is the one that a manifest holds.
    format!("{}e{exponent}", round(x / 10f64.powi(exponent))).parse().unwrap_or(x)
}

/// A tolerance as a manifest states it.
fn toml(tolerance: &Tolerance) -> String {
    let Tolerance { atol, rtol, ulp, scaled, acc, matched, max_error, nonfinite } = tolerance;
    let mut parts: Vec<String> = vec![];
    for (name, value) in [("atol", atol), ("rtol", rtol), ("ulp", ulp), ("scaled", scaled)] {
        if *value > 0.0 {
            parts.push(format!("{name} = {}", number(*value)));
        }
    }
    if *scaled > 0.0 && *acc != DType::F32 {
        parts.push(format!("acc = \"{acc}\""));
    }
    if *matched < 1.0 {
        parts.push(format!("matched = {}", number(*matched)));
    }
    parts.extend(max_error.map(|most| format!("max_error = {}", number(most))));
    match nonfinite {
        Nonfinite::Same => {}
        Nonfinite::Any => parts.push("nonfinite = \"any\"".into()),
        Nonfinite::Forbid => parts.push("nonfinite = \"forbid\"".into()),
    }
    // Every float needs a tolerance; this one is exact.
    if parts.is_empty() {
        parts.push("atol = 0".into());
    }
    format!("{{ {} }}", parts.join(", "))
}

/// A number without needless digits: `1`, `0.5`, `4.8e-7`.
fn number(x: f64) -> String {
    let mut out = String::new();
    let _ = if (1e-3..1e6).contains(&x) { write!(out, "{x}") } else { write!(out, "{x:e}") };
    out
}

#[cfg(test)]
mod tests {
    use super::super::calibrate::calibrate;
    use super::super::compare::{Comparison, rms};
    use super::*;
    use kforge_types::record::params::CalibrateCase;

    /// An output of one element, expected to be `want`, and null candidates that are off by so much.
    fn nulls(dtype: DType, want: f64, off: &[(&str, f64)]) -> NullsObserved {
        let seen = |off: f64| {
            let mut c = Comparison::new("y", dtype, &[1], rms(&[want]), None);
            c.floats(0, &[want + off], &[want], None);
            vec![c.finish()]
        };
        // Inputs matter.
        let all = [("another seed", 1e9)].into_iter().chain(off.iter().copied());
        NullsObserved { candidates: all.map(|(n, off)| (n.to_string(), seen(off))).collect() }
    }

    fn under(tolerance: Tolerance, nulls: &[NullsObserved]) -> (CalibrateParams, Proposal) {
        let tolerance: BTreeMap<_, _> = [("y".to_string(), tolerance)].into();
        let case =
            CalibrateCase { shape: "s".into(), distribution: "uniform".into(), tolerance, derived: None, own: false };
        let cases = vec![case; nulls.len()];
        let params = CalibrateParams { cases, absent: None, undecidable: vec![], require: false, typed: false };
        let calibration = calibrate(&params, nulls);
        assert!(calibration.indecisive.contains_key("y"), "{calibration:?}");
        let found = proposal(&params, nulls, &calibration);
        (params, found)
    }

    fn atol(atol: f64) -> Tolerance {
        Tolerance { atol, ..Tolerance::default() }
    }

    #[test]
    fn a_proposed_tolerance_rejects_what_the_stated_one_accepts() {
        let seen = [nulls(DType::F32, 1.0, &[("zeros", -1.0), ("inputs rounded to f16", 2e-4)])];
        let (params, found) = under(atol(1e-2), &seen);
        assert_eq!(found.tolerance.as_deref(), Some("tolerance = { atol = 4.9e-5, rtol = 4.8e-7, ulp = 1 }"));
        assert!(found.undecidable.is_empty());
        let proposed = Tolerance { atol: 4.9e-5, rtol: 4.8e-7, ulp: 1.0, ..Tolerance::default() };
        let mut params = params;
        params.cases[0].tolerance.insert("y".into(), proposed);
        assert!(calibrate(&params, &seen).indecisive.is_empty());
    }

    #[test]
    fn what_one_rounding_of_the_output_hides_no_tolerance_decides() {
        // One unit in the last place of bf16 at 1 is 2^-7.
        let seen = [nulls(DType::Bf16, 1.0, &[("zeros", -1.0), ("inputs rounded to f16", 0.0078125)])];
        let (_, found) = under(Tolerance { ulp: 1.0, ..Tolerance::default() }, &seen);
        assert_eq!(found, Proposal { tolerance: None, decided: vec![], undecidable: vec!["y".into()] });
    }

    #[test]
    fn an_output_that_is_always_zero_has_no_tolerance() {
        let (_, found) = under(atol(0.0), &[nulls(DType::F32, 0.0, &[("constant 1", 1.0)])]);
        assert_eq!(found, Proposal { tolerance: None, decided: vec![], undecidable: vec!["y".into()] });
    }

    #[test]
    fn other_outputs_keep_their_tolerance_in_the_line() {
        let mut seen = nulls(DType::F32, 1.0, &[("zeros", -1.0)]);
        let z = OutputObserved { output: "z".into(), ..seen.candidates["zeros"][0].clone() };
        seen.candidates.get_mut("zeros").unwrap().push(z);
        let tolerance: BTreeMap<_, _> =
            [("y".to_string(), atol(2.0)), ("z".to_string(), atol(0.5)), ("n".to_string(), atol(0.0))].into();
        let case =
            CalibrateCase { shape: "s".into(), distribution: "uniform".into(), tolerance, derived: None, own: false };
        let cases = vec![case];
        let params = CalibrateParams { cases, absent: None, undecidable: vec![], require: false, typed: false };
        let calibration = calibrate(&params, &[seen.clone()]);
        let line = |params: &CalibrateParams| proposal(params, &[seen.clone()], &calibration).tolerance.unwrap();
        assert_eq!(
            line(&params),
            "tolerance = { y = { atol = 0.25, rtol = 4.8e-7, ulp = 1 }, z = { atol = 0.5 } }",
            "`n` is compared exactly, with or without a word"
        );
        let typed = CalibrateParams { typed: true, ..params };
        assert_eq!(line(&typed), "f32 = { atol = 0.25, rtol = 4.8e-7, ulp = 1 }");
    }

    #[test]
    fn a_share_that_need_not_match_is_given_up_before_anything_else() {
        let half = Tolerance { atol: 0.1, matched: 0.5, ..Tolerance::default() };
        let (_, found) = under(half, &[nulls(DType::F32, 1.0, &[("zeros", -1.0)])]);
        assert_eq!(found.tolerance.as_deref(), Some("tolerance = { atol = 0.1 }"));
    }

    #[test]
    fn shapes_with_a_tolerance_of_their_own_do_not_count() {
        let seen = [nulls(DType::F32, 1.0, &[("zeros", -1.0)]), nulls(DType::F32, 1000.0, &[("zeros", -1000.0)])];
        let (mut params, _) = under(atol(5000.0), &seen);
        params.cases[1].own = true;
        let found = proposal(&params, &seen, &calibrate(&params, &seen));
        assert_eq!(found.tolerance.as_deref(), Some("tolerance = { atol = 0.25, rtol = 4.8e-7, ulp = 1 }"));
    }
}
