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
    let mut seen = NullsObserved { candidates: Default::default() };
    for (candidate, values) in &found {
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
