//! Simulated annealing in several chains (Kirkpatrick, Gelatt, Vecchi 1983). The chains' positions are not stored: they follow from replaying the visits.
//!
//! The cost is the logarithm of time. The temperature falls geometrically with the spent budget, from [`HOT`] to [`COLD`]. A variant whose cost is higher by
//! one temperature is accepted with probability 1/e: that is a slowdown of a quarter at first and of one percent at the end. A chain that is more than
//! [`STRAYED`] temperatures above the best continues from the best.

use super::draws::Draws;
use super::propose::{Proposal, Turn, VisitCost};

/// The temperature at the start: a variant that is slower by the factor 1.25 is then accepted with probability 1/e.
const HOT: f64 = 0.22;
/// The temperature at the end.
const COLD: f64 = 0.01;
/// The number of temperatures above the best beyond which a chain continues from the best.
const STRAYED: f64 = 4.0;

fn temperature(spent: f64) -> f64 {
    HOT * (COLD / HOT).powf(spent.clamp(0.0, 1.0))
}

/// The position of each of `chains` chains after these visits, and the best variant.
fn replay(visits: &[VisitCost], worst: f64, chains: usize, seed: u64) -> (Vec<Option<u32>>, Option<u32>) {
    let mut at: Vec<Option<(u32, f64)>> = vec![None; chains];
    let mut best: Option<(u32, f64)> = None;
    for (nth, seen) in visits.iter().enumerate() {
        let cost = seen.cost.unwrap_or(worst);
        let heat = temperature(seen.spent);
        if seen.cost.is_some() && best.is_none_or(|(_, b)| cost < b) {
            best = Some((seen.variant, cost));
        }
        let chain = &mut at[seen.chain as usize % chains];
        let luck = Draws::new(seed, nth as u64).unit();
        if chain.is_none_or(|(_, here)| cost <= here || luck < ((here - cost) / heat).exp()) {
            *chain = Some((seen.variant, cost));
        }
        if let (Some((_, here)), Some(b)) = (*chain, best)
            && here > b.1 + STRAYED * heat
        {
            *chain = Some(b);
        }
    }
    (at.into_iter().map(|c| c.map(|c| c.0)).collect(), best.map(|b| b.0))
}

/// The next step of each chain.
pub(super) fn propose(turn: &Turn<'_>, count: usize) -> Vec<Proposal> {
    let (at, best) = replay(turn.visits, turn.worst(), turn.chains, turn.seed);
    let mut out: Vec<Proposal> = vec![];
    for chain in 0..count {
        let mut draws = Draws::new(turn.seed, 0x0a00_0000 + (turn.visited + chain) as u64);
        let free = |v: u32| turn.free(v) && out.iter().all(|p| p.variant != v);
        let start = at[chain % turn.chains].or(best);
        let step = start.and_then(|start| {
            let near: Vec<u32> = turn.geometry.neighbours(start).into_iter().filter(|v| free(*v)).collect();
            // All its neighbors were visited: the chain continues from the best, at the nearest free variant.
            let from_here = (!near.is_empty()).then(|| near[draws.below(near.len())]);
            from_here.or_else(|| turn.geometry.nearest(best.unwrap_or(start), &mut draws, free))
        });
        let Some(variant) = step.or_else(|| turn.by_chance(free)) else { break };
        out.push(Proposal { variant, chain: (chain % turn.chains) as u32 });
    }
    out
}
