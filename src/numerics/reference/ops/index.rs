//! transpose, gather, embedding: values are moved, not computed. Exact for integers and floats.

use crate::reference::bind::{Bound, Call};
use crate::reference::builtin::{Builtin, Kind, Produced, SettingKind, Work, no_hint, read, setting, written};
use crate::reference::check::Check;
use crate::reference::error::{Error, Range};
use crate::reference::rows::transposed;
use crate::reference::values::Values;
use kforge_types::model::Init;

/// `y = x` with its axes in another order.
pub(in crate::reference) static TRANSPOSE: Builtin = Builtin {
    name: "transpose",
    doc: "axis k of `y` is axis axes[k] of `x`; scale: |y|",
    slots: &[read("x", Kind::Any, "any shape"), written("y", Kind::Any, "the extents of `x` in the new order")],
    settings: &[setting("axes", SettingKind::Integers, "where each axis comes from; default reversed")],
    large: &["x"],
    check: check_transpose,
    run: |call, scale| {
        let shape = call.bound.dims("x");
        let axes = permutation(&call.bound, shape.len())?;
        Ok(moved(transposed(call.values("x")?, &shape, &axes), scale))
    },
    work: |_| Work { flops: 0.0, reduction: 1 },
    hint: no_hint,
};

/// `y[i, j] = x[index[i, j], j]`, like numpy's `take_along_axis` and PyTorch's `gather`.
pub(in crate::reference) static GATHER: Builtin = Builtin {
    name: "gather",
    doc: "y[i, j] = x[index[i, j], j] for axis 0 of two, and so on, as numpy's take_along_axis and PyTorch's gather; scale: |y|",
    slots: &[
        read("x", Kind::Any, "any shape"),
        read(
            "index",
            Kind::Int,
            "the rank of `x`, with extents of at most those of `x` except along `axis`; positions along that axis of `x`",
        ),
        written("y", Kind::Any, "the shape of `index`"),
    ],
    settings: &[setting("axis", SettingKind::Integer, "the axis; default -1")],
    large: &["x"],
    check: check_gather,
    run: run_gather,
    work: |_| Work { flops: 0.0, reduction: 1 },
    hint: |bound, slot| {
        let shape = bound.dims("x");
        let extent = bound.axes(shape.len()).ok().and_then(|axes| Some(shape[*axes.first()?]))?;
        (slot == "index").then_some(Init::Range(0.0, extent.saturating_sub(1) as f64))
    },
};

/// `y[..., :] = w[ids[...], :]`.
pub(in crate::reference) static EMBEDDING: Builtin = Builtin {
    name: "embedding",
    doc: "y[..., :] = w[ids[...], :]; scale: |y|",
    slots: &[
        read("w", Kind::Any, "[entries, width]"),
        read("ids", Kind::Int, "any shape: from 0 to entries - 1"),
        written("y", Kind::Any, "the shape of `ids`, then width"),
    ],
    settings: &[],
    large: &["w"],
    check: check_embedding,
    run: run_embedding,
    work: |_| Work { flops: 0.0, reduction: 1 },
    hint: |bound, slot| {
        let entries = bound.dims("w").first().copied()?;
        (slot == "ids").then_some(Init::Range(0.0, entries.saturating_sub(1) as f64))
    },
};

/// Moved values with their magnitudes as scale.
fn moved(values: Values, scale: bool) -> Produced {
    let scales = scale.then(|| values.magnitudes());
    Produced::one("y", values, scales)
}

fn permutation(bound: &Bound<'_>, rank: usize) -> Result<Vec<usize>, Error> {
    let Some(stated) = bound.integers("axes") else { return Ok((0..rank).rev().collect()) };
    let counted = |axis: &i64| usize::try_from(if *axis < 0 { axis + rank as i64 } else { *axis }).ok();
    let axes: Vec<usize> = stated.iter().filter_map(counted).collect();
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if axes.len() == stated.len() && sorted.into_iter().eq(0..rank) {
        Ok(axes)
    } else {
        Err(Error::Permutation { stated, last: rank.saturating_sub(1) })
    }
}

fn check_transpose(check: &mut Check<'_>) {
    let Some(shape) = check.bound.shape("x") else { return };
    match permutation(&check.bound, shape.len()) {
        Ok(axes) => {
            let expected: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
            check.shape("y", &expected, &format!("`x` {shape:?} with axes {axes:?}"));
        }
        Err(error) => check.error(error),
    }
    same_kind(check, "x");
}

/// Checks that `y` can hold the moved values.
fn same_kind(check: &mut Check<'_>, from: &str) {
    let (Some(x), Some(y)) = (check.bound.tensor(from), check.bound.tensor("y")) else { return };
    if x.dtype.is_float() != y.dtype.is_float() {
        check.error(format!(
            "`{}` is {} and `{}` is {}; both must be floats or both integers",
            x.name, x.dtype, y.name, y.dtype
        ));
    }
}

fn check_gather(check: &mut Check<'_>) {
    let (Some(x), Some(axis)) = (check.bound.shape("x"), check.axis("x")) else { return };
    let Some(index) = check.rank("index", x.len(), "that of `x`") else { return };
    if (0..x.len()).any(|i| i != axis && index[i] > x[i]) {
        let (index_name, x_name) = (check.bound.own_name("index").to_owned(), check.bound.own_name("x").to_owned());
        check.error(format!(
            "`{index_name}` has shape {index:?}, which exceeds {x:?} of `{x_name}` on an axis other than {axis}"
        ));
    }
    check.shape("y", &index, "that of `index`");
    same_kind(check, "x");
}

fn check_embedding(check: &mut Check<'_>) {
    let Some(w) = check.rank("w", 2, "[entries, width]") else { return };
    let mut expected = check.bound.dims("ids");
    expected.push(w[1]);
    check.shape("y", &expected, "the shape of `ids`, then the width of `w`");
    same_kind(check, "w");
}

/// Checks that an index is below `extent`.
fn within(name: &str, place: usize, index: i64, extent: usize) -> Result<usize, Error> {
    usize::try_from(index).ok().filter(|i| *i < extent).ok_or_else(|| Error::OutOfRange {
        tensor: name.to_owned(),
        place: vec![place],
        found: index,
        expected: Range::UpTo(extent.saturating_sub(1)),
    })
}

fn run_gather(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let (shape, over) = (call.bound.dims("x"), call.bound.dims("index"));
    let axis = call.bound.axes(shape.len())?.first().copied().unwrap_or(0);
    let name = call.bound.own_name("index");
    let mut places = Vec::with_capacity(over.iter().product());
    for (place, index) in call.ints("index")?.iter().enumerate() {
        let index = within(name, place, *index, shape[axis])?;
        let (mut rest, mut at, mut stride) = (place, 0, 1);
        for i in (0..shape.len()).rev() {
            let coordinate = if i == axis { index } else { rest % over[i] };
            rest /= over[i];
            at += coordinate * stride;
            stride *= shape[i];
        }
        places.push(at);
    }
    Ok(moved(call.values("x")?.take(places.into_iter()), scale))
}

fn run_embedding(call: &Call<'_>, scale: bool) -> Result<Produced, Error> {
    let shape = call.bound.dims("w");
    let (entries, width) = (shape[0], shape[1]);
    let name = call.bound.own_name("ids");
    let ids = call.ints("ids")?.iter().enumerate();
    let rows = ids.map(|(place, id)| within(name, place, *id, entries)).collect::<Result<Vec<_>, _>>()?;
    let places = rows.into_iter().flat_map(|row| (0..width).map(move |j| row * width + j));
    Ok(moved(call.values("w")?.take(places), scale))
}
