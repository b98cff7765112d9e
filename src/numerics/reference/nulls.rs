//! Null candidates: answers that a kernel can give without doing its work, or with less precision than required. If a tolerance accepts one of them on every
//! shape and distribution, it cannot distinguish that null candidate from a correct answer. Does not know tolerances.
//!
//! * `zeros`; `constant 1`; `constant mean`: the mean of the expectation's finite values, or its value if it has only one. An expectation that is one value
//!   everywhere has no such candidate.
//! * `copy of x`: an input with as many values as the output, or one that broadcasts to it along trailing axes.
//! * `another seed`: the expectation for other inputs.
//! * `inputs rounded to f16`: the expectation for the same inputs rounded to the next narrower dtype, if the operator declares float arithmetic. Only inputs
//!   of the widest float dtype among them are rounded: `f64` to `f32`, `f32` to `f16` (whose 11 significant bits are also those of tf32, so that both are
//!   covered), `f16` and `bf16` to `f8e4m3`. Narrower dtypes have no such null candidate.
//!
//! A null candidate lists only the outputs in which it differs from the expectation once both are rounded to the output's dtype. One
//! that differs in none is left out.

use std::collections::BTreeMap;

use super::error::Error;
use super::float::{round_to, wrap};
use super::ops::matmul::{broadcast, broadcast_places};
use super::oracle;
use super::values::{Values, logical_len, logical_shape};
use kforge_types::model::{DType, Problem, Reference, Tensor};

/// A null candidate: its name, and values for the outputs in which it differs from the expectation.
pub type NullCandidate = (String, BTreeMap<String, Values>);

/// Every null candidate of a built-in or other reference. `expected` and `other` are the expectations of the trial and of another seed. For a reference of the
/// package, the candidate of lower precision is missing, because only the package's own process can compute it: see [`lower_precision`] and [`candidate`].
/// Errors: the oracle's, on rounded inputs.
pub fn candidates(
    problem: &Problem,
    inputs: &BTreeMap<String, Values>,
    expected: &BTreeMap<String, Values>,
    other: &BTreeMap<String, Values>,
) -> Result<Vec<NullCandidate>, Error> {
    let mut found = Vec::new();
    let mut put =
        |name: String, values: BTreeMap<String, Values>| found.extend(candidate(problem, expected, name, values));
    let filled = |value: fn(&Values) -> f64| {
        let fill = |tensor: &Tensor| {
            let want = expected.get(&tensor.name)?;
            let values = Values::Float(vec![value(want); logical_len(tensor)]).as_kind_of(tensor.dtype);
            Some((tensor.name.clone(), values))
        };
        problem.written().filter_map(fill).collect::<BTreeMap<_, _>>()
    };
    put("zeros".to_owned(), filled(|_| 0.0));
    put("constant 1".to_owned(), filled(|_| 1.0));
    put("constant mean".to_owned(), filled(mean));
    for input in problem.read() {
        if let Some(values) = inputs.get(&input.name) {
            put(format!("copy of {}", input.name), copies(problem, input, values));
        }
    }
    put("another seed".to_owned(), other.clone());
    if let (Reference::Builtin { .. }, Some((name, rounded))) = (&problem.reference, lower_precision(problem, inputs)) {
        put(name, oracle::expected(problem, &rounded, false)?.outputs);
    }
    Ok(found)
}

/// A null candidate reduced to the outputs in which it differs from the expectation after rounding; none if there is no such output.
pub fn candidate(
    problem: &Problem,
    expected: &BTreeMap<String, Values>,
    name: String,
    mut values: BTreeMap<String, Values>,
) -> Option<NullCandidate> {
    values.retain(|output, got| {
        let (Some(tensor), Some(want)) = (problem.tensor(output), expected.get(output)) else { return false };
        !equal_once_rounded(tensor.dtype, got, want)
    });
    (!values.is_empty()).then_some((name, values))
}

/// Whether values are the same after storing them in a dtype; stops at the first difference. NaN equals NaN, and zeros of either sign are equal.
fn equal_once_rounded(dtype: DType, a: &Values, b: &Values) -> bool {
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    match (a, b) {
        (Values::Float(a), Values::Float(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(round_to(dtype, *a), round_to(dtype, *b)))
        }
        (Values::Int(a), Values::Int(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| wrap(dtype, *a) == wrap(dtype, *b))
        }
        _ => false,
    }
}

/// The value of all, if they have only one; otherwise the mean of the finite values, or 0 if there are none.
fn mean(values: &Values) -> f64 {
    let floats = values.to_f64(DType::I64);
    // A mean may be off by a rounding, and is no infinity.
    if let Some(first) = floats.first()
        && floats.iter().all(|x| x == first || (x.is_nan() && first.is_nan()))
    {
        return *first;
    }
    let finite = floats.iter().filter(|x| x.is_finite());
    let count = finite.clone().count().max(1) as f64;
    super::rows::sum(finite.map(|x| x / count))
}

/// An input as the value of every output that it fits.
fn copies(problem: &Problem, input: &Tensor, values: &Values) -> BTreeMap<String, Values> {
    let own = logical_shape(input);
    let fitting = problem.written().filter_map(|output| {
        let shape = logical_shape(output);
        let copied = if logical_len(output) == values.len() {
            values.clone()
        } else if !values.is_empty() && broadcast(&own, &shape).as_ref() == Some(&shape) {
            values.take(broadcast_places(&shape, &own).into_iter())
        } else {
            return None;
        };
        Some((output.name.clone(), copied.as_kind_of(output.dtype)))
    });
    fitting.collect()
}

/// The next narrower dtype of float arithmetic.
fn narrower(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F64 => Some(DType::F32),
        DType::F32 => Some(DType::F16),
        DType::F16 | DType::Bf16 => Some(DType::F8e4m3),
        _ => None,
    }
}

/// The inputs with the widest float dtype rounded to the next narrower one, and the null candidate's name; none if there is no narrower dtype.
pub fn lower_precision(problem: &Problem, inputs: &BTreeMap<String, Values>) -> Option<NullCandidate> {
    let widest = problem.read().map(|t| t.dtype).filter(|d| d.is_float()).min()?;
    let lower = narrower(widest)?;
    let mut rounded = inputs.clone();
    for tensor in problem.read().filter(|tensor| narrower(tensor.dtype) == Some(lower)) {
        if let Some(Values::Float(values)) = rounded.get_mut(&tensor.name) {
            // A narrower type may lack infinities, and a mask of them is no less precise in it.
            values.iter_mut().filter(|x| x.is_finite()).for_each(|x| *x = round_to(lower, *x));
        }
    }
    Some((format!("inputs rounded to {lower}"), rounded))
}
