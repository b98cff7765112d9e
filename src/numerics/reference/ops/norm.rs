//! layer_norm, rms_norm and batch_norm (training). Means and variances are computed in two passes, with compensated sums.

use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{
    AXIS, Builtin, Kind, Produced, SettingKind, Use, Work, no_hint, optional, read, setting, written,
};
use crate::reference::check::Check;
use crate::reference::error::Error;
use crate::reference::rows::{Rows, length, sum};
use crate::reference::values::Values;
use kforge_types::model::Init;

/// `y = (x - mean) / sqrt(var + eps) * w + b`.
pub(in crate::reference) static LAYER_NORM: Builtin = Builtin {
    name: "layer_norm",
    doc: "(x - mean) / sqrt(var + eps) * w + b along axes, var the mean squared deviation; \
          scale: (|x| + mean |x|) / sqrt(var + eps) * |w| + |b|; of mean: mean |x|; of rstd: rstd",
    slots: &[
        read("x", Kind::Float, "any shape"),
        optional("w", Use::In, Kind::Float, "the extents of the normalised axes"),
        optional("b", Use::In, Kind::Float, "the extents of the normalised axes"),
        written("y", Kind::Float, "the shape of `x`"),
        optional("mean", Use::Out, Kind::Float, "the shape of `x` without the normalised axes"),
        optional("rstd", Use::Out, Kind::Float, "1 / sqrt(var + eps), shaped as `mean`"),
    ],
    settings: &[AXIS, setting("eps", SettingKind::Number, "added to the variance; default 1e-5")],
    large: &["x"],
    check: check_norm,
    run: run_layer_norm,
    work: |bound| work(bound, 7.0),
    hint: no_hint,
};

/// `y = x / sqrt(mean(x^2) + eps) * w`; of `residual + x` if there is a residual.
pub(in crate::reference) static RMS_NORM: Builtin = Builtin {
    name: "rms_norm",
    doc: "x / sqrt(mean(x^2) + eps) * w along axes; with `residual`, it first becomes residual + x and is then normalised instead of x; \
          scale: |y| (with a residual of |residual| + |x|)",
    slots: &[
        read("x", Kind::Float, "any shape"),
        optional("w", Use::In, Kind::Float, "the extents of the normalised axes"),
        optional("residual", Use::Inout, Kind::Float, "the shape of `x`; becomes residual + x"),
        written("y", Kind::Float, "the shape of `x`"),
        optional(
            "rstd",
            Use::Out,
            Kind::Float,
            "1 / sqrt(mean(x^2) + eps), the shape of `x` without the normalised axes",
        ),
    ],
    settings: &[AXIS, setting("eps", SettingKind::Number, "added to the mean square; default 1e-6")],
    large: &["x"],
    check: check_norm,
    run: run_rms_norm,
    work: |bound| work(bound, 4.0),
    hint: no_hint,
};

/// Batch normalization as in training.
pub(in crate::reference) static BATCH_NORM: Builtin = Builtin {
    name: "batch_norm",
    doc: "training: (x - mean) / sqrt(var + eps) * w + b with mean and var over every axis except the channels; \
          with one value per channel, y is b (PyTorch refuses this); running = (1 - momentum) * running + momentum * batch, with the variance of n - 1; scale: as layer_norm, of running statistics \
          (1 - momentum) |running| + momentum * (mean |x|, or the mean square times n / (n - 1))",
    slots: &[
        read("x", Kind::Float, "any shape, channels on `axis`"),
        optional("w", Use::In, Kind::Float, "[channels]"),
        optional("b", Use::In, Kind::Float, "[channels]"),
        optional("running_mean", Use::Inout, Kind::Float, "[channels]"),
        optional("running_var", Use::Inout, Kind::Float, "[channels]"),
        written("y", Kind::Float, "the shape of `x`"),
        optional("mean", Use::Out, Kind::Float, "[channels]: the batch's mean"),
        optional("rstd", Use::Out, Kind::Float, "[channels]: 1 / sqrt(var + eps) of the batch"),
    ],
    settings: &[
        setting("axis", SettingKind::Integer, "the axis of the channels; default 1"),
        setting("eps", SettingKind::Number, "added to the variance; default 1e-5"),
        setting("momentum", SettingKind::Number, "the weight of the batch in running statistics; default 0.1"),
    ],
    large: &["x"],
    check: check_batch_norm,
    run: run_batch_norm,
    work: |bound| work(bound, 7.0),
    hint: |_, slot| (slot == "running_var").then_some(Init::Positive),
};

/// The axes along each row.
fn axes(bound: &Bound<'_>) -> Result<Vec<usize>, Error> {
    let rank = bound.dims("x").len();
    if bound.builtin.name != "batch_norm" {
        return bound.axes(rank);
    }
    let stated = bound.integer("axis").unwrap_or(1);
    let counted = if stated < 0 { stated + rank as i64 } else { stated };
    match usize::try_from(counted) {
        Ok(channel) if channel < rank => Ok((0..rank).filter(|axis| *axis != channel).collect()),
        _ => Err(Error::NoAxis { axis: stated, rank }),
    }
}

fn rows(bound: &Bound<'_>) -> Result<Rows, Error> {
    Ok(Rows::new(&bound.dims("x"), &axes(bound)?))
}

fn work(bound: &Bound<'_>, per_element: f64) -> Work {
    let length = axes(bound).map_or(1, |axes| length(&bound.dims("x"), &axes) as u64);
    Work { flops: per_element * bound.len("x") as f64, reduction: length }
}

fn check_norm(check: &mut Check<'_>) {
    let (Some(shape), Some(axes)) = (check.bound.shape("x"), check.axes("x")) else { return };
    check.not_empty("x", &axes);
    let normalised: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
    for slot in ["w", "b"] {
        check.shape(slot, &normalised, "the extents of the normalised axes");
    }
    for slot in ["y", "residual"] {
        check.shape(slot, &shape, "that of `x`");
    }
    for slot in ["mean", "rstd"] {
        super::reduce::reduced_shape(check, slot, &shape, &axes);
    }
}

fn check_batch_norm(check: &mut Check<'_>) {
    let Some(shape) = check.bound.shape("x") else { return };
    let axes = match axes(&check.bound) {
        Ok(axes) => axes,
        Err(error) => return check.error(error),
    };
    check.not_empty("x", &axes);
    check.shape("y", &shape, "that of `x`");
    let channels: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
    for slot in ["w", "b", "running_mean", "running_var", "mean", "rstd"] {
        check.shape(slot, &channels, "one value a channel");
    }
    let values: usize = axes.iter().map(|axis| shape[*axis]).product();
    if values < 2 && check.bound.tensor("running_var").is_some() {
        check.error("one value a channel has no variance of n - 1; `running_var` needs at least two");
    }
}

/// Mean, mean of absolute values, and mean squared deviation of a row.
fn moments(row: &[f64]) -> (f64, f64, f64) {
    let n = row.len() as f64;
    let mean = sum(row.iter().copied()) / n;
    let absolute = sum(row.iter().map(|x| x.abs())) / n;
    let variance = sum(row.iter().map(|x| (x - mean) * (x - mean))) / n;
    (mean, absolute, variance)
}

fn run_layer_norm(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let rows = rows(&call.bound)?;
    let eps = call.bound.number("eps").unwrap_or(1e-5);
    let (x, w, b) = (call.float("x")?, call.float_if("w")?, call.float_if("b")?);
    let weight = |i: usize| w.as_ref().map_or(1.0, |w| w[i]);
    let bias = |i: usize| b.as_ref().map_or(0.0, |b| b[i]);
    let statistics = rows.reduce(&x, moments);
    let rstd = |row: usize| 1.0 / (statistics[row].2 + eps).sqrt();
    let y = rows.map(&x, |r, row: &[f64], out: &mut [f64]| {
        for (i, y) in out.iter_mut().enumerate() {
            *y = (row[i] - statistics[r].0) * rstd(r) * weight(i) + bias(i);
        }
    });
    let scales = scale.then(|| {
        rows.map(&x, |r, row: &[f64], out: &mut [f64]| {
            for (i, s) in out.iter_mut().enumerate() {
                *s = (row[i].abs() + statistics[r].1) * rstd(r) * weight(i).abs() + bias(i).abs();
            }
        })
    });
    let mut produced = Produced::one("y", Values::Float(y), scales);
    put_statistics(&mut produced, &statistics, eps, scale);
    Ok(produced)
}

fn put_statistics(produced: &mut Produced, statistics: &[(f64, f64, f64)], eps: f64, scale: bool) {
    let means = statistics.iter().map(|s| s.0).collect();
    produced.put("mean", Values::Float(means), scale.then(|| statistics.iter().map(|s| s.1).collect()));
    let rstds: Vec<f64> = statistics.iter().map(|s| 1.0 / (s.2 + eps).sqrt()).collect();
    produced.put("rstd", Values::Float(rstds.clone()), scale.then_some(rstds));
}

fn run_rms_norm(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let rows = rows(&call.bound)?;
    let eps = call.bound.number("eps").unwrap_or(1e-6);
    let (x, w, residual) = (call.float("x")?, call.float_if("w")?, call.float_if("residual")?);
    let weight = |i: usize| w.as_ref().map_or(1.0, |w| w[i]);
    let mut produced = Produced::default();
    let (x, magnitude) = match residual {
        Some(r) => {
            let added: Vec<f64> = x.iter().zip(r.iter()).map(|(x, r)| x + r).collect();
            let magnitude: Vec<f64> = x.iter().zip(r.iter()).map(|(x, r)| x.abs() + r.abs()).collect();
            produced.put("residual", Values::Float(added.clone()), scale.then(|| magnitude.clone()));
            (added, magnitude)
        }
        None => (x.to_vec(), x.iter().map(|x| x.abs()).collect()),
    };
    let rstd = rows.reduce(&x, |row| 1.0 / (sum(row.iter().map(|x| x * x)) / row.len() as f64 + eps).sqrt());
    let scaled = |values: &[f64], absolute: bool| {
        rows.map(values, |r, row: &[f64], out: &mut [f64]| {
            for (i, y) in out.iter_mut().enumerate() {
                let product = row[i] * rstd[r] * weight(i);
                *y = if absolute { product.abs() } else { product };
            }
        })
    };
    let y = scaled(&x, false);
    produced.put("y", Values::Float(y), scale.then(|| scaled(&magnitude, true)));
    produced.put("rstd", Values::Float(rstd.clone()), scale.then_some(rstd));
    Ok(produced)
}

fn run_batch_norm(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let rows = rows(&call.bound)?;
    let eps = call.bound.number("eps").unwrap_or(1e-5);
    let momentum = call.bound.number("momentum").unwrap_or(0.1);
    let (x, w, b) = (call.float("x")?, call.float_if("w")?, call.float_if("b")?);
    let weight = |c: usize| w.as_ref().map_or(1.0, |w| w[c]);
    let bias = |c: usize| b.as_ref().map_or(0.0, |b| b[c]);
    let statistics = rows.reduce(&x, moments);
    let rstd = |c: usize| 1.0 / (statistics[c].2 + eps).sqrt();
    let y = rows.map(&x, |c, row: &[f64], out: &mut [f64]| {
        for (y, x) in out.iter_mut().zip(row) {
            *y = (x - statistics[c].0) * rstd(c) * weight(c) + bias(c);
        }
    });
    let scales = scale.then(|| {
        rows.map(&x, |c, row: &[f64], out: &mut [f64]| {
            for (s, x) in out.iter_mut().zip(row) {
                *s = (x.abs() + statistics[c].1) * rstd(c) * weight(c).abs() + bias(c).abs();
            }
        })
    });
    let mut produced = Produced::one("y", Values::Float(y), scales);
    put_statistics(&mut produced, &statistics, eps, scale);
    let unbiased = rows.len as f64 / (rows.len as f64 - 1.0);
    let blend = |old: &[f64], new: &dyn Fn(usize) -> f64, absolute: bool| -> Vec<f64> {
        let old = old.iter().enumerate();
        old.map(|(c, r)| (1.0 - momentum) * if absolute { r.abs() } else { *r } + momentum * new(c)).collect()
    };
    if let Some(old) = call.float_if("running_mean")? {
        let values = blend(&old, &|c| statistics[c].0, false);
        produced.put("running_mean", Values::Float(values), scale.then(|| blend(&old, &|c| statistics[c].1, true)));
    }
    if let Some(old) = call.float_if("running_var")? {
        let values = blend(&old, &|c| statistics[c].2 * unbiased, false);
        // The mean square is the variance plus the squared mean.
        let square = |c: usize| (statistics[c].2 + statistics[c].0 * statistics[c].0) * unbiased;
        produced.put("running_var", Values::Float(values), scale.then(|| blend(&old, &square, true)));
    }
    Ok(produced)
}
