//! How answers that take no work compare with the expectation. Knows candidates of `reference`; reads no
//! tolerance but to count by where `matched` is below one, so that any other that is edited costs no run.

use super::source::{Named, Source};
use crate::model::{Compare, Reference};
use crate::record::params::{NullsObserved, OracleParams, Trial};
use crate::reference::nulls;
use crate::reference::oracle::OracleOutput;
use crate::worker::compare::{Compared, Leniency, observe};
use crate::worker::message::Response;
use crate::worker::task::failed;

/// Compares every null candidate of a trial.
pub(super) fn observed(
    source: &Source<'_>,
    params: &OracleParams,
    inputs: &Named,
    expected: &OracleOutput,
) -> Result<NullsObserved, Response> {
    let (problem, trial) = (&params.problem, &params.trial);
    // Any other seed will do; the complement of one is never the same.
    let other = Trial { seed: !trial.seed, ..trial.clone() };
    let other = source.expected(&source.inputs(&other)?, false)?.outputs;
    let mut found = nulls::candidates(problem, inputs, &expected.outputs, &other)
        .map_err(|e| failed(format!("cannot make null candidates: {e}")))?;
    // Of a reference of the package's own only its process can compute this one.
    if !matches!(problem.reference, Reference::Builtin { .. })
        && let Some((name, rounded)) = nulls::lower_precision(problem, inputs)
    {
        let values = source.expected(&rounded, false)?.outputs;
        found.extend(nulls::candidate(problem, &expected.outputs, name, values));
    }
    compared(params, inputs, expected, &found)
}

/// Compares candidates as the answers of kernels are compared.
fn compared(
    params: &OracleParams,
    inputs: &Named,
    expected: &OracleOutput,
    found: &[nulls::Candidate],
) -> Result<NullsObserved, Response> {
    let problem = &params.problem;
    let mut seen = NullsObserved { candidates: Default::default() };
    for (candidate, values) in found {
        let mut outputs = vec![];
        for tensor in problem.written() {
            let name = &tensor.name;
            // An output in which a candidate is the expectation says nothing of it.
            let (Some(want), Some(got)) = (expected.outputs.get(name), values.get(name)) else { continue };
            let compare = params.compare.get(name).unwrap_or(&Compare::Elements);
            // What a function of the package accepts is not asked: the calibrate step says so.
            let Some(leniency) = Leniency::declared(compare, problem, name, inputs).map_err(failed)? else { continue };
            let rounded = crate::reference::float::round_values(tensor.dtype, got);
            let scale = expected.scales.get(name).filter(|_| params.scaled.contains(name)).map(Vec::as_slice);
            let beyond = params.count_beyond.get(name);
            let compared = Compared { tensor, got: &rounded, want, scale, beyond };
            outputs.push(observe(&compared, &leniency).map_err(failed)?);
        }
        if outputs.is_empty() {
            continue;
        }
        seen.candidates.insert(candidate.clone(), outputs);
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Init, Problem, Role, Tensor, Tolerance};
    use crate::record::OutputObserved;
    use crate::reference::Values;

    /// What is seen of an answer `copy of x` where 3, 1, 2 in `x` shall become 1, 2, 3 in `y`.
    fn copied(compare: Compare, count_beyond: &[(&str, f64)]) -> Option<OutputObserved> {
        let tensor = |name: &str, role| Tensor {
            name: name.into(),
            role,
            dtype: DType::F32,
            shape: vec![3],
            strides: vec![1],
            align: 256,
            init: Init::Auto,
        };
        let problem = Problem {
            dims: Default::default(),
            tensors: vec![tensor("x", Role::Input), tensor("y", Role::Output)],
            params: vec![],
            reference: Reference::Cpp { file: "ref.cpp".into(), function: "f".into() },
            generate_inputs: None,
        };
        let tolerance = |atol: f64| Tolerance { atol, matched: 0.5, ..Tolerance::default() };
        let params = OracleParams {
            problem,
            trial: Trial { trial: 0, seed: 1, distribution: "normal".into() },
            scaled: vec![],
            nulls: true,
            compare: [("y".to_string(), compare)].into(),
            count_beyond: count_beyond.iter().map(|(name, atol)| (name.to_string(), tolerance(*atol))).collect(),
        };
        let values = |name: &str, values: [f64; 3]| (name.to_string(), Values::Float(values.to_vec()));
        let x = values("x", [3.0, 1.0, 2.0]);
        let found = ("copy of x".to_string(), [("y".to_string(), x.1.clone())].into());
        let expected = OracleOutput { outputs: [values("y", [1.0, 2.0, 3.0])].into(), ..OracleOutput::default() };
        let seen = compared(&params, &[x].into(), &expected, &[found]).unwrap();
        seen.candidates.get("copy of x").map(|outputs| outputs[0].clone())
    }

    #[test]
    fn null_candidates_are_compared_as_kernels_are() {
        assert!(!copied(Compare::Elements, &[]).unwrap().front.is_empty());
        assert!(copied(Compare::Unordered, &[]).unwrap().front.is_empty());
    }

    #[test]
    fn what_a_function_of_the_package_compares_is_left_out() {
        assert_eq!(copied(Compare::Python("ref.py".into(), "check".into()), &[]), None);
    }

    #[test]
    fn elements_beyond_a_tolerance_are_counted_where_a_share_of_them_may_be() {
        assert_eq!(copied(Compare::Elements, &[]).unwrap().beyond, None);
        assert_eq!(copied(Compare::Elements, &[("y", 1.5)]).unwrap().beyond, Some(1));
    }
}
