//! One output against its expectation, by the way it is declared to be compared. Knows values in memory; `measure` does the comparing. No files, no processes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::measure::compare::{Comparison, rms};
use crate::model::{Compare, DType, Problem, Tensor, Tolerance};
use crate::record::OutputObserved;
use crate::reference::float::round_values;
use crate::reference::{Extreme, Values, extreme, logical_shape};

/// What stands against what.
pub struct Compared<'a> {
    /// The output.
    pub tensor: &'a Tensor,
    /// What was written.
    pub got: &'a Values,
    /// What was expected, before rounding to the output's type.
    pub want: &'a Values,
    /// The scale, where it is carried along.
    pub scale: Option<&'a [f64]>,
    /// The tolerance beyond which elements are counted, where `matched` is below one.
    pub beyond: Option<&'a Tolerance>,
}

/// Ways of taking a different answer for as good as the expected one, before elements are compared.
pub enum Leniency<'a> {
    /// None: element by element.
    Elements,
    /// Indices along an axis of an input: any that points to an extreme value.
    ArgmaxOf(&'a Tensor, &'a Values, Extreme),
    /// Rows of the last axis as multisets.
    Unordered,
    /// The elements that the package's own function accepts.
    Accepted(Vec<bool>),
}

impl<'a> Leniency<'a> {
    /// What an output's declared comparison takes for right; none where only a function of the package can say. Errors: an `argmax_of` that says not along
    /// which axis.
    pub fn declared(
        compare: &Compare,
        problem: &'a Problem,
        output: &str,
        inputs: &'a BTreeMap<String, Values>,
    ) -> Result<Option<Self>, String> {
        Ok(match compare {
            Compare::Elements => Some(Leniency::Elements),
            Compare::Unordered => Some(Leniency::Unordered),
            Compare::ArgmaxOf(input) => {
                let along = extreme(problem, output, input)?;
                let (Some(tensor), Some(values)) = (problem.tensor(input), inputs.get(input)) else {
                    return Err(format!("`{output}` is compared by `{input}`, which is no input"));
                };
                Some(Leniency::ArgmaxOf(tensor, values, along))
            }
            Compare::Python(..) => None,
        })
    }
}

/// Compares one output whole. Errors: values of unequal number.
pub fn observe(compared: &Compared<'_>, leniency: &Leniency<'_>) -> Result<OutputObserved, String> {
    let tensor = compared.tensor;
    let want = round_values(tensor.dtype, compared.want);
    let got = compared.got.clone().as_kind_of(tensor.dtype);
    let scale_fits = compared.scale.is_none_or(|scale| scale.len() == want.len());
    if got.len() != want.len() || !scale_fits {
        return Err(format!("`{}` has {} values, {} are expected", tensor.name, got.len(), want.len()));
    }
    let (got, want) = match leniency {
        Leniency::Elements => (got, want),
        Leniency::ArgmaxOf(input, values, along) => (forgive_ties(got, &want, input, values, *along)?, want),
        Leniency::Unordered => {
            let row = logical_shape(tensor).last().copied().unwrap_or(1).max(1);
            (sorted(got, row), sorted(want, row))
        }
        Leniency::Accepted(accepted) => (forgive(got, &want, |i| accepted.get(i).copied().unwrap_or(false)), want),
    };
    let shape: Vec<u64> = logical_shape(tensor).into_iter().map(|extent| extent as u64).collect();
    let magnitude = match &want {
        Values::Float(want) => rms(want),
        Values::Int(_) => 0.0,
    };
    let mut comparison = Comparison::new(&tensor.name, tensor.dtype, &shape, magnitude, compared.beyond);
    match (&got, &want) {
        (Values::Float(got), Values::Float(want)) => comparison.floats(0, got, want, compared.scale),
        (Values::Int(got), Values::Int(want)) => comparison.ints(0, got, want),
        _ => return Err(format!("`{}` is compared across kinds of numbers", tensor.name)),
    }
    Ok(comparison.finish())
}

/// Replaces what was written by what was expected wherever that is as good.
fn forgive(got: Values, want: &Values, good: impl Fn(usize) -> bool) -> Values {
    match (got, want) {
        (Values::Float(mut got), Values::Float(want)) => {
            got.iter_mut().zip(want).enumerate().filter(|(i, _)| good(*i)).for_each(|(_, (got, want))| *got = *want);
            Values::Float(got)
        }
        (Values::Int(mut got), Values::Int(want)) => {
            got.iter_mut().zip(want).enumerate().filter(|(i, _)| good(*i)).for_each(|(_, (got, want))| *got = *want);
            Values::Int(got)
        }
        (got, _) => got,
    }
}

fn forgive_ties(got: Values, want: &Values, input: &Tensor, values: &Values, along: Extreme) -> Result<Values, String> {
    let shape = logical_shape(input);
    let (row, stride) = match shape.get(along.axis..) {
        Some([row, rest @ ..]) => (*row, rest.iter().product::<usize>()),
        _ => (0, 0),
    };
    let Values::Int(indices) = &got else { return Err("an output that indexes a maximum must be of integers".into()) };
    if row == 0 || indices.len() * row != values.len() {
        return Err(format!("there is not one index for each row of `{}`", input.name));
    }
    let values: Cow<'_, [f64]> = match values {
        Values::Float(values) => Cow::Borrowed(values),
        ints => Cow::Owned(ints.to_f64(input.dtype)),
    };
    // Rows lie `stride` apart within, and `stride` of them side by side.
    let at = |index: usize, along: usize| values[(index / stride * row + along) * stride + index % stride];
    let good: Vec<bool> = indices
        .iter()
        .enumerate()
        .map(|(i, found)| {
            let of_row = (0..row).map(|j| at(i, j));
            let best = match along.largest {
                true => of_row.fold(f64::NEG_INFINITY, f64::max),
                false => of_row.fold(f64::INFINITY, f64::min),
            };
            usize::try_from(*found).is_ok_and(|found| found < row && at(i, found) == best)
        })
        .collect();
    Ok(forgive(got, want, |i| good[i]))
}

fn sorted(values: Values, row: usize) -> Values {
    match values {
        Values::Float(mut v) => {
            v.chunks_mut(row).for_each(|row| row.sort_by(f64::total_cmp));
            Values::Float(v)
        }
        Values::Int(mut v) => {
            v.chunks_mut(row).for_each(<[i64]>::sort_unstable);
            Values::Int(v)
        }
    }
}

/// Largest absolute difference between two sets of values, and whether any pair differs by more than a hundredth of its magnitude plus that of the
/// whole: more than another order of the same additions explains. A pair of which one is not finite counts as infinitely far apart unless equal.
pub fn spread(dtype: DType, a: &Values, b: &Values) -> (f64, bool) {
    let (a, b) = (a.to_f64(dtype), b.to_f64(dtype));
    let whole = rms(&a);
    let mut most: f64 = 0.0;
    let mut gross = false;
    for (a, b) in a.iter().zip(&b) {
        if a == b || (a.is_nan() && b.is_nan()) {
            continue;
        }
        let apart = if a.is_finite() && b.is_finite() { (a - b).abs() } else { f64::INFINITY };
        most = most.max(apart);
        gross |= apart > 1e-2 * (a.abs().max(b.abs()) + whole);
    }
    (most, gross)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Init, Role};

    fn tensor(name: &str, dtype: DType, shape: &[u64]) -> Tensor {
        let strides = crate::model::bound::contiguous(shape);
        let (name, shape) = (name.to_string(), shape.to_vec());
        Tensor { name, role: Role::Output, dtype, shape, strides, align: 256, init: Init::Auto }
    }

    fn differing(tensor: &Tensor, got: Values, want: Values, leniency: &Leniency<'_>) -> u64 {
        let compared = Compared { tensor, got: &got, want: &want, scale: None, beyond: None };
        let seen = observe(&compared, leniency).unwrap();
        seen.differing + seen.front.len() as u64
    }

    #[test]
    fn the_expectation_is_rounded_to_the_outputs_type_first() {
        let y = tensor("y", DType::F16, &[1]);
        let rounded = f64::from(half::f16::from_f64(0.1));
        assert_eq!(differing(&y, Values::Float(vec![rounded]), Values::Float(vec![0.1]), &Leniency::Elements), 0);
    }

    #[test]
    fn any_index_of_the_maximum_will_do_and_no_other() {
        let y = tensor("y", DType::I32, &[2]);
        let x = tensor("x", DType::F32, &[2, 3]);
        let values = Values::Float(vec![5.0, 1.0, 5.0, 0.0, 2.0, 1.0]);
        let check = |got: [i64; 2]| {
            let leniency = Leniency::ArgmaxOf(&x, &values, Extreme { axis: 1, largest: true });
            differing(&y, Values::Int(got.to_vec()), Values::Int(vec![0, 1]), &leniency)
        };
        assert_eq!(check([2, 1]), 0);
        assert_eq!(check([1, 1]), 1);
        assert_eq!(check([-1, 3]), 2);
    }

    #[test]
    fn ties_are_looked_for_along_the_references_own_axis() {
        let problem = |name: &str, axis: i64| Problem {
            dims: Default::default(),
            tensors: vec![
                Tensor { role: Role::Input, ..tensor("x", DType::F32, &[3, 2]) },
                tensor("y", DType::I32, &[2]),
            ],
            params: vec![],
            reference: crate::model::Reference::Builtin {
                name: name.into(),
                attributes: [("axis".to_string(), axis.into())].into(),
                names: BTreeMap::new(),
            },
            generate_inputs: None,
        };
        let inputs = [("x".to_string(), Values::Float(vec![5.0, 0.0, 1.0, 7.0, 5.0, 0.0]))].into();
        let of = Compare::ArgmaxOf("x".into());
        let check = |name: &str, want: [i64; 2], got: [i64; 2]| {
            let problem = problem(name, 0);
            let leniency = Leniency::declared(&of, &problem, "y", &inputs).unwrap().unwrap();
            differing(problem.tensor("y").unwrap(), Values::Int(got.to_vec()), Values::Int(want.to_vec()), &leniency)
        };
        assert_eq!(check("argmax", [0, 1], [2, 1]), 0);
        assert_eq!(check("argmax", [0, 1], [1, 0]), 2);
        assert_eq!(check("argmin", [1, 0], [1, 2]), 0);
        assert_eq!(check("argmin", [1, 0], [0, 1]), 2);
        let refused = Leniency::declared(&of, &problem("sum", 0), "y", &inputs).err().unwrap();
        assert!(refused.contains("`y`") && refused.contains("`sum`"), "{refused}");
    }

    #[test]
    fn unordered_rows_are_compared_as_multisets_and_not_across_rows() {
        let y = tensor("y", DType::I32, &[2, 2]);
        let want = || Values::Int(vec![1, 2, 3, 4]);
        assert_eq!(differing(&y, Values::Int(vec![2, 1, 4, 3]), want(), &Leniency::Unordered), 0);
        assert_eq!(differing(&y, Values::Int(vec![3, 4, 1, 2]), want(), &Leniency::Unordered), 4);
        assert_eq!(differing(&y, Values::Int(vec![2, 2, 3, 4]), want(), &Leniency::Unordered), 1);
    }

    #[test]
    fn a_wrong_number_of_values_is_an_error() {
        let y = tensor("y", DType::I32, &[2]);
        let (got, want) = (Values::Int(vec![1]), Values::Int(vec![1, 2]));
        let compared = Compared { tensor: &y, got: &got, want: &want, scale: None, beyond: None };
        assert!(observe(&compared, &Leniency::Elements).is_err());
    }

    #[test]
    fn rounding_is_told_from_racing() {
        let a = Values::Float(vec![1.0, 100.0]);
        assert_eq!(spread(DType::F32, &a, &Values::Float(vec![1.0, 100.0])), (0.0, false));
        assert_eq!(spread(DType::F32, &a, &Values::Float(vec![1.0, 100.25])), (0.25, false));
        assert_eq!(spread(DType::F32, &a, &Values::Float(vec![1.0, 50.0])), (50.0, true));
        assert!(spread(DType::F32, &a, &Values::Float(vec![f64::NAN, 100.0])).1);
    }
}
