//! The oracle step: digests of expected values, and the comparison of null candidates. Knows the step's parameters and outputs.

use super::nulls;
use super::source::{Named, Source};
use crate::message::Response;
use crate::task::{Task, done, failed};
use kforge_foundation::base::{Severity, count};
use kforge_numerics::reference::ProductBackend;
use kforge_numerics::reference::oracle::OracleOutput;
use kforge_types::model::{Problem, Reference};
use kforge_types::record::Note;
use kforge_types::record::params::OracleParams;

/// The code of the note about the precision of a reference.
const PRECISION: &str = "oracle.precision";

/// Executes an oracle step. `elsewhere`, if set, computes large matrix products.
pub fn run(task: &Task, elsewhere: Option<Box<dyn ProductBackend>>) -> Response {
    compute(task, elsewhere).unwrap_or_else(|response| response)
}

fn compute(task: &Task, elsewhere: Option<Box<dyn ProductBackend>>) -> Result<Response, Response> {
    let params: OracleParams = task.params()?;
    let source = Source::new(task, &params.problem).with_products(elsewhere);
    let inputs = source.inputs(&params.trial)?;
    // For a reference in PyTorch, the values for null candidates are computed by the same process.
    let mut ahead = match (&params.problem.reference, params.nulls) {
        (Reference::Torch { .. }, true) => nulls::inputs(&source, &params, &inputs)?,
        _ => vec![],
    };
    let sets: Vec<&Named> = [&inputs].into_iter().chain(&ahead).collect();
    let mut computed = source.expected_of_all(&sets, !params.scaled.is_empty())?.into_iter();
    let expected = computed.next().ok_or_else(|| failed("BUG: a reference gave no expected values".to_string()))?;
    ahead.clear();
    let computed: Vec<OracleOutput> = computed.collect();
    for output in &params.scaled {
        scale_given(&params.problem, output, &expected)?;
    }
    task.write_document("expected", &source.keep(&expected)?)?;
    if params.nulls {
        task.write_document("nulls", &nulls::observed(&source, &params, (&inputs, &expected), computed)?)?;
    }
    let values: usize = expected.outputs.values().map(|values| values.len()).sum();
    let made = source.said().map_or(String::new(), |said| format!(", {said}"));
    let precision = source.precision();
    let floats = precision.map_or(String::new(), |precision| format!(", by PyTorch in {}", precision.floats()));
    let noted = precision.map(|precision| {
        // All trials of a shape say the same, so one of them says it aloud.
        let aloud = precision.is_low() && params.trial.trial == 0;
        Note::new(if aloud { Severity::Warning } else { Severity::Note }, PRECISION, precision.said())
    });
    Ok(done(format!("{}{made}{floats}", count(values, "expected value")), noted.into_iter().collect()))
}

/// Refuses a reference of the package that returns no scale for an output whose tolerance uses it: `scaled` would then allow nothing.
fn scale_given(problem: &Problem, output: &str, expected: &OracleOutput) -> Result<(), Response> {
    let float = problem.tensor(output).is_some_and(|tensor| tensor.dtype.is_float());
    if !float || expected.scales.contains_key(output) {
        return Ok(());
    }
    let (file, function, how) = match &problem.reference {
        // Every built-in returns a scale.
        Reference::Builtin { name, .. } => {
            return Err(failed(format!("BUG: the built-in `{name}` gave no scale for `{output}`")));
        }
        Reference::Python { file, function } => {
            (file, function, format!("return a dict whose `\"{output}.scale\"` is the operator on absolute values"))
        }
        Reference::Torch { file, function, .. } => {
            (file, function, format!("return a dict whose `\"{output}.scale\"` is the operator on absolute values"))
        }
        Reference::Cpp { file, function } => {
            (file, function, format!("fill `call.scale(\"{output}\")` with the operator on absolute values"))
        }
    };
    Err(failed(format!(
        "the tolerance of `{output}` declares `scaled`, but `{file}::{function}` gives no scale for it: {how}, or declare `atol` and `rtol` instead"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Role, Tensor};

    #[test]
    fn a_tolerance_in_scales_needs_a_reference_that_gives_them() {
        let check = |reference: Reference, scales: &[&str]| {
            let problem = Problem::of(vec![Tensor::dense("y", Role::Output, DType::F32, &[1])], reference);
            let scales = scales.iter().map(|name| (name.to_string(), vec![1.0])).collect();
            match scale_given(&problem, "y", &OracleOutput { scales, ..OracleOutput::default() }) {
                Err(Response::Failed { message, .. }) => message,
                Err(other) => format!("{other:?}"),
                Ok(()) => String::new(),
            }
        };
        let python = || Reference::Python { file: "ref.py".into(), function: "f".into() };
        let said = check(python(), &[]);
        assert!(said.contains("`y`") && said.contains("`ref.py::f`") && said.contains("`\"y.scale\"`"), "{said}");
        assert_eq!(check(python(), &["y"]), "");
        let said = check(Reference::Cpp { file: "ref.cpp".into(), function: "f".into() }, &["z"]);
        assert!(said.contains("`ref.cpp::f`") && said.contains("`call.scale(\"y\")`"), "{said}");
    }
}
