//! sum, mean, max, min, argmax, argmin along axes. Integers are exact (sums wrap in 64 bits, as two's complement does).

use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{AXIS, Builtin, Kind, Produced, Slot, Work, no_hint, read, written};
use crate::reference::check::Check;
use crate::reference::error::Error;
use crate::reference::rows::{Rows, sum};
use crate::reference::values::Values;
use kforge_types::model::DType;

const X: Slot = read("x", Kind::Any, "any shape");
const Y: Slot = written("y", Kind::Any, "the shape of `x` without the reduced axes, or with 1 in their place");
const INDEX: Slot = written("y", Kind::Int, "the shape of `x` without the reduced axis, or with 1 in its place");

const fn reduction(
    name: &'static str,
    doc: &'static str,
    slots: &'static [Slot],
    large: &'static [&'static str],
    run: fn(&Call<'_>, bool) -> Result<Produced, Error>,
    work: fn(&Bound<'_>) -> Work,
) -> Builtin {
    Builtin { name, doc, slots, settings: &[AXIS], large, check, run, work, hint: no_hint }
}

/// `y = sum(x)`. Scale: `sum(|x|)`.
pub(in crate::reference) static SUM: Builtin = reduction(
    "sum",
    "the sum of `x` along axes, 0 for an empty row; scale: the sum of |x|",
    &[X, Y],
    &[],
    run_sum,
    adds,
);
/// `y = mean(x)`. Scale: `mean(|x|)`.
pub(in crate::reference) static MEAN: Builtin = reduction(
    "mean",
    "the mean of `x` along axes, NaN for an empty row; scale: the mean of |x|",
    &[X, Y],
    &[],
    run_mean,
    adds,
);
/// `y = max(x)`. Scale: `|y|`.
pub(in crate::reference) static MAX: Builtin = reduction(
    "max",
    "the largest value of `x` along axes, or NaN if there is one; scale: |y|",
    &[X, Y],
    &["x"],
    run_max,
    compares,
);
/// `y = min(x)`. Scale: `|y|`.
pub(in crate::reference) static MIN: Builtin = reduction(
    "min",
    "the least value of `x` along axes, or NaN if there is one; scale: |y|",
    &[X, Y],
    &["x"],
    run_min,
    compares,
);
/// `y = argmax(x)`, the first of equal values.
pub(in crate::reference) static ARGMAX: Builtin = reduction(
    "argmax",
    "the index along one axis of the first largest value of `x`, or of the first NaN; no scale",
    &[X, INDEX],
    &["x"],
    run_argmax,
    compares,
);
/// `y = argmin(x)`, the first of equal values.
pub(in crate::reference) static ARGMIN: Builtin = reduction(
    "argmin",
    "the index along one axis of the first least value of `x`, or of the first NaN; no scale",
    &[X, INDEX],
    &["x"],
    run_argmin,
    compares,
);

fn check(check: &mut Check<'_>) {
    let single = check.bound.builtin.name.starts_with("arg");
    let axes = if single { check.axis("x").map(|axis| vec![axis]) } else { check.axes("x") };
    let (Some(axes), Some(shape)) = (axes, check.bound.shape("x")) else { return };
    // As in PyTorch, the sum of no values is 0 and their mean is NaN, but no values have no largest.
    if !matches!(check.bound.builtin.name, "sum" | "mean") {
        check.not_empty("x", &axes);
    }
    reduced_shape(check, "y", &shape, &axes);
}

/// Expects `slot` to have the shape without the axes, or with 1 in their place.
pub(super) fn reduced_shape(check: &mut Check<'_>, slot: &str, shape: &[usize], axes: &[usize]) {
    let kept: Vec<usize> = (0..shape.len()).map(|i| if axes.contains(&i) { 1 } else { shape[i] }).collect();
    if check.bound.shape(slot).is_some_and(|found| found == kept) {
        return;
    }
    let dropped: Vec<usize> = (0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).collect();
    check.shape(slot, &dropped, &format!("reduced along axis {axes:?} (or {kept:?}, if the axes are kept)"));
}

fn rows(bound: &Bound<'_>) -> Result<Rows, Error> {
    let shape = bound.dims("x");
    Ok(Rows::new(&shape, &bound.axes(shape.len())?))
}

fn adds(bound: &Bound<'_>) -> Work {
    Work { flops: bound.len("x") as f64, reduction: bound.row_length("x") }
}

fn compares(bound: &Bound<'_>) -> Work {
    Work { flops: bound.len("x") as f64, reduction: 1 }
}

fn run_sum(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let rows = rows(&call.bound)?;
    Ok(match call.values("x")? {
        Values::Int(x) => {
            let wrapped = |row: &[i64]| row.iter().fold(0i64, |a, b| a.wrapping_add(*b));
            // Used only if the output is of floats.
            let magnitudes = |row: &[i64]| sum(row.iter().map(|v| v.unsigned_abs() as f64));
            Produced::one("y", Values::Int(rows.reduce(x, wrapped)), scale.then(|| rows.reduce(x, magnitudes)))
        }
        Values::Float(x) => Produced::one(
            "y",
            Values::Float(rows.reduce(x, |row| sum(row.iter().copied()))),
            scale.then(|| rows.reduce(x, |row| sum(row.iter().map(|v| v.abs())))),
        ),
    })
}

fn run_mean(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let rows = rows(&call.bound)?;
    let x = call.float("x")?;
    let n = rows.len as f64;
    let mean = rows.reduce(&x, |row| sum(row.iter().copied()) / n);
    let scales = scale.then(|| rows.reduce(&x, |row| sum(row.iter().map(|v| v.abs())) / n));
    Ok(Produced::one("y", Values::Float(mean), scales))
}

/// The position of the first value that no other beats; NaN beats all.
pub(super) fn first_extreme<T: Copy + PartialOrd>(row: &[T], beats: impl Fn(T, T) -> bool) -> usize {
    let mut best = 0;
    for (i, value) in row.iter().enumerate() {
        let best_is_nan = row[best].partial_cmp(&row[best]).is_none();
        if best_is_nan {
            break;
        }
        if value.partial_cmp(value).is_none() || beats(*value, row[best]) {
            best = i;
        }
    }
    best
}

/// The first position of the largest or least value of every row, with that value.
fn extremes(call: &Call<'_>, largest: bool) -> Result<(Vec<i64>, Values), Error> {
    let rows = rows(&call.bound)?;
    let unsigned = call.bound.tensor("x").is_some_and(|t| t.dtype == DType::U64);
    let found = match call.values("x")? {
        Values::Float(x) => {
            let at = rows.reduce(x, |row| first_extreme(row, |a, b| if largest { a > b } else { a < b }));
            let values = at.iter().enumerate().map(|(row, i)| x[rows.place(row, *i)]).collect();
            (at, Values::Float(values))
        }
        Values::Int(x) => {
            // Flipping the top bit turns the order of signed numbers into that of unsigned ones.
            let key = |v: i64| if unsigned { v ^ i64::MIN } else { v };
            let beats = |a, b| if largest { key(a) > key(b) } else { key(a) < key(b) };
            let at = rows.reduce(x, |row| first_extreme(row, beats));
            let values = at.iter().enumerate().map(|(row, i)| x[rows.place(row, *i)]).collect();
            (at, Values::Int(values))
        }
    };
    Ok((found.0.into_iter().map(|i| i as i64).collect(), found.1))
}

fn extreme_values(call: &Call<'_>, largest: bool, scale: bool) -> Result<Produced, Error> {
    let (_, values) = extremes(call, largest)?;
    let scales = scale.then(|| values.magnitudes());
    Ok(Produced::one("y", values, scales))
}

fn run_max(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    extreme_values(call, true, scale)
}

fn run_min(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    extreme_values(call, false, scale)
}

fn run_argmax(call: &Call<'_>, _: bool) -> Result<Produced, Error> {
    Ok(Produced::one("y", Values::Int(extremes(call, true)?.0), None))
}

fn run_argmin(call: &Call<'_>, _: bool) -> Result<Produced, Error> {
    Ok(Produced::one("y", Values::Int(extremes(call, false)?.0), None))
}
