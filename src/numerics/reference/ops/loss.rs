//! cross_entropy of logits and class labels.

use super::softmax::log_sum_exp;
use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{Builtin, Kind, Produced, SettingKind, Use, Work, optional, read, setting, written};
use crate::reference::check::Check;
use crate::reference::error::{Error, Range};
use crate::reference::rows::{Rows, sum};
use crate::reference::values::Values;
use kforge_types::model::Init;

/// `loss = log(sum(exp(x))) - x[label]`.
pub(in crate::reference) static CROSS_ENTROPY: Builtin = Builtin {
    name: "cross_entropy",
    doc: "log(sum(exp(x))) - x[label] along the classes, averaged, summed or for each label; labels equal to `ignore_index` are ignored, and if every label \
          is ignored, the mean is NaN; \
          scale: |x[label]| + |log(sum(exp(x)))|, reduced in the same way",
    slots: &[
        read("x", Kind::Float, "[..., classes], or classes on `axis`: the logits"),
        read("labels", Kind::Int, "the shape of `x` without the classes: from 0 to classes - 1, or `ignore_index`"),
        written("y", Kind::Float, "one value ([] or [1]); the shape of `labels` if `reduction` is `none`"),
        optional("lse", Use::Out, Kind::Float, "the shape of `labels`: log(sum(exp(x)))"),
    ],
    settings: &[
        setting("axis", SettingKind::Integer, "the axis of the classes; default -1"),
        setting(
            "reduction",
            SettingKind::Word(&["mean", "sum", "none"]),
            "over the labels that are not ignored; default `mean`",
        ),
        setting("ignore_index", SettingKind::Integer, "the label that is ignored; default none"),
    ],
    large: &["x"],
    check,
    run,
    work: |bound| Work {
        flops: 3.0 * bound.len("x") as f64,
        // The longest sum: over the classes of a row or, if the losses are reduced, over the labels.
        reduction: if bound.word("reduction", "mean") == "none" {
            bound.row_length("x")
        } else {
            bound.row_length("x").max(bound.len("labels") as u64)
        },
    },
    hint: |bound, slot| {
        let classes = bound.row_length("x");
        (slot == "labels").then_some(Init::Range(0.0, classes.saturating_sub(1) as f64))
    },
};

fn rows(bound: &Bound<'_>) -> Result<Rows, Error> {
    let shape = bound.dims("x");
    let axes = bound.axes(shape.len())?;
    Ok(Rows::new(&shape, &axes))
}

fn check(check: &mut Check<'_>) {
    let (Some(mut shape), Some(axis)) = (check.bound.shape("x"), check.axis("x")) else { return };
    check.not_empty("x", &[axis]);
    shape.remove(axis);
    check.shape("labels", &shape, "that of `x` without the classes");
    check.shape("lse", &shape, "that of `x` without the classes");
    if check.bound.word("reduction", "mean") == "none" {
        check.shape("y", &shape, "a loss for every label, because `reduction` is `none`");
    } else if check.bound.len("y") != 1 {
        check.shape("y", &[], "one value, or [1]; or set `reduction` to `none`");
    }
}

fn run(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let rows = rows(&call.bound)?;
    let x = call.float("x")?;
    let labels = call.ints("labels")?;
    let ignore = call.bound.integer("ignore_index");
    for (row, label) in labels.iter().enumerate() {
        let fits = usize::try_from(*label).is_ok_and(|label| label < rows.len);
        if !fits && ignore != Some(*label) {
            return Err(Error::OutOfRange {
                tensor: call.bound.own_name("labels").to_owned(),
                place: vec![row],
                found: *label,
                expected: Range::Class(rows.len - 1),
            });
        }
    }
    let gathered = rows.gather(&x);
    let lse: Vec<f64> = rows.reduce(&x, log_sum_exp);
    // For logits whose largest is infinite, the loss is NaN, as in PyTorch.
    let peaks: Vec<f64> = rows.reduce(&x, |row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    let counts = |row: usize| ignore != Some(labels[row]);
    let loss = |row: usize, of: fn(f64, f64) -> f64| match counts(row) {
        true if peaks[row].is_infinite() => f64::NAN,
        true => of(lse[row], gathered[row * rows.len + labels[row] as usize]),
        false => 0.0,
    };
    let losses = |of: fn(f64, f64) -> f64| (0..rows.count).map(|row| loss(row, of)).collect::<Vec<_>>();
    let counted = (0..rows.count).filter(|row| counts(*row)).count() as f64;
    let reduction = call.bound.word("reduction", "mean");
    let finish = |losses: Vec<f64>| match reduction.as_str() {
        "none" => losses,
        "sum" => vec![sum(losses.into_iter())],
        _ => vec![sum(losses.into_iter()) / counted],
    };
    let scales = scale.then(|| finish(losses(|lse, x| lse.abs() + x.abs())));
    let mut produced = Produced::one("y", Values::Float(finish(losses(|lse, x| lse - x))), scales);
    // The scale of a logarithm of a sum of positive terms: the magnitude of the logarithm, plus that of the subtracted maximum.
    let scale_of_lse = || lse.iter().zip(&peaks).map(|(l, peak)| l.abs() + peak.abs()).collect();
    produced.put("lse", Values::Float(lse.clone()), scale.then(scale_of_lse));
    Ok(produced)
}
