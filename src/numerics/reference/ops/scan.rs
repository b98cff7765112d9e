//! cumsum: running sums along an axis. Integers wrap in 64 bits.

use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{Builtin, Kind, Produced, SettingKind, Work, no_hint, read, setting, written};
use crate::reference::check::Check;
use crate::reference::error::Error;
use crate::reference::rows::{Rows, Sum};
use crate::reference::values::Values;

/// `y[i] = x[0] + ... + x[i]`.
pub(in crate::reference) static CUMSUM: Builtin = Builtin {
    name: "cumsum",
    doc: "running sums of `x` along one axis; scale: those of |x|",
    slots: &[read("x", Kind::Any, "any shape"), written("y", Kind::Any, "the shape of `x`")],
    settings: &[
        setting("axis", SettingKind::Integer, "the axis; default -1"),
        setting("exclusive", SettingKind::Flag, "whether each sum excludes its own element; default false"),
        setting("reverse", SettingKind::Flag, "whether sums run from the end; default false"),
    ],
    large: &[],
    check,
    run,
    work: |bound| Work { flops: bound.len("x") as f64, reduction: bound.row_length("x") },
    hint: no_hint,
};

fn check(check: &mut Check<'_>) {
    let Some(shape) = check.bound.shape("x") else { return };
    check.axis("x");
    check.shape("y", &shape, "that of `x`");
}

fn rows(bound: &Bound<'_>) -> Result<Rows, Error> {
    let shape = bound.dims("x");
    Ok(Rows::new(&shape, &bound.axes(shape.len())?))
}

/// The positions of a row in the order of summation.
fn order(len: usize, reverse: bool) -> impl Iterator<Item = usize> {
    (0..len).map(move |i| if reverse { len - 1 - i } else { i })
}

fn run(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let rows = rows(&call.bound)?;
    let (exclusive, reverse) = (call.bound.flag("exclusive"), call.bound.flag("reverse"));
    match call.values("x")? {
        Values::Int(x) => {
            let y = rows.map(x, |_, row: &[i64], out: &mut [i64]| {
                let mut total = 0i64;
                for i in order(row.len(), reverse) {
                    let next = total.wrapping_add(row[i]);
                    out[i] = if exclusive { total } else { next };
                    total = next;
                }
            });
            let magnitudes = || {
                rows.map(x, |_, row: &[i64], out: &mut [f64]| {
                    let mut total = Sum::default();
                    for i in order(row.len(), reverse) {
                        let before = total.value();
                        total.add(row[i].unsigned_abs() as f64);
                        out[i] = if exclusive { before } else { total.value() };
                    }
                })
            };
            Ok(Produced::one("y", Values::Int(y), scale.then(magnitudes)))
        }
        Values::Float(x) => {
            let made = |of: fn(f64) -> f64| {
                rows.map(x, |_, row: &[f64], out: &mut [f64]| {
                    let mut total = Sum::default();
                    for i in order(row.len(), reverse) {
                        let before = total.value();
                        total.add(of(row[i]));
                        out[i] = if exclusive { before } else { total.value() };
                    }
                })
            };
            Ok(Produced::one("y", Values::Float(made(|x| x)), scale.then(|| made(f64::abs))))
        }
    }
}
