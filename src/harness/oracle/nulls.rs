//! Compares null candidates with the expected values. Knows the candidates of `reference`. Reads a tolerance only to count elements if `matched` is below one,
//! so that an edit of any other tolerance reruns nothing.

use super::source::{Named, Source};
use crate::compare::{CheckResult, Compared, Leniency, observe};
use crate::message::Response;
use crate::task::failed;
use kforge_numerics::reference::float::round_values;
use kforge_numerics::reference::oracle::OracleOutput;
use kforge_numerics::reference::{Values, nulls};
use kforge_types::model::{Compare, Reference, Tensor};
use kforge_types::record::params::{NullsObserved, OracleParams, Trial};

/// The inputs of the null candidates that a reference of the package computes: another seed, and inputs in lower precision if there are any.
pub(super) fn inputs(source: &Source<'_>, params: &OracleParams, inputs: &Named) -> Result<Vec<Named>, Response> {
    let other = source.inputs(&another(&params.trial))?;
    Ok([other].into_iter().chain(nulls::lower_precision(&params.problem, inputs).map(|(_, rounded)| rounded)).collect())
}

/// Any other seed will do; the complement of a seed always differs from it.
fn another(trial: &Trial) -> Trial {
    Trial { seed: !trial.seed, ..trial.clone() }
}

/// Compares every null candidate of a trial. `ahead` holds the expected values of [`inputs`], if they are computed already.
pub(super) fn observed(
    source: &Source<'_>,
    params: &OracleParams,
    (inputs, expected): (&Named, &OracleOutput),
    ahead: Vec<OracleOutput>,
) -> Result<NullsObserved, Response> {
    let problem = &params.problem;
    let mut ahead = ahead.into_iter();
    let mut compute = |made: &dyn Fn() -> Result<Named, Response>| match ahead.next() {
        Some(known) => Ok(known.outputs),
        None => Ok(source.expected(&made()?, false)?.outputs),
    };
    let other = compute(&|| source.inputs(&another(&params.trial)))?;
    let mut found = nulls::candidates(problem, inputs, &expected.outputs, &other)
        .map_err(|e| failed(format!("cannot make null candidates: {e}")))?;
    // For a reference of the package, only the package's process can compute this candidate.
    if !matches!(problem.reference, Reference::Builtin { .. })
        && let Some((name, rounded)) = nulls::lower_precision(problem, inputs)
    {
        let values = compute(&|| Ok(rounded.clone()))?;
        found.extend(nulls::candidate(problem, &expected.outputs, name, values));
    }
    let ask = |output: (&Tensor, &Values), answers: &[(String, &Values)], check: (&str, &str)| {
        source.checked(inputs, output, answers, check)
    };
    compared(params, inputs, expected, &found, &ask)
}

/// Asks a function of the package, given by file and name, about answers for an output with its expected values.
type CheckFn<'a> =
    dyn Fn((&Tensor, &Values), &[(String, &Values)], (&str, &str)) -> Result<Vec<CheckResult>, Response> + 'a;

/// Compares candidates in the same way as the outputs of kernels. Proceeds output by output, so that a function of the package is called once for all
/// candidates.
fn compared(
    params: &OracleParams,
    inputs: &Named,
    expected: &OracleOutput,
    found: &[nulls::NullCandidate],
    ask: &CheckFn<'_>,
) -> Result<NullsObserved, Response> {
    let problem = &params.problem;
    let mut seen = NullsObserved { candidates: Default::default() };
    for tensor in problem.written() {
        let name = &tensor.name;
        let Some(want) = expected.outputs.get(name) else { continue };
        // Candidates omit an output for which they equal the expected values, because that output cannot distinguish them.
        let answers = found.iter().filter_map(|(candidate, values)| Some((candidate, values.get(name)?)));
        let answers: Vec<(&String, Values)> =
            answers.map(|(candidate, got)| (candidate, round_values(tensor.dtype, got))).collect();
        let mut said = vec![];
        let mut by = String::new();
        let compare = params.compare.get(name).unwrap_or(&Compare::Elements);
        if let Compare::Python(file, function) = compare
            && !answers.is_empty()
        {
            let whose = |candidate: &String| format!("the null candidate `{candidate}`");
            let asked: Vec<_> = answers.iter().map(|(candidate, got)| (whose(candidate), got)).collect();
            said = ask((tensor, want), &asked, (file, function))?;
            by = format!("{file}::{function}");
        }
        let mut said = said.into_iter();
        for (candidate, got) in answers {
            let leniency = match Leniency::declared(compare, problem, name, inputs).map_err(failed)? {
                Some(leniency) => leniency,
                None => {
                    let silent =
                        || failed(format!("`{by}` did not say whether `{candidate}` is acceptable for `{name}`"));
                    Leniency::Check(by.clone(), said.next().ok_or_else(silent)?)
                }
            };
            let scale = expected.scales.get(name).filter(|_| params.scaled.contains(name)).map(Vec::as_slice);
            let beyond = params.count_beyond.get(name);
            let observed = observe(&Compared { tensor, got: &got, want, scale, beyond }, &leniency).map_err(failed)?;
            seen.candidates.entry(candidate.clone()).or_default().push(observed);
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Accepted;
    use kforge_types::model::{DType, Problem, Role, Tolerance};
    use kforge_types::record::OutputObserved;

    /// The observation of the answer `copy of x`, where `x` holds 3, 1, 2 and `y` should hold 1, 2, 3.
    fn copied(compare: Compare, count_beyond: &[(&str, f64)]) -> Option<OutputObserved> {
        let tensor = |name: &str, role| Tensor::dense(name, role, DType::F32, &[3]);
        let reference = Reference::Cpp { file: "ref.cpp".into(), function: "f".into() };
        let problem = Problem::of(vec![tensor("x", Role::Input), tensor("y", Role::Output)], reference);
        let tolerance = |atol: f64| Tolerance { atol, matched: 0.5, ..Tolerance::default() };
        let params = OracleParams {
            problem,
            trial: Trial { trial: 0, seed: 1, distribution: "normal".into() },
            scaled: vec![],
            nulls: true,
            compare: [("y".to_string(), compare)].into(),
            count_beyond: count_beyond.iter().map(|(name, atol)| (name.to_string(), tolerance(*atol))).collect(),
            holdout: false,
        };
        let values = |name: &str, values: [f64; 3]| (name.to_string(), Values::Float(values.to_vec()));
        let x = values("x", [3.0, 1.0, 2.0]);
        let found = ("copy of x".to_string(), [("y".to_string(), x.1.clone())].into());
        let expected = OracleOutput { outputs: [values("y", [1.0, 2.0, 3.0])].into(), ..OracleOutput::default() };
        let ask: &CheckFn<'_> = &|(tensor, _), answers, check| {
            assert_eq!((tensor.name.as_str(), check), ("y", ("ref.py", "check")));
            assert_eq!(answers[0].0, "the null candidate `copy of x`");
            let each = answers.iter().map(|(_, got)| match got {
                Values::Float(got) => got.iter().map(|x| *x < 3.0).collect(),
                Values::Int(_) => vec![],
            });
            Ok(each.map(|each| CheckResult { accepted: Accepted::Elements(each), message: None }).collect())
        };
        let seen = compared(&params, &[x].into(), &expected, &[found], ask).unwrap();
        seen.candidates.get("copy of x").map(|outputs| outputs[0].clone())
    }

    #[test]
    fn null_candidates_are_compared_as_kernels_are() {
        assert!(!copied(Compare::Elements, &[]).unwrap().front.is_empty());
        assert!(copied(Compare::Unordered, &[]).unwrap().front.is_empty());
    }

    #[test]
    fn a_function_of_the_package_is_asked_about_them() {
        let checked = copied(Compare::Python("ref.py".into(), "check".into()), &[]).unwrap().checked.unwrap();
        assert_eq!((checked.by.as_str(), checked.rejected, checked.whole), ("ref.py::check", 1, false));
    }

    #[test]
    fn elements_beyond_a_tolerance_are_counted_where_a_share_of_them_may_be() {
        assert_eq!(copied(Compare::Elements, &[]).unwrap().beyond, None);
        assert_eq!(copied(Compare::Elements, &[("y", 1.5)]).unwrap().beyond, Some(1));
    }
}
