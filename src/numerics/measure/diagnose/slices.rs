//! Slices along an axis (rows, heads, batches) that hold the expected values of other slices. Knows indices; does not know what an axis means.

use std::collections::HashMap;

use super::Explained;
use super::evidence::{Apart, Evidence, stride};
use kforge_types::record::{Arrangement, WrongPattern};

/// The fewest wrong elements of a slice that show where its values are from, and how many of their expected values must be clearly apart.
const OF_SLICE: usize = 4;
/// The most pairs of slices that are compared.
const PAIRS: u64 = 1 << 20;
/// How many wrong slices a diagnosis lists.
const LISTED: usize = 4;

/// Every wrong slice holds the expected values of another slice along the same axis. The outermost axis is tried first.
pub(super) fn moved(evidence: &Evidence<'_>) -> Option<Explained> {
    let shape = evidence.of.shape;
    let several = |axis: &usize| shape.len() > 1 && shape[*axis] > 1;
    (0..shape.len()).filter(several).find_map(|axis| along(evidence, axis))
}

fn along(evidence: &Evidence<'_>, axis: usize) -> Option<Explained> {
    let (shape, elements) = (evidence.of.shape, evidence.of.want.len());
    let (stride, extent) = (stride(shape, axis), shape[axis] as usize);
    let slice_of = |at: usize| at / stride % extent;
    // The wrong elements with which slices are told apart.
    let mut shown: Vec<Vec<usize>> = vec![vec![]; extent];
    for at in (0..elements).filter(|at| evidence.is_wrong(*at)) {
        let shown = &mut shown[slice_of(at)];
        if shown.len() < 4 * OF_SLICE {
            shown.push(at);
        }
    }
    let wrong: Vec<usize> = (0..extent).filter(|slice| !shown[*slice].is_empty()).collect();
    if wrong.len() as u64 * extent as u64 > PAIRS || wrong.is_empty() {
        return None;
    }
    let mut from: HashMap<usize, usize> = HashMap::new();
    for slice in &wrong {
        let mut apart = Apart::default();
        shown[*slice].iter().map(|at| evidence.of.got[*at]).for_each(|got| apart.add(got, evidence.gap_of(got)));
        if apart.count() < OF_SLICE {
            return None;
        }
        let there = |at: usize, other: usize| at - slice * stride + other * stride;
        let is_from =
            |other: &usize| other != slice && shown[*slice].iter().all(|at| evidence.is_from(*at, there(*at, *other)));
        let mut sources = (0..extent).filter(is_from);
        let source = sources.next()?;
        // Two slices with the same expected values do not tell which of them it is.
        if sources.next().is_some() {
            return None;
        }
        from.insert(*slice, source);
    }
    let source = |at: usize| {
        let slice = slice_of(at);
        let other = from.get(&slice).copied().unwrap_or(slice);
        Some(at - slice * stride + other * stride)
    };
    let extent_of = evidence.explains_places(source)?;
    let pairs: Vec<(u64, u64)> = wrong.iter().map(|slice| (*slice as u64, from[slice] as u64)).collect();
    let pattern = WrongPattern::Slices {
        axis: evidence.axis(axis),
        arrangement: arranged(&pairs, extent as u64),
        slices: pairs.len() as u64,
        first: pairs.into_iter().take(LISTED).collect(),
    };
    Some(evidence.found(pattern, extent_of))
}

/// How pairs of slices are arranged that hold each other's values.
fn arranged(pairs: &[(u64, u64)], extent: u64) -> Arrangement {
    match pairs {
        [(a, b), (c, d)] if (a, b) == (d, c) => Arrangement::Swapped,
        [(_, one), _, ..] if pairs.iter().all(|(_, other)| other == one) => Arrangement::Repeated,
        // The slice in the middle stays where it is.
        _ if pairs.len() as u64 == extent - extent % 2 && pairs.iter().all(|(a, b)| a + b + 1 == extent) => {
            Arrangement::Reversed
        }
        _ => Arrangement::Other,
    }
}
