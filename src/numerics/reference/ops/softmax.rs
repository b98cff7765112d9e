//! softmax and log_softmax along axes, by subtracting the maximum.

use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{AXIS, Builtin, Kind, Produced, Slot, Work, no_hint, read, written};
use crate::reference::check::Check;
use crate::reference::error::Error;
use crate::reference::rows::{Rows, sum};
use crate::reference::values::Values;

const X: Slot = read("x", Kind::Float, "any shape");
const Y: Slot = written("y", Kind::Float, "the shape of `x`");

/// `y = exp(x) / sum(exp(x))`. Scale: `y`.
pub(in crate::reference) static SOFTMAX: Builtin = Builtin {
    name: "softmax",
    doc: "exp(x) over its sum along axes; NaN where the largest value is infinite, as in PyTorch; scale: y, whose terms are all positive",
    slots: &[X, Y],
    settings: &[AXIS],
    large: &["x"],
    check,
    run: run_softmax,
    work: |bound| work(bound, 4.0),
    hint: no_hint,
};

/// `y = x - log(sum(exp(x)))`. Scale: `|x| + |log(sum(exp(x)))|`.
pub(in crate::reference) static LOG_SOFTMAX: Builtin = Builtin {
    name: "log_softmax",
    doc: "x less the logarithm of the sum of exp(x) along axes; NaN where the largest value is infinite, as in PyTorch; \
          scale: |x| + |that logarithm|",
    slots: &[X, Y],
    settings: &[AXIS],
    large: &["x"],
    check,
    run: run_log_softmax,
    work: |bound| work(bound, 4.0),
    hint: no_hint,
};

fn check(check: &mut Check<'_>) {
    let Some(shape) = check.bound.shape("x") else { return };
    check.axes("x");
    check.shape("y", &shape, "that of `x`");
}

fn rows(bound: &Bound<'_>) -> Result<Rows, Error> {
    let shape = bound.dims("x");
    Ok(Rows::new(&shape, &bound.axes(shape.len())?))
}

fn work(bound: &Bound<'_>, per_element: f64) -> Work {
    Work { flops: per_element * bound.len("x") as f64, reduction: bound.row_length("x") }
}

/// The maximum and the sum of exp(x - maximum).
pub(super) fn peak_and_sum(row: &[f64]) -> (f64, f64) {
    let peak = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (peak, sum(row.iter().map(|x| libm::exp(x - peak))))
}

/// The logarithm of the sum of exponentials. Minus infinity for no values, NaN if any value is NaN, and the maximum itself if it is infinite.
pub(super) fn log_sum_exp(row: &[f64]) -> f64 {
    let (peak, total) = peak_and_sum(row);
    // The maximum ignores NaN, and subtracting an infinite maximum from itself gives NaN.
    if peak.is_infinite() && !row.iter().any(|x| x.is_nan()) { peak } else { peak + libm::log(total) }
}

fn run_softmax(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let y = rows(&call.bound)?.map(&call.float("x")?, |_, row: &[f64], out: &mut [f64]| {
        let (peak, total) = peak_and_sum(row);
        for (y, x) in out.iter_mut().zip(row) {
            *y = libm::exp(x - peak) / total;
        }
    });
    let scales = scale.then(|| y.clone());
    Ok(Produced::one("y", Values::Float(y), scales))
}

fn run_log_softmax(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let rows = rows(&call.bound)?;
    let x = call.float("x")?;
    let made = |f: fn(f64, f64, f64) -> f64| {
        rows.map(&x, |_, row: &[f64], out: &mut [f64]| {
            let (peak, total) = peak_and_sum(row);
            let log = libm::log(total);
            for (y, x) in out.iter_mut().zip(row) {
                *y = f(*x, peak, log);
            }
        })
    };
    // In this order, the large parts cancel exactly before the small one is subtracted.
    let y = made(|x, peak, log| (x - peak) - log);
    let scales = scale.then(|| made(|x, peak, log| x.abs() + (peak + log).abs()));
    Ok(Produced::one("y", Values::Float(y), scales))
}
