//! Search by a model: fits a forest to the logarithms of the times so far, and next visits the variants with the best prediction
//! (lower confidence bounds, as in SMAC: Hutter, Hoos, Leyton-Brown 2011). Each variant of a batch is bolder than the one before: the
//! first trusts the mean, the last looks where trees disagree.

use std::cmp::Ordering;

use super::forest::{Forest, Table};
use super::propose::Turn;

/// The number of variants among which the first visits are spread out.
const POOL: usize = 256;
/// The most variants that are predicted: in a larger space, the first of the seeded order and the neighbors of visited variants.
const PREDICTED: usize = 20_000;
/// By how many standard deviations the last variant of a batch is bolder than the first.
const BOLDEST: f64 = 1.5;

/// The next variants, `count` of them or as many as are left.
pub(super) fn propose(turn: &Turn<'_>, count: usize) -> Vec<u32> {
    let known = turn.visits.len();
    let design = count.max(2 * turn.geometry.space.tunables.len());
    if known < design || turn.visits.iter().all(|s| s.cost.is_none()) {
        return spread(turn, count);
    }
    let worst = turn.worst();
    let rows: Vec<Vec<f64>> = turn.visits.iter().map(|s| turn.geometry.features(s.variant)).collect();
    let costs: Vec<f64> = turn.visits.iter().map(|s| s.cost.unwrap_or(worst)).collect();
    let forest = Forest::fit(&Table { rows: &rows, costs: &costs }, turn.seed, turn.visited as u64);
    let best = turn.visits.iter().filter_map(|s| Some((s.cost?, s.variant))).min_by(|a, b| a.0.total_cmp(&b.0));
    let best = best.map_or(0, |b| b.1);
    // Trees predict the same for whole boxes: of a box, the variant nearest to the best is taken.
    let mut promised: Vec<(f64, f64, f64, u32)> = candidates(turn)
        .into_iter()
        .map(|v| {
            let (mean, spread) = forest.predict(&turn.geometry.features(v));
            (mean, spread, turn.geometry.distance(v, best), v)
        })
        .collect();
    let mut out = vec![];
    for nth in 0..count {
        let bold = BOLDEST * nth as f64 / count.max(2).saturating_sub(1) as f64;
        let bound = |p: &(f64, f64, f64, u32)| p.0 - bold * p.1;
        let better = |a: &(f64, f64, f64, u32), b: &(f64, f64, f64, u32)| -> Ordering {
            bound(a).total_cmp(&bound(b)).then(a.2.total_cmp(&b.2))
        };
        let Some(at) = (0..promised.len()).min_by(|a, b| better(&promised[*a], &promised[*b])) else { break };
        out.push(promised.remove(at).3);
    }
    out
}

/// Variants that can be visited, in the seeded order.
fn candidates(turn: &Turn<'_>) -> Vec<u32> {
    let mut out: Vec<u32> = turn.order.iter().copied().filter(|v| turn.free(*v)).take(PREDICTED).collect();
    if turn.geometry.len() > PREDICTED {
        let near = turn.visits.iter().flat_map(|s| turn.geometry.neighbours(s.variant)).filter(|v| turn.free(*v));
        let mut known: std::collections::HashSet<u32> = out.iter().copied().collect();
        out.extend(near.collect::<Vec<_>>().into_iter().filter(|v| known.insert(*v)));
    }
    out
}

/// Variants far from each other and from the visited ones: from a seeded pool, repeatedly the variant whose nearest neighbor is furthest.
fn spread(turn: &Turn<'_>, count: usize) -> Vec<u32> {
    let mut pool: Vec<u32> = turn.order.iter().copied().filter(|v| turn.free(*v)).take(POOL).collect();
    let mut near: Vec<u32> = turn.visits.iter().map(|s| s.variant).collect();
    let mut out = vec![];
    while out.len() < count && !pool.is_empty() {
        let least = |v: u32| near.iter().map(|n| turn.geometry.distance(v, *n)).fold(f64::INFINITY, f64::min);
        // Of equals, the first in the seeded order.
        let far: Vec<f64> = pool.iter().map(|v| least(*v)).collect();
        let at = (0..pool.len()).rev().max_by(|a, b| far[*a].total_cmp(&far[*b])).unwrap_or(0);
        let next = pool.remove(at);
        near.push(next);
        out.push(next);
    }
    out
}
