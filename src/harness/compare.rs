//! Compares one output with its expected values, by its declared comparison. Knows values in memory; `measure` compares. Does not touch files or processes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rayon::prelude::*;

use kforge_foundation::base::pieces;
use kforge_numerics::measure::compare::{Comparison, rms, show};
use kforge_numerics::reference::float::round_values;
use kforge_numerics::reference::{self, Extreme, Values, extreme, logical_shape};
use kforge_types::model::{Compare, DType, Problem, Tensor, Tolerance};
use kforge_types::record::{CheckObserved, OutputObserved};

/// Why an output cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// The reference does not state the axis.
    #[error(transparent)]
    NotExtreme(#[from] reference::Error),
    /// The tensor that the output should index is not an input.
    #[error("`{output}` is compared by `{input}`, which is not an input")]
    NotInput {
        /// The output.
        output: String,
        /// What it should index.
        input: String,
    },
    /// The output has another number of values than expected.
    #[error("`{output}` has {found} values, expected {expected}")]
    Length {
        /// The output.
        output: String,
        /// Values that it has.
        found: usize,
        /// Values that are expected.
        expected: usize,
    },
    /// One side holds floats, the other integers.
    #[error("`{0}` and its expected values are different kinds of numbers")]
    Kinds(String),
    /// The output should hold indices but holds floats.
    #[error("an output that holds the index of a maximum must hold integers")]
    NotIndices,
    /// The number of indices differs from the number of rows of the input.
    #[error("expected one index for each row of `{0}`")]
    Rows(String),
}

/// An output and its expected values.
pub struct Compared<'a> {
    /// The output.
    pub tensor: &'a Tensor,
    /// The written values.
    pub got: &'a Values,
    /// The expected values, before rounding to the output's type.
    pub want: &'a Values,
    /// The scale of each element, if the tolerance uses one.
    pub scale: Option<&'a [f64]>,
    /// The tolerance beyond which elements are counted, if `matched` is below one.
    pub beyond: Option<&'a Tolerance>,
}

/// Ways of accepting an answer that differs from the expected one, applied before elements are compared.
pub enum Leniency<'a> {
    /// No leniency: elements are compared one by one.
    Elements,
    /// Indices along an axis of an input: any index of an extreme value is accepted.
    ArgmaxOf(&'a Tensor, &'a Values, Extreme),
    /// Rows along the last axis are compared as multisets.
    Unordered,
    /// A function of the package decides by itself: its name and its result.
    Check(String, CheckResult),
}

/// The result of a function of the package that checked one output.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckResult {
    /// The parts of the output that it accepts.
    pub accepted: Accepted,
    /// Its message that explains why it rejects the rest.
    pub message: Option<String>,
}

/// The parts of an output that a function of the package accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// The whole output, or none of it.
    Whole(bool),
    /// For each element, whether it is accepted.
    Elements(Vec<bool>),
}

impl<'a> Leniency<'a> {
    /// The leniency of an output's declared comparison; none if only a function of the package can decide. Errors: an `argmax_of` whose reference does not
    /// state the axis.
    pub fn declared(
        compare: &Compare,
        problem: &'a Problem,
        output: &str,
        inputs: &'a BTreeMap<String, Values>,
    ) -> Result<Option<Self>, CompareError> {
        Ok(match compare {
            Compare::Elements => Some(Leniency::Elements),
            Compare::Unordered => Some(Leniency::Unordered),
            Compare::ArgmaxOf(input) => {
                let along = extreme(problem, output, input)?;
                let (Some(tensor), Some(values)) = (problem.tensor(input), inputs.get(input)) else {
                    return Err(CompareError::NotInput { output: output.to_owned(), input: input.clone() });
                };
                Some(Leniency::ArgmaxOf(tensor, values, along))
            }
            Compare::Python(..) => None,
        })
    }
}

/// Compares one whole output. Errors: the numbers of values differ.
pub fn observe(compared: &Compared<'_>, leniency: &Leniency<'_>) -> Result<OutputObserved, CompareError> {
    let tensor = compared.tensor;
    let want = round_values(tensor.dtype, compared.want);
    let got = match (compared.got, tensor.dtype.is_float()) {
        (Values::Float(_), true) | (Values::Int(_), false) => Cow::Borrowed(compared.got),
        (other, _) => Cow::Owned(other.clone().as_kind_of(tensor.dtype)),
    };
    let scale_fits = compared.scale.is_none_or(|scale| scale.len() == want.len());
    if got.len() != want.len() || !scale_fits {
        let (found, expected) = (got.len(), want.len());
        return Err(CompareError::Length { output: tensor.name.clone(), found, expected });
    }
    let (got, want) = match leniency {
        Leniency::Elements => (got, want),
        Leniency::ArgmaxOf(input, values, along) => {
            (Cow::Owned(forgive_ties(got.into_owned(), &want, input, values, *along)?), want)
        }
        Leniency::Unordered => {
            let row = logical_shape(tensor).last().copied().unwrap_or(1).max(1);
            (Cow::Owned(sorted(got.into_owned(), row)), sorted(want, row))
        }
        Leniency::Check(by, said) => return Ok(heard(tensor, &got, &want, by, said)),
    };
    let shape = shape_of(tensor);
    let magnitude = match &want {
        Values::Float(want) => rms(want),
        Values::Int(_) => 0.0,
    };
    let mut comparison = Comparison::new(&tensor.name, tensor.dtype, &shape, magnitude, compared.beyond);
    match (&*got, &want) {
        (Values::Float(got), Values::Float(want)) => comparison.floats(0, got, want, compared.scale),
        (Values::Int(got), Values::Int(want)) => comparison.ints(0, got, want),
        _ => return Err(CompareError::Kinds(tensor.name.clone())),
    }
    Ok(comparison.finish())
}

fn shape_of(tensor: &Tensor) -> Vec<u64> {
    logical_shape(tensor).into_iter().map(|extent| extent as u64).collect()
}

/// The observation of an output that a function of the package checked. If the function returned fewer elements than the output has, the others count as
/// rejected.
fn heard(tensor: &Tensor, got: &Values, want: &Values, by: &str, said: &CheckResult) -> OutputObserved {
    let elements = want.len() as u64;
    let accepts = |index: u64| match &said.accepted {
        Accepted::Whole(all) => *all,
        Accepted::Elements(each) => each.get(index as usize).copied().unwrap_or(false),
    };
    let rejected = (0..elements).filter(|index| !accepts(*index)).count() as u64;
    // A rejected output without elements has no element to count, so it counts as one.
    let whole = matches!(said.accepted, Accepted::Whole(_));
    let rejected = if said.accepted == Accepted::Whole(false) { rejected.max(1) } else { rejected };
    let message = said.message.clone().filter(|_| rejected > 0);
    let of = |values: &Values, index: u64| match values {
        Values::Float(values) => show(tensor.dtype, values[index as usize]),
        Values::Int(values) => values[index as usize].to_string(),
    };
    let mut comparison = Comparison::new(&tensor.name, tensor.dtype, &shape_of(tensor), 0.0, None);
    let checked = CheckObserved { by: by.to_string(), rejected, whole, message };
    comparison.checked(checked, elements, accepts, |index| (of(got, index), of(want, index)));
    comparison.finish()
}

/// Replaces written values by the expected ones wherever they are equally good.
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

/// Accepts any index of an extreme value as the expected one. A NaN is more extreme than every number, as in numpy and PyTorch: in a row with NaNs, only the
/// index of a NaN is accepted. Zeros of either sign are equal, and so are infinities of the same sign.
fn forgive_ties(
    got: Values,
    want: &Values,
    input: &Tensor,
    values: &Values,
    along: Extreme,
) -> Result<Values, CompareError> {
    let shape = logical_shape(input);
    let (row, stride) = match shape.get(along.axis..) {
        Some([row, rest @ ..]) => (*row, rest.iter().product::<usize>()),
        _ => (0, 0),
    };
    let Values::Int(indices) = &got else { return Err(CompareError::NotIndices) };
    if row == 0 || indices.len() * row != values.len() {
        return Err(CompareError::Rows(input.name.clone()));
    }
    // The elements of a row are `stride` apart, and `stride` rows are interleaved.
    let at = |index: usize, along: usize| (index / stride * row + along) * stride + index % stride;
    let good = match values {
        Values::Float(values) => {
            let beaten = |best: f64, x: f64| x.is_nan() || if along.largest { x > best } else { x < best };
            extremes(indices, row, |i, j| values[at(i, j)], beaten, |a, b| a == b || (a.is_nan() && b.is_nan()))
        }
        // Flipping the top bit maps the order of unsigned numbers to that of signed ones.
        Values::Int(values) => {
            let key = |x: i64| if input.dtype == DType::U64 { x ^ i64::MIN } else { x };
            let beaten = |best: i64, x: i64| if along.largest { x > best } else { x < best };
            extremes(indices, row, |i, j| key(values[at(i, j)]), beaten, |a, b| a == b)
        }
    };
    Ok(forgive(got, want, |i| good[i]))
}

/// For each index, whether the value that it points to equals the most extreme value of its row.
fn extremes<T: Copy>(
    indices: &[i64],
    row: usize,
    at: impl Fn(usize, usize) -> T + Sync,
    beaten: impl Fn(T, T) -> bool + Sync,
    equal: impl Fn(T, T) -> bool + Sync,
) -> Vec<bool> {
    let good = |(i, found): (usize, &i64)| {
        let Some(found) = usize::try_from(*found).ok().filter(|found| *found < row) else { return false };
        let best = (1..row).fold(at(i, 0), |best, j| if beaten(best, at(i, j)) { at(i, j) } else { best });
        equal(at(i, found), best)
    };
    indices.par_iter().enumerate().map(good).collect()
}

fn sorted(values: Values, row: usize) -> Values {
    match values {
        Values::Float(mut v) => {
            v.par_chunks_mut(row).for_each(|row| row.sort_by(f64::total_cmp));
            Values::Float(v)
        }
        Values::Int(mut v) => {
            v.par_chunks_mut(row).for_each(<[i64]>::sort_unstable);
            Values::Int(v)
        }
    }
}

/// The largest absolute difference between two sets of values, and whether any pair differs by more than another order of the same additions explains, even if
/// the output itself holds the running sum. The limit is a hundredth, or sixteen epsilons of a coarser type, of the pair's magnitude plus the root mean square
/// of `a`. A pair with a value that is not finite counts as infinitely far apart unless the values are equal.
pub fn spread(dtype: DType, a: &Values, b: &Values) -> (f64, bool) {
    let (a, b) = (a.as_f64(dtype), b.as_f64(dtype));
    let whole = rms(&a);
    let explained = (16.0 * dtype.epsilon()).max(1e-2);
    let of_piece = |at: usize, len: usize| {
        let pairs = a[at..at + len].iter().zip(&b[at..at + len]);
        pairs.fold((0.0f64, false), |(most, gross), (a, b)| {
            if a == b || (a.is_nan() && b.is_nan()) {
                return (most, gross);
            }
            let apart = if a.is_finite() && b.is_finite() { (a - b).abs() } else { f64::INFINITY };
            (most.max(apart), gross | (apart > explained * (a.abs().max(b.abs()) + whole)))
        })
    };
    let pieces = pieces::map(a.len().min(b.len()), of_piece).into_iter();
    pieces.fold((0.0, false), |(most, gross), (apart, more)| (most.max(apart), gross | more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::Role;

    fn tensor(name: &str, dtype: DType, shape: &[u64]) -> Tensor {
        Tensor::dense(name, Role::Output, dtype, shape)
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

    /// The indices of one row that are accepted as that of its extreme value.
    fn taken(dtype: DType, row: Values, largest: bool) -> Vec<i64> {
        let y = tensor("y", DType::I64, &[1]);
        let x = tensor("x", dtype, &[1, row.len() as u64]);
        let leniency = Leniency::ArgmaxOf(&x, &row, Extreme { axis: 1, largest });
        // An expected index that no candidate returns by chance.
        let right = |found: &i64| differing(&y, Values::Int(vec![*found]), Values::Int(vec![1 << 40]), &leniency) == 0;
        (0..row.len() as i64).filter(right).collect()
    }

    #[test]
    fn in_a_row_with_nan_only_the_index_of_a_nan_will_do() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let check = |row: &[f64], largest: bool| taken(DType::F32, Values::Float(row.to_vec()), largest);
        for largest in [true, false] {
            assert_eq!(check(&[1.0, nan, inf, nan, -inf], largest), [1, 3]);
            assert_eq!(check(&[nan, nan], largest), [0, 1]);
            assert_eq!(check(&[-nan, 1.0], largest), [0]);
            assert_eq!(check(&[0.0, -0.0, 0.0], largest), [0, 1, 2]);
            assert_eq!(check(&[-inf, -inf], largest), [0, 1]);
            assert_eq!(check(&[7.0], largest), [0]);
        }
        assert_eq!((check(&[inf, 1.0, inf], true), check(&[inf, 1.0, inf], false)), (vec![0, 2], vec![1]));
        assert_eq!((check(&[-inf, 1.0], true), check(&[-inf, 1.0], false)), (vec![1], vec![0]));
        assert_eq!(check(&[-1.0, -0.0, 0.0, -2.0], true), [1, 2]);
    }

    #[test]
    fn integers_are_tied_only_if_every_bit_is_equal() {
        let large = (1i64 << 53) + 1;
        assert_eq!(taken(DType::I64, Values::Int(vec![large, large - 1, large]), true), [0, 2]);
        assert_eq!(taken(DType::U64, Values::Int(vec![1, -1, i64::MAX]), true), [1]);
        assert_eq!(taken(DType::U64, Values::Int(vec![1, -1, i64::MAX]), false), [0]);
        assert_eq!(taken(DType::I64, Values::Int(vec![1, -1]), true), [0]);
    }

    #[test]
    fn ties_are_looked_for_along_the_references_own_axis() {
        let problem = |name: &str, axis: i64| {
            let x = Tensor::dense("x", Role::Input, DType::F32, &[3, 2]);
            let reference = kforge_types::model::Reference::builtin(name, &[("axis", axis.into())]);
            Problem::of(vec![x, tensor("y", DType::I32, &[2])], reference)
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
        let refused = Leniency::declared(&of, &problem("sum", 0), "y", &inputs).err().unwrap().to_string();
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
    fn a_functions_word_decides_and_no_comparison() {
        let y = tensor("y", DType::I32, &[2, 2]);
        let (got, want) = (Values::Int(vec![1, 2, 3, 4]), Values::Int(vec![1, 2, 3, 5]));
        let seen = |accepted: Accepted| {
            let compared = Compared { tensor: &y, got: &got, want: &want, scale: None, beyond: None };
            let said = CheckResult { accepted, message: Some("no".into()) };
            observe(&compared, &Leniency::Check("c.py::f".into(), said)).unwrap()
        };
        let elements = seen(Accepted::Elements(vec![true, false, true, true]));
        let checked = elements.checked.unwrap();
        assert_eq!((checked.rejected, checked.message.as_deref(), elements.differing), (1, Some("no"), 0));
        assert_eq!(elements.gross.unwrap().first.index, 1);
        let all = seen(Accepted::Whole(true)).checked.unwrap();
        assert_eq!((all.rejected, all.message), (0, None));
        let none = seen(Accepted::Whole(false));
        assert_eq!((none.checked.unwrap().rejected, none.gross), (4, None));
        assert_eq!(seen(Accepted::Elements(vec![true])).checked.unwrap().rejected, 3);
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
        // Each atomic addition into bf16 loses up to one step of the type's eight-bit precision.
        assert_eq!(spread(DType::Bf16, &a, &Values::Float(vec![1.0, 95.0])), (5.0, false));
        assert_eq!(spread(DType::Bf16, &a, &Values::Float(vec![1.0, 50.0])), (50.0, true));
        assert_eq!(spread(DType::F16, &a, &Values::Float(vec![1.0, 95.0])), (5.0, true));
    }
}
