//! How answers that take no work compare with the expectation. Knows candidates of `reference`; reads no tolerance, so an edited one costs no run.

use super::source::{Named, Source};
use crate::model::{Problem, Reference};
use crate::record::params::{NullsObserved, Trial};
use crate::reference::oracle::OracleOutput;
use crate::reference::{cost, nulls};
use crate::worker::compare::{Compared, Leniency, observe};
use crate::worker::message::Response;
use crate::worker::task::failed;

/// Compares every null candidate of a trial.
pub(super) fn observed(
    source: &Source<'_>,
    problem: &Problem,
    trial: &Trial,
    inputs: &Named,
    expected: &OracleOutput,
) -> Result<NullsObserved, Response> {
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
    let mut seen = NullsObserved { candidates: Default::default(), reduction: cost::reduction_length(problem) };
    for (name, values) in &found {
        let mut outputs = vec![];
        for tensor in problem.written() {
            let Some(want) = expected.outputs.get(&tensor.name) else { continue };
            // An output in which a candidate is the expectation still takes part: it passes.
            let got = values.get(&tensor.name).unwrap_or(want);
            let rounded = crate::reference::float::round_values(tensor.dtype, got);
            let scale = expected.scales.get(&tensor.name).map(Vec::as_slice);
            let compared = Compared { tensor, got: &rounded, want, scale, beyond: None };
            outputs.push(observe(&compared, &Leniency::Elements).map_err(failed)?);
        }
        seen.candidates.insert(name.clone(), outputs);
    }
    Ok(seen)
}
