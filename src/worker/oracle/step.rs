//! The oracle step: digests of expected values, and how null candidates compare. Knows the step's parameters and outputs.

use super::nulls;
use super::source::Source;
use crate::record::params::OracleParams;
use crate::worker::message::Response;
use crate::worker::task::{Task, done};

/// Does an oracle step.
pub fn run(task: &Task) -> Response {
    compute(task).unwrap_or_else(|response| response)
}

fn compute(task: &Task) -> Result<Response, Response> {
    let params: OracleParams = task.params()?;
    let source = Source::new(task, &params.problem);
    let inputs = source.inputs(&params.trial)?;
    let expected = source.expected(&inputs, params.scale)?;
    task.write_document("expected", &source.keep(&expected)?)?;
    if params.nulls {
        task.write_document("nulls", &nulls::observed(&source, &params.problem, &params.trial, &inputs, &expected)?)?;
    }
    let values: usize = expected.outputs.values().map(|values| values.len()).sum();
    Ok(done(format!("{values} expected values"), vec![]))
}
