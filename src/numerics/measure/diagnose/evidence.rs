//! Whether a prediction explains the wrong elements of an output. Knows values; does not know where a prediction comes from.

use super::super::compare::{GROSS, rms};
use super::super::front::Front;
use super::{ENOUGH, Explained, Output};
use kforge_types::record::{Axis, Diagnosis, Fit, FrontPoint, WrongPattern};

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

/// What a pattern says of an element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Predicted {
    value: f64,
    /// How far the written value may be from it for the pattern to be plain.
    gap: f64,
    /// How far it may be from it because the values are rounded to the output's type.
    rounding: f64,
    /// The scale of its tolerance.
    scale: Option<f64>,
}

/// How far a prediction explains the wrong elements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Extent {
    explained: u64,
    whole: bool,
    fit: Fit,
}

impl Extent {
    /// How many wrong elements it explains.
    pub(super) fn explained(&self) -> u64 {
        self.explained
    }
}

/// Collects a fit.
#[derive(Default)]
struct Fitting {
    nearest: Front,
    every: Front,
}

impl Fitting {
    /// Adds an element with the scale of its expected value, and what is predicted for it.
    fn add(&mut self, at: usize, (got, want, scale): (f64, f64, Option<f64>), predicted: Option<Predicted>) {
        let point = |front: &mut Front, error: f64, want: f64, scale: Option<f64>| {
            // A distance beyond the largest number is that number, which exceeds every tolerance; a scale that is not finite allows nothing.
            let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
            let (got, want, scale) = (finite(got), finite(want), scale.map(finite));
            front.push(FrontPoint { index: at as u64, error: error.min(f64::MAX), got, want, scale });
        };
        let own = distance(got, want);
        let Some(predicted) = predicted else { return point(&mut self.nearest, own, want, scale) };
        let other = (distance(got, predicted.value) - predicted.rounding).max(0.0);
        point(&mut self.every, other, predicted.value, predicted.scale);
        match other < own {
            true => point(&mut self.nearest, other, predicted.value, predicted.scale),
            false => point(&mut self.nearest, own, want, scale),
        }
    }
}

/// How far a written value is from another one; infinite if one of them is not finite, unless they are equal.
fn distance(got: f64, other: f64) -> f64 {
    match got == other || (got.is_nan() && other.is_nan()) {
        true => 0.0,
        false if got.is_finite() && other.is_finite() => (got - other).abs(),
        false => f64::INFINITY,
    }
}

impl<'a> Evidence<'a> {
    /// None if too few elements are wrong for any pattern, or if the numbers of values and extents differ.
    pub(super) fn of(output: &Output<'a>) -> Option<Self> {
        let elements = output.shape.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent))?;
        let lengths = [Some(output.got), output.scale].into_iter().flatten().all(|of| of.len() == output.want.len());
        if elements != output.want.len() as u64 || !lengths {
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

    /// How far elements of other places explain the wrong elements: the written value at a place is the expected one at the place that is given for it. It
    /// predicts nothing for an element where it gives none.
    pub(super) fn explains_places(&self, source: impl Fn(usize) -> Option<usize>) -> Option<Extent> {
        let unit = self.unit();
        self.explains_each(|at| {
            let from = source(at)?;
            let value = self.of.want[from];
            Some(Predicted { value, gap: self.gap(value, unit), rounding: 0.0, scale: self.scale(from) })
        })
    }

    /// How far values that follow from the expected ones at the same places explain the wrong elements. `unit` is the magnitude of the predictions.
    pub(super) fn explains(&self, unit: f64, apply: impl Fn(usize, f64) -> f64) -> Option<Extent> {
        self.explains_each(|at| {
            let want = self.of.want[at];
            let (value, ulp) = (apply(at, want), self.of.dtype.ulp(want));
            // The expected value is rounded before, and the written one after the function.
            let moved = (apply(at, want + ulp) - value).abs().max((apply(at, want - ulp) - value).abs());
            let rounding = self.of.dtype.ulp(value) + if moved.is_finite() { moved } else { 0.0 };
            let grows = (value / want).abs();
            let scale = self.scale(at).map(|scale| if grows.is_finite() { scale * grows } else { scale });
            Some(Predicted { value, gap: self.gap(value, unit), rounding, scale })
        })
    }

    /// How far a number that is added to the expected values explains the wrong elements. `rounding` is how far the type alone may move the number.
    pub(super) fn explains_sum(&self, by: f64, rounding: f64) -> Option<Extent> {
        self.explains_each(|at| {
            let want = self.of.want[at];
            let value = want + by;
            let ulp = self.of.dtype.ulp(want.abs().max(by.abs()).max(value.abs()));
            Some(Predicted { value, gap: self.gap_of(want) + rounding, rounding: ulp, scale: self.scale(at) })
        })
    }

    /// How far a prediction explains the wrong elements; none if a wrong element contradicts it, or if it explains too few. Predictions must be clearly apart.
    fn explains_each(&self, predict: impl Fn(usize) -> Option<Predicted>) -> Option<Extent> {
        let mut predictions = Apart::default();
        let extent = self.holds(predict, &mut predictions)?;
        (predictions.count() >= ENOUGH).then_some(extent)
    }

    /// How far one value explains the wrong elements.
    pub(super) fn explains_as(&self, value: f64) -> Option<Extent> {
        let predicted = |at| Some(Predicted { value, gap: 0.0, rounding: 0.0, scale: self.scale(at) });
        self.holds(predicted, &mut Apart::default())
    }

    /// How far it explains the wrong elements that each holds what is predicted, where something is. `predictions` takes the predictions with their gaps.
    fn holds(&self, predict: impl Fn(usize) -> Option<Predicted>, predictions: &mut Apart) -> Option<Extent> {
        let fits = |at: usize, p: &Predicted| fits_within(self.of.got[at], p.value, p.gap);
        // Most predictions fail here.
        if self.first.iter().any(|at| predict(*at).is_some_and(|p| !fits(*at, &p))) {
            return None;
        }
        let (mut explained, mut whole, mut expected) = (0, true, Apart::default());
        let mut fitting = Fitting::default();
        for at in 0..self.of.want.len() {
            let (want, predicted) = (self.of.want[at], predict(at));
            match (self.is_wrong(at), &predicted) {
                (true, Some(p)) if fits(at, p) => {
                    explained += 1;
                    expected.add(want, self.gap_of(want));
                    predictions.add(p.value, p.gap);
                }
                (true, Some(_)) => return None,
                // Counted as not explained.
                (true, None) => continue,
                (false, Some(p)) => whole &= fits(at, p),
                (false, None) => {}
            }
            fitting.add(at, (self.of.got[at], want, self.scale(at)), predicted);
        }
        let enough = explained >= ENOUGH as u64 && expected.count() >= ENOUGH && explained * 10 >= self.wrong * 9;
        let fit = || Fit { nearest: fitting.nearest.finish(), every: fitting.every.finish() };
        enough.then(|| Extent { explained, whole, fit: fit() })
    }

    /// The scale of an element.
    fn scale(&self, at: usize) -> Option<f64> {
        self.of.scale.map(|scale| scale[at])
    }

    /// A diagnosis of that extent.
    pub(super) fn found(&self, pattern: WrongPattern, extent: Extent) -> Explained {
        let Extent { explained, whole, fit } = extent;
        Explained { diagnosis: Diagnosis { pattern, wrong: self.wrong, explained, whole }, fit }
    }

    /// As [`found`](Self::found), of a pattern that says nothing about elements that are not wrong.
    pub(super) fn found_in_wrong(&self, pattern: WrongPattern, extent: Extent) -> Explained {
        self.found(pattern, Extent { whole: false, ..extent })
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

    #[test]
    fn what_is_not_finite_leaves_numbers_because_json_has_no_others() {
        let mut fitting = Fitting::default();
        let predicted = |value| Predicted { value, gap: 0.0, rounding: 0.0, scale: None };
        fitting.add(0, (f64::INFINITY, 1.0, Some(f64::INFINITY)), None);
        fitting.add(1, (1.0, f64::NEG_INFINITY, None), Some(predicted(f64::NAN)));
        let points = [fitting.nearest.finish(), fitting.every.finish()].concat();
        assert!(points.len() > 1 && points.iter().all(|point| point.error == f64::MAX), "{points:?}");
        assert!(points.iter().all(|point| point.got.is_finite() && point.want.is_finite()), "{points:?}");
    }
}
