//! conv2d and max_pool2d over images [n, c, h, w].

use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{
    Builtin, Kind, Produced, Setting, SettingKind, Use, Work, no_hint, optional, read, setting, written,
};
use crate::reference::check::Check;
use crate::reference::error::Error;
use crate::reference::formula::{ACTIVATIONS, activation};
use crate::reference::gemm::{Matrix, multiply};
use crate::reference::values::Values;
use kforge_foundation::base::pieces;

const PADDING: Setting = setting("padding", SettingKind::Integers, "rows and columns added on each side; default 0");
const DILATION: Setting =
    setting("dilation", SettingKind::Integers, "distance between the elements of a window; default 1");

/// `y = conv(x, w) + bias`.
pub(in crate::reference) static CONV2D: Builtin = Builtin {
    name: "conv2d",
    doc: "activation(cross-correlation of `x` with `w` + bias); scale: that of |x| with |w|, + |bias|",
    slots: &[
        read("x", Kind::Float, "[n, c, h, w]"),
        read("w", Kind::Float, "[k, c / groups, r, s]"),
        optional("bias", Use::In, Kind::Float, "[k]"),
        written("y", Kind::Float, "[n, k, p, q], p = (h + 2 padding - dilation (r - 1) - 1) / stride + 1"),
    ],
    settings: &[
        setting("stride", SettingKind::Integers, "one integer, or one for rows and one for columns; default 1"),
        PADDING,
        DILATION,
        setting("groups", SettingKind::Integer, "the number of groups of channels; default 1"),
        setting("activation", SettingKind::Word(&ACTIVATIONS), "applied last; default `none`"),
    ],
    large: &[],
    check: check_conv,
    run: run_conv,
    work: |bound| {
        let filter: usize = bound.dims("w").iter().skip(1).product();
        Work { flops: 2.0 * bound.len("y") as f64 * filter as f64, reduction: filter as u64 }
    },
    hint: no_hint,
};

/// `y = max over windows of x`.
pub(in crate::reference) static MAX_POOL2D: Builtin = Builtin {
    name: "max_pool2d",
    doc: "the largest value of each window of `x`, padding counting as minus infinity; scale: |y|",
    slots: &[
        read("x", Kind::Float, "[n, c, h, w]"),
        written("y", Kind::Float, "[n, c, p, q]"),
        optional(
            "indices",
            Use::Out,
            Kind::Int,
            "the shape of `y`: the first position of the largest value in its image, row * w + column",
        ),
    ],
    settings: &[
        Setting {
            name: "kernel",
            kind: SettingKind::Integers,
            required: true,
            doc: "the size of the window: one integer, or its rows and columns",
        },
        setting("stride", SettingKind::Integers, "one integer, or one for rows and one for columns; default `kernel`"),
        PADDING,
        DILATION,
    ],
    large: &["x"],
    check: check_pool,
    run: run_pool,
    work: |bound| {
        let [r, s] = bound.pair("kernel", [1, 1]);
        Work { flops: bound.len("y") as f64 * (r * s) as f64, reduction: 1 }
    },
    hint: no_hint,
};

/// The positions of windows.
#[derive(Clone, Copy)]
struct Windows {
    image: [usize; 2],
    window: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    /// Number of windows along each axis.
    out: [usize; 2],
}

impl Windows {
    fn new(bound: &Bound<'_>, image: [usize; 2], window: [usize; 2], stride: [usize; 2]) -> Result<Self, Error> {
        for name in ["stride", "padding", "dilation", "kernel"] {
            let least = if name == "padding" { 0 } else { 1 };
            match bound.integers(name) {
                Some(list) if list.is_empty() || list.len() > 2 || list.iter().any(|v| *v < least || *v > 1 << 20) => {
                    return Err(Error::Window { setting: name, found: list, least });
                }
                _ => {}
            }
        }
        let stride = bound.pair("stride", stride);
        let padding = bound.pair("padding", [0, 0]);
        let dilation = bound.pair("dilation", [1, 1]);
        let mut out = [0; 2];
        for i in 0..2 {
            let span = dilation[i] * window[i].saturating_sub(1) + 1;
            let room = (image[i] + 2 * padding[i]).checked_sub(span).ok_or_else(|| Error::WindowTooLarge {
                window: span,
                image: image[i],
                padding: padding[i],
            })?;
            out[i] = room / stride[i] + 1;
        }
        Ok(Windows { image, window, stride, padding, dilation, out })
    }

    /// The position in the image of position (r, s) of window (p, q); none in the padding.
    fn place(&self, p: [usize; 2], r: [usize; 2]) -> Option<usize> {
        let along = |i: usize| {
            let at = (p[i] * self.stride[i] + r[i] * self.dilation[i]).checked_sub(self.padding[i])?;
            (at < self.image[i]).then_some(at)
        };
        Some(along(0)? * self.image[1] + along(1)?)
    }
}

fn groups(bound: &Bound<'_>) -> i64 {
    bound.integer("groups").unwrap_or(1)
}

fn check_conv(check: &mut Check<'_>) {
    let (Some(x), Some(w)) = (check.rank("x", 4, "[n, c, h, w]"), check.rank("w", 4, "[k, c / groups, r, s]")) else {
        return;
    };
    check.not_empty("x", &[1, 2, 3]);
    check.not_empty("w", &[1, 2, 3]);
    let groups = groups(&check.bound);
    if groups < 1 || x[1] as i64 % groups != 0 || w[0] as i64 % groups != 0 {
        return check.error(format!("`groups` is {groups}, expected a divisor of {} and of {} channels", x[1], w[0]));
    }
    let per_group = x[1] / groups as usize;
    check.shape("w", &[w[0], per_group, w[2], w[3]], "[k, c / groups, r, s]");
    check.shape("bias", &[w[0]], "one value an output channel");
    match Windows::new(&check.bound, [x[2], x[3]], [w[2], w[3]], [1, 1]) {
        Ok(windows) => check.shape("y", &[x[0], w[0], windows.out[0], windows.out[1]], "[n, k, p, q]"),
        Err(error) => check.error(error),
    }
}

fn check_pool(check: &mut Check<'_>) {
    let Some(x) = check.rank("x", 4, "[n, c, h, w]") else { return };
    check.not_empty("x", &[2, 3]);
    let kernel = check.bound.pair("kernel", [1, 1]);
    match Windows::new(&check.bound, [x[2], x[3]], kernel, kernel) {
        Ok(windows) => {
            for slot in ["y", "indices"] {
                check.shape(slot, &[x[0], x[1], windows.out[0], windows.out[1]], "[n, c, p, q]");
            }
            if (0..2).any(|i| windows.padding[i] * 2 > kernel[i]) {
                check.error(format!("`padding` {:?} exceeds half of `kernel` {kernel:?}", windows.padding));
            }
        }
        Err(error) => check.error(error),
    }
}

/// Matrix products of filters with columns: each window of a group is laid out as a column. Memory: a group's columns of one image at a time.
fn correlate(bound: &Bound<'_>, x: &[f64], w: &[f64]) -> Result<Vec<f64>, Error> {
    let (xs, ws) = (bound.dims("x"), bound.dims("w"));
    let windows = Windows::new(bound, [xs[2], xs[3]], [ws[2], ws[3]], [1, 1])?;
    let groups = groups(bound) as usize;
    let (per_group, filters, area) = (ws[1], ws[0] / groups, ws[2] * ws[3]);
    let (image, places) = (xs[2] * xs[3], windows.out[0] * windows.out[1]);
    let k = per_group * area;
    let mut y = vec![0.0; xs[0] * ws[0] * places];
    pieces::chunks(&mut y, filters * places, |part, y| {
        let (n, group) = (part / groups, part % groups);
        let mut columns = vec![0.0; k * places];
        for c in 0..per_group {
            let channel = &x[(n * xs[1] + group * per_group + c) * image..][..image];
            for rs in 0..area {
                let row = &mut columns[(c * area + rs) * places..][..places];
                for (pq, value) in row.iter_mut().enumerate() {
                    let window = [pq / windows.out[1], pq % windows.out[1]];
                    *value = windows.place(window, [rs / ws[3], rs % ws[3]]).map_or(0.0, |at| channel[at]);
                }
            }
        }
        let left = Matrix { values: w, start: group * filters * k, row: k, column: 1 };
        let right = Matrix { values: &columns, start: 0, row: places, column: 1 };
        multiply(filters, k, places, left, right, y);
    });
    Ok(y)
}

fn run_conv(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let bound = &call.bound;
    let (x, w, bias) = (call.float("x")?, call.float("w")?, call.float_if("bias")?);
    let (channels, places) = (bound.dims("w")[0], bound.dims("y").iter().skip(2).product::<usize>());
    let apply = activation(&bound.word("activation", "none"));
    let bias_at = |i: usize| bias.as_ref().map_or(0.0, |b| b[i / places % channels]);
    let y = correlate(bound, &x, &w)?.into_iter().enumerate().map(|(i, y)| apply(y + bias_at(i))).collect();
    let scales = if scale {
        let absolute = |values: &[f64]| values.iter().map(|v| v.abs()).collect::<Vec<_>>();
        let sums = correlate(bound, &absolute(&x), &absolute(&w))?;
        Some(sums.into_iter().enumerate().map(|(i, s)| s + bias_at(i).abs()).collect())
    } else {
        None
    };
    Ok(Produced::one("y", Values::Float(y), scales))
}

fn run_pool(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let bound = &call.bound;
    let shape = bound.dims("x");
    let kernel = bound.pair("kernel", [1, 1]);
    let windows = Windows::new(bound, [shape[2], shape[3]], kernel, kernel)?;
    let x = call.float("x")?;
    let image = shape[2] * shape[3];
    let places = windows.out[0] * windows.out[1];
    let mut pooled = vec![(0.0, 0); shape[0] * shape[1] * places];
    pieces::chunks(&mut pooled, places, |at, pooled| {
        let channel = &x[at * image..][..image];
        for (pq, pooled) in pooled.iter_mut().enumerate() {
            let window = [pq / windows.out[1], pq % windows.out[1]];
            let mut best = (f64::NEG_INFINITY, -1);
            for rs in 0..windows.window[0] * windows.window[1] {
                let Some(at) = windows.place(window, [rs / kernel[1], rs % kernel[1]]) else { continue };
                let value = channel[at];
                if best.1 < 0 || value > best.0 || (value.is_nan() && !best.0.is_nan()) {
                    best = (value, at as i64);
                }
            }
            *pooled = best;
        }
    });
    let y: Vec<f64> = pooled.iter().map(|p| p.0).collect();
    let scales = scale.then(|| y.iter().map(|y| y.abs()).collect());
    let mut produced = Produced::one("y", Values::Float(y), scales);
    produced.put("indices", Values::Int(pooled.into_iter().map(|p| p.1).collect()), None);
    Ok(produced)
}
