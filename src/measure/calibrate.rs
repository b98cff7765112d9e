//! Whether an operator's tolerance, shapes and distributions can tell right from wrong: null candidates are judged like kernels, and must fail somewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::judge::judge_output;
use crate::model::{DType, Tolerance};
use crate::record::params::{CalibrateParams, Calibration, NullsObserved};

/// The tolerance for an output of that type whose elements sum up to `reduction` terms, for `tolerance = "auto"`.
///
/// One rounding to the output's type is half an epsilon; sums in an f32 accumulator grow like the square root of their length (random signs), to which a factor
/// of four is given; `atol` is the same against values of order one.
pub fn derived(dtype: DType, reduction: u64) -> Tolerance {
    if !dtype.is_float() {
        return Tolerance::default();
    }
    let acc = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let rounding = dtype.epsilon() + 4.0 * (reduction.max(1) as f64).sqrt() * acc.epsilon();
    Tolerance { atol: rounding, rtol: rounding, acc, ..Tolerance::default() }
}

/// Judges every null candidate on every case. `nulls[i]` belongs to `params.cases[i]`.
pub fn calibrate(params: &CalibrateParams, nulls: &[NullsObserved]) -> Calibration {
    let mut passes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut listed: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let mut tolerance = Vec::with_capacity(nulls.len());
    for (case, (declared, seen)) in params.cases.iter().zip(nulls).enumerate() {
        let of_case = match &declared.tolerance {
            Some(t) => t.clone(),
            None => seen
                .candidates
                .values()
                .flatten()
                .map(|output| (output.output.clone(), derived(output.dtype, seen.reduction)))
                .collect(),
        };
        for (candidate, outputs) in &seen.candidates {
            listed.entry(candidate).or_default().insert(case);
            let fallback = Tolerance::default();
            if outputs.iter().all(|o| judge_output(o, of_case.get(&o.output).unwrap_or(&fallback)).pass) {
                passes.entry(candidate).or_default().push(case);
            }
        }
        tolerance.push(of_case);
    }
    let mut calibration = Calibration { indecisive: vec![], weak: vec![], tolerance };
    for (candidate, cases) in passes {
        if cases.len() == listed[candidate].len() {
            calibration.indecisive.push(candidate.into());
        } else {
            calibration.weak.push((candidate.into(), cases));
        }
    }
    calibration
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Comparison, rms};
    use super::*;
    use crate::record::params::CalibrateCase;

    fn nulls(candidates: &[(&str, f64)]) -> NullsObserved {
        let want = [1.0, -2.0];
        let observe = |off: f64| {
            let mut c = Comparison::new("y", DType::F32, &[2], rms(&want), None);
            c.floats(0, &[want[0] + off, want[1]], &want, None);
            vec![c.finish()]
        };
        NullsObserved {
            candidates: candidates.iter().map(|(n, off)| (n.to_string(), observe(*off))).collect(),
            reduction: 1,
        }
    }

    fn run(atol: f64, cases: &[NullsObserved]) -> Calibration {
        let tolerance = Some([("y".to_string(), Tolerance { atol, ..Tolerance::default() })].into());
        let case = CalibrateCase { distribution: "uniform".into(), tolerance };
        calibrate(&CalibrateParams { cases: vec![case; cases.len()] }, cases)
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
        assert_eq!((c.indecisive, c.weak), (vec!["inputs rounded to f16".to_string()], vec![]));
    }

    #[test]
    fn one_that_passes_on_some_shape_only_is_weak() {
        let c = run(0.1, &[nulls(&[("zeros", 0.05)]), nulls(&[("zeros", 1.0)])]);
        assert_eq!((c.indecisive, c.weak), (vec![], vec![("zeros".to_string(), vec![0])]));
    }

    #[test]
    fn a_candidate_is_asked_only_where_it_is_listed() {
        let c = run(0.1, &[nulls(&[("copy of x", 0.05)]), nulls(&[("zeros", 1.0)])]);
        assert_eq!(c.indecisive, ["copy of x"]);
    }

    #[test]
    fn derived_tolerances_follow_type_and_length() {
        let c = calibrate(
            &CalibrateParams { cases: vec![CalibrateCase { distribution: "u".into(), tolerance: None }] },
            &[nulls(&[("zeros", 1.0)])],
        );
        assert_eq!(c.tolerance[0]["y"], derived(DType::F32, 1));
        assert!(derived(DType::F16, 1).rtol > derived(DType::F32, 4096).rtol);
        assert!(c.indecisive.is_empty());
    }
}
