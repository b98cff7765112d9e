//! Whether a prediction explains the wrong elements of an output. Knows values; does not know where a prediction comes from.

use super::super::compare::{GROSS, rms};
use super::{ENOUGH, Output};
use kforge_types::record::{Axis, Diagnosis, WrongPattern};

/// How far a value may be from its prediction, relative to the magnitude.
const CLOSE: f64 = 1e-3;
/// The wrong elements with which a prediction is tried before all others.
const TRIED: usize = 64;

/// An output with what every family of patterns asks.
pub(super) struct Evidence<'a> {
    /// The output.
    pub(super) of: Output<'a>,
    /// The magnitude of what was written: the root mean square of the finite values.
    pub(super) got_rms: f64,
    /// The magnitude of what is expected.
    pub(super) want_rms: f64,
    /// How many elements are wrong.
    pub(super) wrong: u64,
    /// The first wrong elements.
    first: Vec<usize>,
}

/// How far a prediction explains the wrong elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    explained: u64,
    whole: bool,
}

impl Extent {
    /// How many wrong elements it explains.
    pub(super) fn explained(self) -> u64 {
        self.explained
    }
}

impl<'a> Evidence<'a> {
    /// None if too few elements are wrong for any pattern, or if the numbers of values and extents differ.
    pub(super) fn of(output: &Output<'a>) -> Option<Self> {
        let elements = output.shape.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent))?;
        if elements != output.want.len() as u64 || output.got.len() != output.want.len() {
            return None;
        }
        // The unit of exact types is zero: whatever differs is wrong.
        let of = |values| if output.dtype.is_float() { rms(values) } else { 0.0 };
        let (got_rms, want_rms) = (of(output.got), of(output.want));
        let mut found = Evidence { of: *output, got_rms, want_rms, wrong: 0, first: vec![] };
        for at in 0..output.want.len() {
            if found.is_wrong(at) {
                found.wrong += 1;
                if found.first.len() < TRIED {
                    found.first.push(at);
                }
            }
        }
        (found.wrong >= ENOUGH as u64).then_some(found)
    }

    /// Whether an element is wrong.
    pub(super) fn is_wrong(&self, at: usize) -> bool {
        let (got, want) = (self.of.got[at], self.of.want[at]);
        if got == want || (got.is_nan() && want.is_nan()) {
            return false;
        }
        let finite = got.is_finite() && want.is_finite();
        !finite || !self.of.dtype.is_float() || (got - want).abs() > GROSS * (want.abs() + self.want_rms)
    }

    /// How far a written value may be from a prediction. `unit` is the magnitude of the predictions.
    fn gap(&self, predicted: f64, unit: f64) -> f64 {
        if self.of.dtype.is_float() { closeness(self.of.dtype.epsilon()) * (predicted.abs() + unit) } else { 0.0 }
    }

    /// Whether a written value is a predicted one. `unit` is the magnitude of the predictions.
    pub(super) fn fits(&self, got: f64, predicted: f64, unit: f64) -> bool {
        fits_within(got, predicted, self.gap(predicted, unit))
    }

    /// Whether a written value is the expected one of another element.
    pub(super) fn is_from(&self, at: usize, other: usize) -> bool {
        self.fits(self.of.got[at], self.of.want[other], self.unit())
    }

    /// How far a prediction explains the wrong elements; none if a wrong element contradicts it, or if it explains too few. It predicts nothing for an element
    /// where it gives none. `unit` is the magnitude of what it predicts.
    pub(super) fn explains(&self, unit: f64, predict: impl Fn(usize) -> Option<f64>) -> Option<Extent> {
        self.explains_within(|at| predict(at).map(|value| (value, self.gap(value, unit))))
    }

    /// As [`explains`](Self::explains), with how far a written value may be from each prediction. Predictions must be apart by more than that.
    pub(super) fn explains_within(&self, predict: impl Fn(usize) -> Option<(f64, f64)>) -> Option<Extent> {
        let mut predictions = Apart::default();
        let extent = self.holds(
            |at| {
                let (value, gap) = predict(at)?;
                Some((fits_within(self.of.got[at], value, gap), (value, gap)))
            },
            &mut predictions,
        )?;
        (predictions.count() >= ENOUGH).then_some(extent)
    }

    /// How far one value explains the wrong elements.
    pub(super) fn explains_as(&self, value: f64) -> Option<Extent> {
        self.holds(|at| Some((self.of.got[at] == value, (value, 0.0))), &mut Apart::default())
    }

    /// How far it explains the wrong elements that each holds what is predicted, where something is. `predictions` takes the predictions with their gaps.
    fn holds(&self, holds: impl Fn(usize) -> Option<(bool, (f64, f64))>, predictions: &mut Apart) -> Option<Extent> {
        // Most predictions fail here.
        if self.first.iter().any(|at| holds(*at).is_some_and(|(holds, _)| !holds)) {
            return None;
        }
        let (mut explained, mut whole, mut expected) = (0, true, Apart::default());
        for at in 0..self.of.want.len() {
            match (self.is_wrong(at), holds(at)) {
                (true, Some((true, (value, gap)))) => {
                    explained += 1;
                    let want = self.of.want[at];
                    expected.add(want, self.gap_of(want));
                    predictions.add(value, gap);
                }
                (true, Some((false, _))) => return None,
                (false, Some((false, _))) => whole = false,
                (_, None) | (false, Some((true, _))) => {}
            }
        }
        let enough = explained >= ENOUGH as u64 && expected.count() >= ENOUGH && explained * 5 >= self.wrong * 4;
        enough.then_some(Extent { explained, whole })
    }

    /// A diagnosis of that extent.
    pub(super) fn found(&self, pattern: WrongPattern, extent: Extent) -> Diagnosis {
        Diagnosis { pattern, wrong: self.wrong, explained: extent.explained, whole: extent.whole }
    }

    /// A diagnosis that explains every wrong element and says nothing about the others.
    pub(super) fn all_wrong(&self, pattern: WrongPattern) -> Diagnosis {
        self.found(pattern, Extent { explained: self.wrong, whole: false })
    }

    /// An axis with its extent and dim.
    pub(super) fn axis(&self, axis: usize) -> Axis {
        let extent = self.of.shape[axis];
        Axis { axis: axis as u32, extent, dim: self.dim(extent) }
    }

    /// The dim with that value, if there is exactly one and the value is not one that many things have.
    pub(super) fn dim(&self, value: u64) -> Option<String> {
        let mut named = self.of.dims.iter().filter(|(_, of)| u64::try_from(**of) == Ok(value));
        let (name, _) = named.next().filter(|_| value > 1)?;
        named.next().is_none().then(|| name.clone())
    }

    /// The distance within which another value is taken for an expected one.
    pub(super) fn gap_of(&self, want: f64) -> f64 {
        self.gap(want, self.want_rms)
    }

    /// The magnitude of predictions that are expected values themselves.
    pub(super) fn unit(&self) -> f64 {
        self.got_rms.min(self.want_rms)
    }
}

/// How far a value of a type with that epsilon may be from its prediction, relative to the magnitude. Types whose values are too far apart to tell wrong elements
/// from correct ones must fit exactly, and so do integers.
pub(super) fn closeness(epsilon: f64) -> f64 {
    if epsilon == 0.0 || epsilon > GROSS { 0.0 } else { CLOSE.max(epsilon) }
}

/// Whether a value is a predicted one or within a gap of it.
fn fits_within(got: f64, predicted: f64, gap: f64) -> bool {
    got == predicted || (got.is_nan() && predicted.is_nan()) || (got.is_finite() && (got - predicted).abs() <= gap)
}

/// How many gaps lie between values that are clearly apart.
const APART: f64 = 4.0;

/// Counts values that are clearly apart from each other, up to [`ENOUGH`].
#[derive(Default)]
pub(super) struct Apart {
    values: Vec<(f64, f64)>,
}

impl Apart {
    /// Adds a value, with the distance within which another value is taken for it.
    pub(super) fn add(&mut self, value: f64, gap: f64) {
        let apart = |(other, its): &(f64, f64)| (value - other).abs() > APART * gap.max(*its);
        if self.values.len() < ENOUGH && value.is_finite() && self.values.iter().all(apart) {
            self.values.push((value, gap));
        }
    }

    /// How many are apart, at most [`ENOUGH`].
    pub(super) fn count(&self) -> usize {
        self.values.len()
    }
}

/// The number of elements that lie between neighbours along an axis of a row-major output.
pub(super) fn stride(shape: &[u64], axis: usize) -> usize {
    shape[axis + 1..].iter().product::<u64>() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_nearly_equal_count_once() {
        let mut apart = Apart::default();
        [1.0, 1.001, 1.003, 2.0, f64::NAN, f64::INFINITY, -1.0].into_iter().for_each(|v| apart.add(v, 1e-3));
        assert_eq!(apart.count(), 3);
        (0..100).for_each(|v| apart.add(f64::from(v), 0.0));
        assert_eq!(apart.count(), ENOUGH);
    }

    #[test]
    fn coarse_types_and_integers_fit_exactly() {
        assert_eq!(closeness(0.0), 0.0);
        assert_eq!(closeness(0.125), 0.0);
        assert_eq!(closeness(f64::from(f32::EPSILON)), CLOSE);
        assert_eq!(closeness(2f64.powi(-7)), 2f64.powi(-7));
    }
}
