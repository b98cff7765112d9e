//! Expected values of built-in operators in f64 (integers exact), and their scales. Does not know comparisons or tolerances.
//!
//! Sums are compensated ([`super::rows`]); matrix products add 256 terms at a time in a fixed order. Elementary functions come from `libm`, not from the
//! system's mathematics library, so that the digest of an expectation is the same on every machine (for matrix products: on every machine with fused
//! multiply-add). The scale S of an output is its operator on absolute values: a rounding error of an accumulator is proportional to it. Each built-in
//! documents its scale; integer outputs have none.
//!
//! Memory: eight bytes for every value of every tensor, the same again for tensors whose rows are not along the last axis, and twice
//! the outputs if S is requested.

use std::collections::BTreeMap;

use super::bind::{Bound, Call, input};
use super::check::check;
use super::error::Error;
use super::gemm::ProductBackend;
use super::values::{Values, logical_len};
use kforge_types::model::{Problem, Role};

/// Whether an output can have a scale. With a built-in, every float output has one. A reference of the package may give one for any float output.
pub fn has_scale(problem: &Problem, output: &str) -> bool {
    problem.tensor(output).is_some_and(|tensor| tensor.role != Role::Input && tensor.dtype.is_float())
}

/// Expected values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OracleOutput {
    /// Every written tensor, row-major, before rounding to its dtype.
    pub outputs: BTreeMap<String, Values>,
    /// The operator on absolute values, for float outputs, if it was requested.
    pub scales: BTreeMap<String, Vec<f64>>,
}

/// Computes every written tensor. `inputs` holds every tensor that is read. Errors: the problem does not fit its built-in (with everything that does not fit),
/// values are missing, or indices among them are out of range.
pub fn expected(problem: &Problem, inputs: &BTreeMap<String, Values>, scale: bool) -> Result<OracleOutput, Error> {
    expected_with(problem, inputs, scale, None)
}

/// Like [`expected`], with the same bits, but with a backend for large matrix products.
pub fn expected_with(
    problem: &Problem,
    inputs: &BTreeMap<String, Values>,
    scale: bool,
    elsewhere: Option<&dyn ProductBackend>,
) -> Result<OracleOutput, Error> {
    check(problem)?;
    let bound = Bound::new(problem)?;
    let produced = (bound.builtin.run)(&Call { bound, inputs, elsewhere }, scale)?;
    let accumulates = problem.reference.accumulates();
    let mut output = OracleOutput::default();
    for (slot, values) in produced.values {
        let Some(tensor) = bound.tensor(&slot).filter(|tensor| tensor.role != Role::Input) else { continue };
        let mut values = values.as_kind_of(tensor.dtype);
        if values.len() != logical_len(tensor) {
            return Err(Error::Produced {
                builtin: bound.builtin.name,
                tensor: tensor.name.clone(),
                found: values.len(),
                expected: logical_len(tensor),
            });
        }
        if accumulates {
            add(&mut values, input(inputs, tensor)?);
        }
        output.outputs.insert(tensor.name.clone(), values);
    }
    for (slot, mut values) in produced.scales {
        if let Some(tensor) = bound.tensor(&slot).filter(|t| t.role != Role::Input && t.dtype.is_float()) {
            if accumulates {
                let before = input(inputs, tensor)?.magnitudes();
                values.iter_mut().zip(before).for_each(|(scale, before)| *scale += before);
            }
            output.scales.insert(tensor.name.clone(), values);
        }
    }
    match problem.written().find(|tensor| !output.outputs.contains_key(&tensor.name)) {
        Some(tensor) => Err(Error::NotComputed { builtin: bound.builtin.name, tensor: tensor.name.clone() }),
        None => Ok(output),
    }
}

/// Adds what an output held before. Integers wrap, as those of a kernel do.
fn add(values: &mut Values, before: &Values) {
    match (values, before) {
        (Values::Float(values), Values::Float(before)) => values.iter_mut().zip(before).for_each(|(x, b)| *x += b),
        (Values::Int(values), Values::Int(before)) => {
            values.iter_mut().zip(before).for_each(|(x, b)| *x = x.wrapping_add(*b));
        }
        // Both have the kind of the tensor's dtype.
        (Values::Float(_), Values::Int(_)) | (Values::Int(_), Values::Float(_)) => {}
    }
}
