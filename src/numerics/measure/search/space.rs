//! The space as a graph: two variants are neighbors if they differ in one tunable, by one step along its declared list, or by any step if its values have no
//! order. Knows positions of values; does not know what they mean.

use std::collections::{HashMap, HashSet, VecDeque};

use super::draws::Draws;
use kforge_types::model::TuneValue;
use kforge_types::record::search::SearchSpace;

/// A space, and the position of each point in it.
pub(super) struct Geometry<'a> {
    pub(super) space: &'a SearchSpace,
    at: HashMap<&'a [u32], u32>,
}

/// Whether values have no order: strings.
fn unordered(values: &[TuneValue]) -> bool {
    matches!(values.first(), Some(TuneValue::Str(_)))
}

impl<'a> Geometry<'a> {
    pub(super) fn new(space: &'a SearchSpace) -> Self {
        let at = (0u32..).zip(&space.points).map(|(i, p)| (p.as_slice(), i)).collect();
        Geometry { space, at }
    }

    /// The number of variants.
    pub(super) fn len(&self) -> usize {
        self.space.points.len()
    }

    /// Whether a variant serves all of these shapes.
    pub(super) fn serves(&self, variant: u32, shapes: &[u32]) -> bool {
        let of = &self.space.domains[self.space.serves[variant as usize] as usize];
        shapes.iter().all(|s| of.contains(s))
    }

    /// The shapes that a variant serves.
    pub(super) fn domain(&self, variant: u32) -> &'a [u32] {
        &self.space.domains[self.space.serves[variant as usize] as usize]
    }

    /// The variants that differ from one in a single step of a single tunable.
    pub(super) fn neighbours(&self, variant: u32) -> Vec<u32> {
        let mut point = self.space.points[variant as usize].clone();
        let mut out = vec![];
        for (axis, values) in self.space.tunables.iter().enumerate() {
            let here = point[axis];
            let others = 0..values.len() as u32;
            for there in others.filter(|o| *o != here && (unordered(values) || o.abs_diff(here) == 1)) {
                point[axis] = there;
                out.extend(self.at.get(point.as_slice()).copied());
            }
            point[axis] = here;
        }
        out
    }

    /// The variant nearest to `start` for which `wanted` holds, by steps from neighbor to neighbor; a random one of several. None if no path leads to any.
    pub(super) fn nearest(&self, start: u32, draws: &mut Draws, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let mut seen: HashSet<u32> = [start].into();
        let mut open: VecDeque<u32> = [start].into();
        while let Some(at) = open.pop_front() {
            let mut next = self.neighbours(at);
            draws.shuffle(&mut next);
            for there in next {
                if seen.insert(there) {
                    if wanted(there) {
                        return Some(there);
                    }
                    open.push_back(there);
                }
            }
        }
        None
    }

    /// The distance of two variants: for each tunable, the share of its list between the two values, or one if the values have no order and differ.
    pub(super) fn distance(&self, a: u32, b: u32) -> f64 {
        let (a, b) = (&self.space.points[a as usize], &self.space.points[b as usize]);
        let axes = self.space.tunables.iter().zip(a.iter().zip(b));
        axes.map(|(values, (a, b))| match (a == b, unordered(values)) {
            (true, _) => 0.0,
            (false, true) => 1.0,
            (false, false) => f64::from(a.abs_diff(*b)) / (values.len() - 1) as f64,
        })
        .sum()
    }

    /// A variant as numbers for regression: for each tunable its position along the list or, if its values have no order, one or zero for each value.
    pub(super) fn features(&self, variant: u32) -> Vec<f64> {
        let mut out = vec![];
        for (values, at) in self.space.tunables.iter().zip(&self.space.points[variant as usize]) {
            match unordered(values) {
                false => out.push(f64::from(*at)),
                true => out.extend((0..values.len() as u32).map(|v| f64::from(u8::from(v == *at)))),
            }
        }
        out
    }
}
