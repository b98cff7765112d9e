//! Expected values at their places, but changed: by a sign, a factor, an offset, or a function. Knows values and dims.

use super::super::compare::{GROSS, rms};
use super::Explained;
use super::evidence::{Apart, Evidence};
use kforge_types::record::{Function, WrongPattern};

/// The fewest elements of a row, and how many of their expected values must be clearly apart, that show a factor of its own.
const OF_ROW: (usize, usize) = (8, 4);

/// The sign is inverted.
pub(super) fn negated(evidence: &Evidence<'_>) -> Option<Explained> {
    let extent = evidence.explains(evidence.unit(), |_, want| -want)?;
    Some(evidence.found(WrongPattern::Negated, extent))
}

/// A factor: a simple one or that of a dim, if it fits, otherwise what fits best, in four digits.
pub(super) fn factor(evidence: &Evidence<'_>) -> Option<Explained> {
    let wrong = (0..evidence.of.want.len()).filter(|at| evidence.is_wrong(*at));
    let fitting = ratio(wrong.map(|at| (evidence.of.got[at], evidence.of.want[at])))?;
    let simple = simple(evidence, fitting).map(|factor| (factor, true));
    // A number that is derived from values of an exact output need not be exact, so only simple ones are tried.
    let other = evidence.of.dtype.is_float().then_some((fitting, false));
    simple.into_iter().chain(other).find_map(|(factor, is_simple)| {
        let extent = evidence.explains(evidence.got_rms, |_, want| factor * want)?;
        let dim =
            |value: f64| (is_simple && value > 2.0 && value.fract() == 0.0).then(|| evidence.dim(value as u64))?;
        let dim = dim(factor.abs()).or_else(|| dim((1.0 / factor.abs()).round()));
        let factor = if is_simple { factor } else { digits(factor) };
        Some(evidence.found(WrongPattern::Factor { factor, dim }, extent))
    })
}

/// The factor that fits pairs of written and expected values best; none if it is nearly zero or one.
fn ratio(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    // Values are taken relative to the first, so that squares stay finite.
    let (mut unit, mut product, mut square) = (0.0f64, 0.0, 0.0);
    for (got, want) in pairs.filter(|(got, want)| got.is_finite() && want.is_finite()) {
        if unit == 0.0 {
            unit = want.abs();
        }
        if unit > 0.0 {
            let (got, want) = (got / unit, want / unit);
            (product, square) = (product + got * want, square + want * want);
        }
    }
    let ratio = product / square;
    (ratio.is_finite() && ratio.abs() > 1e-9 && (ratio - 1.0).abs() > GROSS).then_some(ratio)
}

/// The whole number, or the reciprocal of one, that is nearest to a factor, if it is near: a small one, a power of two, or the value of a dim.
fn simple(evidence: &Evidence<'_>, factor: f64) -> Option<f64> {
    let size = factor.abs();
    let whole = if size >= 1.0 { size.round() } else { (1.0 / size).round() };
    let is_dim = evidence.of.dims.values().any(|value| *value as f64 == whole);
    let known = whole <= 16.0 || (whole <= 2f64.powi(40) && (whole as u64).is_power_of_two()) || is_dim;
    let value = if size >= 1.0 { whole } else { 1.0 / whole };
    // Multiples of a half are as plain as whole numbers.
    let half = (2.0 * size).round() / 2.0;
    let near = |value: f64| value > 0.0 && (value / size - 1.0).abs() < 1e-2;
    let value = if known && near(value) { value } else { half };
    (near(value) && (known || half <= 16.0)).then(|| value.copysign(factor))
}

/// A number in four digits.
fn digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The same number was added to every wrong element.
pub(super) fn offset(evidence: &Evidence<'_>) -> Option<Explained> {
    let (mut sum, mut count) = (0.0, 0u64);
    for at in (0..evidence.of.want.len()).filter(|at| evidence.is_wrong(*at)) {
        sum += evidence.of.got[at] - evidence.of.want[at];
        count += 1;
    }
    let mean = sum / count as f64;
    if !mean.is_finite() || mean == 0.0 {
        return None;
    }
    // A large number hides what was added to it only as far as the type rounds.
    let rounding = 2.0 * evidence.of.dtype.epsilon() * mean.abs();
    let extent = evidence.explains_sum(mean, rounding)?;
    let by = if evidence.of.dtype.is_float() { digits(mean) } else { mean };
    Some(evidence.found(WrongPattern::Offset { by }, extent))
}

/// A function with its name.
type Named = (Function, fn(f64) -> f64);

/// Functions that a kernel may have left out or applied once too often.
const FUNCTIONS: [Named; 6] = [
    (Function::Magnitude, f64::abs),
    (Function::Square, |x| x * x),
    (Function::SquareRoot, f64::sqrt),
    (Function::Reciprocal, f64::recip),
    (Function::Exponential, f64::exp),
    (Function::Logarithm, f64::ln),
];

/// A function of the expected values. Integers are left out: their functions are rounded in ways that differ.
pub(super) fn function(evidence: &Evidence<'_>) -> Option<Explained> {
    let functions = FUNCTIONS.iter().filter(|_| evidence.of.dtype.is_float());
    functions.into_iter().find_map(|(function, apply)| {
        let extent = evidence.explains(evidence.got_rms, |_, want| apply(want))?;
        Some(evidence.found(WrongPattern::Function { function: *function }, extent))
    })
}

/// Each wrong row is off by a factor of its own, as after a wrong sum or maximum of that row.
pub(super) fn rows(evidence: &Evidence<'_>) -> Option<Explained> {
    let shape = evidence.of.shape;
    let columns = *shape.last().filter(|columns| shape.len() > 1 && **columns >= OF_ROW.0 as u64)? as usize;
    if !evidence.of.dtype.is_float() {
        return None;
    }
    let mut factors = vec![1.0; evidence.of.want.len() / columns];
    let (mut least, mut most, mut wrong) = (f64::INFINITY, f64::NEG_INFINITY, 0);
    for (row, factor) in factors.iter_mut().enumerate() {
        let range = row * columns..(row + 1) * columns;
        if !range.clone().any(|at| evidence.is_wrong(at)) {
            continue;
        }
        let (got, want) = (&evidence.of.got[range.clone()], &evidence.of.want[range]);
        let mut apart = Apart::default();
        let own = rms(want);
        want.iter().for_each(|value| apart.add(*value, GROSS * (value.abs() + own)));
        *factor = ratio(got.iter().copied().zip(want.iter().copied()))?;
        // A row must fit by its own magnitude, which may be far below that of the output.
        let unit = rms(got);
        let fits = got.iter().zip(want).all(|(got, want)| evidence.fits(*got, *factor * want, unit));
        if apart.count() < OF_ROW.1 || !fits {
            return None;
        }
        (least, most, wrong) = (least.min(*factor), most.max(*factor), wrong + 1);
    }
    // One factor for all rows is the pattern of another function.
    if wrong < 2 || (most - least).abs() <= GROSS * most.abs() {
        return None;
    }
    let extent = evidence.explains(evidence.got_rms, |at, want| factors[at / columns] * want)?;
    Some(evidence.found_in_wrong(WrongPattern::RowFactors { least: digits(least), most: digits(most) }, extent))
}
