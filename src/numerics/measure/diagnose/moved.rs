//! Expected values at other places: exchanged axes, and shifts. Knows indices; a slice with the values of another slice is in `slices`.

use std::collections::BTreeSet;

use super::Explained;
use super::evidence::{Evidence, Extent, stride};
use kforge_types::record::WrongPattern;

/// The distances of shifts that are tried: neighbours, vectors, and tiles.
const DISTANCES: [u64; 11] = [1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512];

/// The longest shift of an output with several axes as one row: a longer one is a shift along an axis, or no shift.
const NEIGHBOURS: i64 = 4;

/// Two exchanged axes: the innermost pair first, because a matrix is most often transposed.
pub(super) fn transposed(evidence: &Evidence<'_>) -> Option<Explained> {
    let shape = evidence.of.shape;
    let pairs = (1..shape.len()).rev().flat_map(|b| (0..b).rev().map(move |a| (a, b)));
    let long = |at: usize| shape[at] > 1;
    pairs.filter(|(a, b)| long(*a) && long(*b)).find_map(|(a, b)| {
        let exchanged = Exchanged::new(shape, a, b);
        let extent = evidence.explains_places(|at| Some(exchanged.source(at)))?;
        Some(evidence.found(WrongPattern::Transposed { axes: (a as u32, b as u32) }, extent))
    })
}

/// An output that was written as if two of its axes were exchanged.
struct Exchanged {
    /// The extents as the kernel wrote them, and for each the distance of neighbours in the expected values.
    axes: Vec<(usize, usize)>,
}

impl Exchanged {
    fn new(shape: &[u64], a: usize, b: usize) -> Self {
        let mut axes: Vec<(usize, usize)> = (0..shape.len()).map(|i| (shape[i] as usize, stride(shape, i))).collect();
        axes.swap(a, b);
        Exchanged { axes }
    }

    /// The place of the expected value that was written at `at`.
    fn source(&self, at: usize) -> usize {
        let (mut rest, mut source) = (at, 0);
        for (extent, stride) in self.axes.iter().rev() {
            source += rest % extent * stride;
            rest /= extent;
        }
        source
    }
}

/// A shift, along an axis or of the output as one row. Of several that fit, that which explains most; of equals, a rotation, then the outermost axis.
pub(super) fn shifted(evidence: &Evidence<'_>) -> Option<Explained> {
    let (shape, elements) = (evidence.of.shape, evidence.of.want.len());
    let mut best: Option<(WrongPattern, Extent)> = None;
    let mut consider = |pattern: WrongPattern, extent: Option<Extent>| {
        let Some(extent) = extent else { return };
        if best.as_ref().is_none_or(|(_, known)| extent.explained() > known.explained()) {
            best = Some((pattern, extent));
        }
    };
    let signed = || DISTANCES.iter().flat_map(|by| [*by as i64, -(*by as i64)]);
    for (axis, extent) in shape.iter().enumerate().filter(|(_, extent)| **extent > 2) {
        let (stride, extent) = (stride(shape, axis), *extent as i64);
        for by in signed().filter(|by| by.abs() < extent) {
            // Half of an axis further is also half of it back.
            for rotated in
                [true, false].into_iter().filter(|rotated| !rotated || 2 * by.abs() < extent || 2 * by == extent)
            {
                let source = |at: usize| {
                    let here = (at / stride) as i64 % extent;
                    let there = if rotated { (here + by).rem_euclid(extent) } else { here + by };
                    let distance = (there - here) * stride as i64;
                    (0..extent).contains(&there).then(|| at.wrapping_add_signed(distance as isize))
                };
                let explained = evidence.explains_places(source);
                let explained = explained.filter(|_| shifts_several(evidence, stride, extent as usize));
                consider(WrongPattern::Shifted { axis: Some(evidence.axis(axis)), by, rotated }, explained);
            }
        }
    }
    // An output with one axis has been tried.
    if shape.len() > 1 {
        for by in signed().filter(|by| by.abs() <= NEIGHBOURS) {
            let source = |at: usize| at.checked_add_signed(by as isize).filter(|at| *at < elements);
            consider(WrongPattern::Shifted { axis: None, by, rotated: false }, evidence.explains_places(source));
        }
    }
    best.map(|(pattern, extent)| evidence.found(pattern, extent))
}

/// Whether at least three slices along an axis are wrong: one or two that hold the values of others were not shifted, but exchanged.
fn shifts_several(evidence: &Evidence<'_>, stride: usize, extent: usize) -> bool {
    let mut slices = BTreeSet::new();
    let wrong = (0..evidence.of.want.len()).filter(|at| evidence.is_wrong(*at));
    wrong.map(|at| at / stride % extent).any(|slice| {
        slices.insert(slice);
        slices.len() > 2
    })
}
