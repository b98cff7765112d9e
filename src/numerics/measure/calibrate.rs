//! Calibration: whether an operator's tolerance, shapes and distributions can distinguish correct from wrong. Null candidates are
//! judged like kernels, and must fail somewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::judge::judge_output;
use kforge_types::model::{DType, Precision, Tolerance};
use kforge_types::record::OutputObserved;
use kforge_types::record::params::{CalibrateParams, Calibration, NullsObserved};

/// The tolerance under `tolerance = "auto"` for an output of that type whose elements sum up to `reduction` terms.
///
/// One unit in the last place is for the rounding to the output's type. The error of an f32 accumulator over a sum grows like the square root of the sum's
/// length (random signs). The tolerance allows four times that error, relative to the element and absolute for values of order one. The rounding has no
/// absolute part, because that would let coarse types hide anything in an average.
pub fn derived(dtype: DType, reduction: u64) -> Tolerance {
    if !dtype.is_float() {
        return Tolerance::default();
    }
    let acc = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let lost = 4.0 * (reduction.max(1) as f64).sqrt() * acc.epsilon();
    Tolerance { atol: lost, rtol: lost, ulp: 1.0, acc, ..Tolerance::default() }
}

/// The tolerance under `tolerance = "auto"` of an operator that declares how precisely its kernels compute. `scaled` says whether the reference gives the
/// operator on absolute values, S. Without a declaration it is that of [`derived`].
///
/// Let u be half the epsilon of a type.
///
/// * *Accumulation in a narrow type.* The error of recursive summation is the sum of s_k * d_k over the partial sums s_k, with |d_k| <= u (Higham, "Accuracy and
///   Stability of Numerical Algorithms", 2nd edition, chapter 4). Where the d_k are independent and of mean zero, it is at most
///   c * sqrt(n) * u * S with a probability that grows with c (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput.
///   41, 2019). Terms of one sign meet that order, and then S is the result, so it is the part relative to the result, as for f32. Terms of mean
///   zero have partial sums like sqrt(k), and their error is at most about u * S whatever n is, although the result may be near zero: that is the part in S,
///   which allows twice that. Where there is no S, the absolute part grows with the square root of n once more, for terms of order one.
/// * *A rounding in between.* If each term of a sum is rounded once, the result changes by at most u * S (Higham,
///   chapter 3); twice that is allowed. Without S, the same is relative to the result and absolute for values of order one.
/// * *Underflow.* Below the normal numbers of a type, a rounding has an absolute error of up to half of its least number (Higham, chapter 2).
///   Over n roundings of random sign, four times that grows with the square root of n, for factors of order one.
pub fn derived_with(dtype: DType, reduction: u64, precision: &Precision, scaled: bool) -> Tolerance {
    let mut tolerance = derived(dtype, reduction);
    if !dtype.is_float() {
        return tolerance;
    }
    let narrow = precision.accumulate.filter(|acc| acc.epsilon() > tolerance.acc.epsilon());
    let root = (reduction.max(1) as f64).sqrt();
    let least = |dtype: DType| 2.0 * root * dtype.ulp(0.0);
    if let Some(acc) = narrow {
        let lost = 4.0 * root * acc.epsilon();
        (tolerance.acc, tolerance.rtol) = (acc, lost);
        if scaled {
            (tolerance.atol, tolerance.scaled) = (least(acc), 1.0);
        } else {
            tolerance.atol = root * lost / 4.0 + least(acc);
        }
    }
    let lost: f64 = precision.intermediates.iter().map(|dtype| dtype.epsilon()).sum();
    tolerance.atol += precision.intermediates.iter().map(|dtype| least(*dtype)).sum::<f64>();
    if scaled {
        tolerance.scaled += lost / tolerance.acc.epsilon();
    } else {
        tolerance.atol += lost;
        tolerance.rtol += lost;
    }
    tolerance
}

/// Judges every null candidate on every case, output by output: a tight tolerance of one output says nothing about another. `nulls[i]` belongs to
/// `params.cases[i]`, and lists a candidate's outputs only if they differ from the expectation.
pub fn calibrate(params: &CalibrateParams, nulls: &[NullsObserved]) -> Calibration {
    // By output and candidate.
    let mut passes: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut listed: BTreeMap<(&str, &str), BTreeSet<usize>> = BTreeMap::new();
    for (case, (declared, seen)) in params.cases.iter().zip(nulls).enumerate() {
        for (candidate, outputs) in &seen.candidates {
            for output in outputs {
                let name = (output.output.as_str(), candidate.as_str());
                listed.entry(name).or_default().insert(case);
                let fallback = Tolerance::default();
                if may_pass(output, declared.tolerance.get(&output.output).unwrap_or(&fallback)) {
                    passes.entry(name).or_default().push(case);
                }
            }
        }
    }
    let tolerance = params.cases.iter().map(|case| case.tolerance.clone()).collect();
    let mut calibration = Calibration {
        indecisive: BTreeMap::new(),
        undecidable: BTreeMap::new(),
        weak: vec![],
        constant: vec![],
        tolerance,
    };
    let everywhere = passes.iter().filter(|(name, cases)| cases.len() == listed[*name].len()).map(|(name, _)| *name);
    let constants = Constants::of(params, nulls);
    for (output, candidate) in always_constant(&listed, &constants).into_iter().chain(everywhere) {
        let declared = params.undecidable.iter().any(|name| name == output);
        let found = if declared { &mut calibration.undecidable } else { &mut calibration.indecisive };
        found.entry(output.into()).or_default().push(candidate.into());
    }
    for ((output, candidate), cases) in passes {
        if cases.len() < listed[&(output, candidate)].len() {
            calibration.weak.push((format!("{candidate} as {output}"), cases));
        }
    }
    calibration.weak.sort();
    // What makes the whole operator indecisive says more.
    if calibration.indecisive.is_empty() {
        calibration.constant = constants.shapes(|output| !params.undecidable.iter().any(|name| name == output));
    }
    calibration
}

/// The names of null candidates of [`kforge_types::record::params::NullsObserved`].
const ZEROS: &str = "zeros";
const ONES: &str = "constant 1";
const MEAN: &str = "constant mean";
const OTHER: &str = "another seed";

/// Outputs whose expectation was zero everywhere, or one value at each shape: a kernel that computes nothing would pass. A reference that never writes looks like
/// the former: constant ones differ from it somewhere, and zeros nowhere.
fn always_constant<'n>(
    listed: &BTreeMap<(&'n str, &'n str), BTreeSet<usize>>,
    constants: &Constants<'n>,
) -> Vec<(&'n str, &'n str)> {
    let outputs: BTreeSet<&str> =
        listed.keys().filter(|(_, candidate)| [ZEROS, ONES].contains(candidate)).map(|(output, _)| *output).collect();
    let of = |output: &'n str| match listed.contains_key(&(output, ZEROS)) {
        false => Some((output, ZEROS)),
        true => constants.at_every_shape(output).then_some((output, MEAN)),
    };
    outputs.into_iter().filter_map(of).collect()
}

/// The outputs of each shape, and whether each is one value in all elements and trials, whatever the inputs are. In the order of the cases.
///
/// | at a trial | because |
/// |---|---|
/// | the output has elements | zeros or ones differ from them |
/// | all its elements are one value | their mean does not differ from them |
/// | the inputs do not matter | the expectation for another seed does not differ |
///
/// An output of one element is its own mean, and may be the same for two seeds by chance if it is an integer. So its value must also be the same in all trials of
/// the shape.
struct Constants<'n>(Vec<(&'n str, BTreeMap<&'n str, bool>)>);

impl<'n> Constants<'n> {
    fn of(params: &'n CalibrateParams, nulls: &'n [NullsObserved]) -> Self {
        let mut shapes: Vec<(&str, BTreeMap<&str, Option<String>>)> = vec![];
        for (case, seen) in params.cases.iter().zip(nulls) {
            let at = shapes.iter().position(|(shape, _)| *shape == case.shape).unwrap_or(shapes.len());
            if at == shapes.len() {
                shapes.push((&case.shape, BTreeMap::new()));
            }
            for (output, value) in at_trial(seen) {
                let known = shapes[at].1.entry(output).or_insert_with(|| value.clone());
                if *known != value {
                    *known = None;
                }
            }
        }
        let is_constant = |(output, value): (&'n str, Option<String>)| (output, value.is_some());
        Constants(shapes.into_iter().map(|(name, all)| (name, all.into_iter().map(is_constant).collect())).collect())
    }

    /// Whether an output is constant at each shape at which it has elements.
    fn at_every_shape(&self, output: &str) -> bool {
        let mut known = self.0.iter().filter_map(|(_, outputs)| outputs.get(output)).peekable();
        known.peek().is_some() && known.all(|is_constant| *is_constant)
    }

    /// The shapes at which all outputs are constant, and at least one of them counts.
    fn shapes(&self, counts: impl Fn(&str) -> bool) -> Vec<String> {
        let is_constant = |outputs: &BTreeMap<&str, bool>| {
            outputs.values().all(|is_constant| *is_constant) && outputs.keys().any(|output| counts(output))
        };
        self.0.iter().filter(|(_, outputs)| is_constant(outputs)).map(|(shape, _)| (*shape).to_string()).collect()
    }
}

/// The outputs of a trial that have elements, each with its value as a text, if it is one value whatever the inputs are.
fn at_trial(seen: &NullsObserved) -> BTreeMap<&str, Option<String>> {
    let find = |candidate: &str, output: &str| {
        seen.candidates.get(candidate).into_iter().flatten().find(|observed| observed.output == output)
    };
    let filled = [ZEROS, ONES].into_iter().filter_map(|candidate| seen.candidates.get(candidate)).flatten();
    let value = |output: &str| {
        let differs = [MEAN, OTHER].into_iter().any(|candidate| find(candidate, output).is_some());
        // Zeros do not differ from zero. A function of the package, which compares the whole output, says nothing of values.
        let of = |observed: &OutputObserved| {
            let number = observed.front.first().map(|point| format!("{:?}", point.want));
            let exact = || observed.first_differing.as_ref().map(|element| element.want.clone());
            let class = || observed.first_class_differing.as_ref().map(|element| element.want.clone());
            number.or_else(exact).or_else(class).unwrap_or_default()
        };
        (!differs).then(|| find(ZEROS, output).map_or_else(|| "0".to_string(), of))
    };
    filled.map(|observed| (observed.output.as_str(), value(&observed.output))).collect()
}

/// Whether nothing shows that this null candidate fails. If only a share of the elements must pass but they were not counted, the
/// share is no evidence against the candidate.
pub(super) fn may_pass(seen: &OutputObserved, tolerance: &Tolerance) -> bool {
    if seen.beyond.is_none() && tolerance.matched < 1.0 {
        return judge_output(&OutputObserved { beyond: Some(0), ..seen.clone() }, tolerance).pass;
    }
    judge_output(seen, tolerance).pass
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Comparison, rms};
    use super::*;
    use kforge_types::record::params::CalibrateCase;

    fn nulls(candidates: &[(&str, f64)]) -> NullsObserved {
        let want = [1.0, -2.0];
        let observe = |off: f64| {
            let mut c = Comparison::new("y", DType::F32, &[2], rms(&want), None);
            c.floats(0, &[want[0] + off, want[1]], &want, None);
            vec![c.finish()]
        };
        // Inputs matter, unless a test says otherwise.
        let other = (!candidates.is_empty()).then_some(("another seed", 1e9));
        let all = other.into_iter().chain(candidates.iter().copied());
        NullsObserved { candidates: all.map(|(n, off)| (n.to_string(), observe(off))).collect() }
    }

    fn run(atol: f64, cases: &[NullsObserved]) -> Calibration {
        under([("y".to_string(), Tolerance { atol, ..Tolerance::default() })].into(), cases)
    }

    fn asking() -> CalibrateParams {
        CalibrateParams { cases: vec![], absent: None, undecidable: vec![], require: false, typed: false }
    }

    /// The candidates that pass everywhere, as messages name them.
    fn indecisive(c: &Calibration) -> Vec<String> {
        c.indecisive.iter().flat_map(|(output, all)| all.iter().map(move |one| format!("{one} as {output}"))).collect()
    }

    fn under(tolerance: BTreeMap<String, Tolerance>, cases: &[NullsObserved]) -> Calibration {
        let case =
            CalibrateCase { shape: "s".into(), distribution: "uniform".into(), tolerance, derived: None, own: false };
        calibrate(&CalibrateParams { cases: vec![case; cases.len()], ..asking() }, cases)
    }

    #[test]
    fn a_candidate_that_passes_everywhere_makes_the_operator_indecisive() {
        let c = run(
            0.1,
            &[
                nulls(&[("zeros", 1.0), ("inputs rounded to f16", 0.01)]),
                nulls(&[("zeros", 1.0), ("inputs rounded to f16", 0.02)]),
            ],
        );
        assert_eq!((indecisive(&c), c.weak), (vec!["inputs rounded to f16 as y".to_string()], vec![]));
    }

    #[test]
    fn one_that_passes_on_some_shape_only_is_weak() {
        let c = run(0.1, &[nulls(&[("zeros", 0.05)]), nulls(&[("zeros", 1.0)])]);
        assert_eq!((indecisive(&c), c.weak), (vec![], vec![("zeros as y".to_string(), vec![0])]));
    }

    #[test]
    fn a_candidate_is_asked_only_where_it_is_listed() {
        let c = run(0.1, &[nulls(&[("copy of x", 0.05)]), nulls(&[("zeros", 1.0)])]);
        assert_eq!(indecisive(&c), ["copy of x as y"]);
    }

    #[test]
    fn an_expectation_of_nothing_but_zeros_tells_nothing() {
        // A candidate that equals the expectation is not listed.
        let c = run(0.0, &[nulls(&[("constant 1", 1.0)]), nulls(&[("constant 1", 1.0)])]);
        assert_eq!(indecisive(&c), ["zeros as y"]);
        let c = run(0.0, &[nulls(&[("constant 1", 1.0)]), nulls(&[("constant 1", 1.0), ("zeros", 1.0)])]);
        assert_eq!(indecisive(&c), [] as [&str; 0], "at one shape they are none");
        assert_eq!(indecisive(&run(0.0, &[nulls(&[])])), [] as [&str; 0], "without elements nothing is asked");
    }

    /// An output `y` that is `want` in both elements, for this shape, with the comparison of another seed if inputs matter.
    fn constant(want: f64, matters: bool) -> NullsObserved {
        let observe = |got: f64| {
            let mut c = Comparison::new("y", DType::F32, &[2], rms(&[want]), None);
            c.floats(0, &[got, got], &[want, want], None);
            vec![c.finish()]
        };
        let all = [("zeros", 0.0), ("constant 1", 1.0), ("another seed", 7.0)];
        let kept = all.into_iter().filter(|(name, got)| *got != want && (matters || *name != "another seed"));
        NullsObserved { candidates: kept.map(|(name, got)| (name.to_string(), observe(got))).collect() }
    }

    /// Calibrates cases of shapes with a tolerance that rejects everything else.
    fn at_shapes(undecidable: &[&str], cases: &[(&str, NullsObserved)]) -> Calibration {
        let case = |(shape, _): &(&str, NullsObserved)| CalibrateCase {
            shape: (*shape).to_string(),
            distribution: "uniform".into(),
            tolerance: [("y".to_string(), Tolerance { atol: 1e-6, ..Tolerance::default() })].into(),
            derived: None,
            own: false,
        };
        let undecidable = undecidable.iter().map(|name| name.to_string()).collect();
        let params = CalibrateParams { cases: cases.iter().map(case).collect(), undecidable, ..asking() };
        calibrate(&params, &cases.iter().map(|(_, nulls)| nulls.clone()).collect::<Vec<_>>())
    }

    #[test]
    fn an_expectation_of_one_value_at_every_shape_tells_nothing() {
        let c =
            at_shapes(&[], &[("a", constant(1.0, false)), ("b", constant(3.0, false)), ("b", constant(3.0, false))]);
        assert_eq!((indecisive(&c), c.constant), (vec!["constant mean as y".to_string()], vec![]));
        let c = at_shapes(&["y"], &[("a", constant(1.0, false))]);
        assert_eq!((indecisive(&c), c.constant), (vec![], vec![]), "it is declared");
        assert_eq!(c.undecidable["y"], ["constant mean"]);
    }

    #[test]
    fn only_the_shapes_of_one_value_tell_nothing() {
        for value in [0.0, 1.0, -2.5] {
            let differ = nulls(&[("zeros", 1.0), ("constant mean", 1.0), ("another seed", 1.0)]);
            let c =
                at_shapes(&[], &[("one", constant(value, false)), ("many", differ), ("one", constant(value, false))]);
            assert_eq!((indecisive(&c), c.constant), (vec![], vec!["one".to_string()]), "{value}");
        }
    }

    #[test]
    fn what_depends_on_the_inputs_is_no_constant() {
        // One element is its own mean.
        let c = at_shapes(&[], &[("one", constant(4.0, true))]);
        assert_eq!((indecisive(&c), c.constant), (vec![], vec![]));
        // The same for another seed by chance, and another value in another trial.
        let c = at_shapes(&[], &[("one", constant(4.0, false)), ("one", constant(5.0, false))]);
        assert_eq!((indecisive(&c), c.constant), (vec![], vec![]));
    }

    #[test]
    fn a_constant_beside_an_output_that_differs_is_decided_by_that_one() {
        let mut seen = constant(1.0, false);
        let other = nulls(&[("zeros", 1.0), ("another seed", 1.0)]);
        for (candidate, outputs) in other.candidates {
            let z = outputs.into_iter().map(|o| OutputObserved { output: "z".into(), ..o });
            seen.candidates.entry(candidate).or_default().extend(z);
        }
        let differs = nulls(&[("zeros", 1.0), ("constant mean", 1.0), ("another seed", 1.0)]);
        let c = at_shapes(&[], &[("one", seen), ("many", differs)]);
        assert_eq!((indecisive(&c), c.constant), (vec![], vec![]));
    }

    #[test]
    fn derived_tolerances_follow_type_and_length() {
        let allowed = |dtype, terms, want| super::super::judge::allowance(&derived(dtype, terms), dtype, want, None);
        assert!(allowed(DType::F16, 1, 1.0) > allowed(DType::F32, 4096, 1.0));
        assert_eq!(derived(DType::F32, 4096).rtol, 64.0 * derived(DType::F32, 1).rtol);
        // A sixteenth of what is allowed at one: no part of a coarse type's rounding is absolute.
        assert!(allowed(DType::Bf16, 1, 1.0 / 16.0) < allowed(DType::Bf16, 1, 1.0) / 15.0);
        assert_eq!(derived(DType::F64, 1).atol, 4.0 * f64::EPSILON);
        assert_eq!(derived(DType::I32, 4096), Tolerance::default());
    }

    #[test]
    fn a_declared_precision_widens_a_derived_tolerance_by_its_bound() {
        let none = Precision::default();
        for dtype in [DType::F16, DType::F32, DType::F64, DType::I32] {
            for scaled in [false, true] {
                assert_eq!(derived_with(dtype, 100, &none, scaled), derived(dtype, 100));
                // What is no less precise than the accumulator that is assumed changes nothing.
                let same = Precision { accumulate: Some(DType::F64), intermediates: vec![] };
                assert_eq!(derived_with(dtype, 100, &same, scaled), derived(dtype, 100));
            }
        }
        let eps = DType::F16.epsilon();
        let narrow = Precision { accumulate: Some(DType::F16), intermediates: vec![] };
        let t = derived_with(DType::F16, 64, &narrow, true);
        let least = 16.0 * DType::F16.ulp(0.0);
        assert_eq!((t.atol, t.rtol, t.scaled, t.acc, t.ulp), (least, 32.0 * eps, 1.0, DType::F16, 1.0));
        let t = derived_with(DType::F16, 64, &narrow, false);
        assert_eq!((t.atol, t.rtol, t.scaled), (64.0 * eps + least, 32.0 * eps, 0.0));
        let twice = Precision { accumulate: None, intermediates: vec![DType::Bf16, DType::F16] };
        let (plain, lost) = (derived(DType::F32, 64), DType::Bf16.epsilon() + eps);
        let atol = plain.atol + (16.0 * DType::Bf16.ulp(0.0) + least);
        let t = derived_with(DType::F32, 64, &twice, true);
        assert_eq!((t.atol, t.rtol, t.scaled, t.acc), (atol, plain.rtol, lost / DType::F32.epsilon(), DType::F32));
        let t = derived_with(DType::F32, 64, &twice, false);
        assert_eq!((t.atol, t.rtol, t.scaled), (atol + lost, plain.rtol + lost, 0.0));
        assert_eq!(derived_with(DType::I32, 64, &twice, true), Tolerance::default());
    }

    /// Sums in f16, one term after the other, meet the tolerance for them, and those without the last terms do not.
    #[test]
    fn sums_that_are_accumulated_in_f16_meet_the_tolerance_for_them_and_no_more() {
        use crate::reference::float::round_to;
        let narrow = Precision { accumulate: Some(DType::F16), intermediates: vec![] };
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            round_to(DType::F16, (state >> 40) as f64 / f64::from(1u32 << 24))
        };
        for terms in [16usize, 256, 1024] {
            for low in [-1.0, 0.0] {
                let (mut met, mut met_f32, mut short) = (0, 0, 0);
                for _ in 0..200 {
                    let all: Vec<f64> =
                        (0..terms).map(|_| round_to(DType::F16, low + (1.0 - low) * uniform())).collect();
                    let want = round_to(DType::F16, all.iter().sum());
                    let scale: f64 = all.iter().map(|x| x.abs()).sum();
                    let sum = |all: &[f64]| all.iter().fold(0.0, |sum, x| round_to(DType::F16, sum + x));
                    let allowed = |t: &Tolerance| super::super::judge::allowance(t, DType::F16, want, Some(scale));
                    let within = derived_with(DType::F16, terms as u64, &narrow, true);
                    let error = (sum(&all) - want).abs();
                    met += u32::from(error <= allowed(&within));
                    met_f32 += u32::from(error <= allowed(&derived(DType::F16, terms as u64)));
                    short += u32::from((sum(&all[..terms / 2]) - want).abs() <= allowed(&within));
                }
                assert_eq!(met, 200, "{terms} terms from {low}");
                assert!(met_f32 < 200 || terms == 16, "{terms} terms from {low} need more than the tolerance for f32");
                assert!(short < 150, "{short} of 200 sums of half of {terms} terms from {low} pass");
            }
        }
    }

    #[test]
    fn a_tight_output_does_not_hide_a_useless_one() {
        let mut seen = nulls(&[("zeros", 1.0)]);
        for outputs in seen.candidates.values_mut() {
            let z = OutputObserved { output: "z".into(), ..outputs[0].clone() };
            outputs.push(z);
        }
        let of = |atol: f64| Tolerance { atol, ..Tolerance::default() };
        let c = under([("y".to_string(), of(1e-6)), ("z".to_string(), of(10.0))].into(), &[seen.clone(), seen]);
        assert_eq!((indecisive(&c), c.weak), (vec!["zeros as z".to_string()], vec![]));
    }

    #[test]
    fn a_declared_output_makes_nothing_indecisive_and_what_passes_as_it_is_still_known() {
        let seen = [nulls(&[("zeros", 1.0)])];
        let tolerance = [("y".to_string(), Tolerance { atol: 10.0, ..Tolerance::default() })].into();
        let case =
            CalibrateCase { shape: "s".into(), distribution: "uniform".into(), tolerance, derived: None, own: false };
        let params = CalibrateParams { cases: vec![case], undecidable: vec!["y".into()], ..asking() };
        let c = calibrate(&params, &seen);
        assert_eq!((indecisive(&c), c.undecidable), (vec![], [("y".into(), vec!["zeros".into()])].into()));
    }

    #[test]
    fn elements_that_were_not_counted_are_no_evidence_against_a_candidate() {
        let half = Tolerance { atol: 0.1, matched: 0.5, ..Tolerance::default() };
        let seen = nulls(&[("zeros", 1.0)]);
        let tolerance: BTreeMap<_, _> = [("y".to_string(), half.clone())].into();
        assert_eq!(
            indecisive(&under(tolerance.clone(), std::slice::from_ref(&seen))),
            ["another seed as y", "zeros as y"]
        );
        let counted = |beyond| {
            let mut seen = seen.clone();
            seen.candidates.values_mut().for_each(|outputs| outputs[0].beyond = Some(beyond));
            under(tolerance.clone(), &[seen]).indecisive.len()
        };
        assert_eq!((counted(1), counted(2)), (1, 0));
        let capped = Tolerance { max_error: Some(0.5), ..half };
        assert!(under([("y".to_string(), capped)].into(), &[seen]).indecisive.is_empty());
    }
}
