//! The next variants to visit, by strategy. Knows what was seen; does not keep state.

use std::collections::HashSet;

use super::draws::Draws;
use super::space::Geometry;
use super::{NOT_WORKING, annealing, model};
use kforge_types::model::search::Strategy;

/// A visit as strategies see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct VisitCost {
    pub(super) variant: u32,
    pub(super) chain: u32,
    pub(super) spent: f64,
    /// The logarithm of its time; none if the variant does not work.
    pub(super) cost: Option<f64>,
}

/// A variant to visit, and the chain that proposes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) variant: u32,
    pub(super) chain: u32,
}

/// The inputs of a strategy.
pub(super) struct Turn<'a> {
    pub(super) geometry: &'a Geometry<'a>,
    pub(super) seed: u64,
    /// The number of chains of annealing.
    pub(super) chains: usize,
    /// Visits of variants that serve the class that has its turn.
    pub(super) visits: &'a [VisitCost],
    /// The number of visits over all classes.
    pub(super) visited: usize,
    /// Variants that were visited.
    pub(super) taken: &'a HashSet<u32>,
    /// The shapes of the class that has its turn.
    pub(super) shapes: &'a [u32],
    /// All variants in the seeded order.
    pub(super) order: &'a [u32],
    /// The variants to visit before any strategy has its say.
    pub(super) hints: &'a [u32],
}

impl Turn<'_> {
    /// Whether a variant can be visited.
    pub(super) fn free(&self, variant: u32) -> bool {
        !self.taken.contains(&variant) && self.geometry.serves(variant, self.shapes)
    }

    /// The cost of a variant that does not work.
    pub(super) fn worst(&self) -> f64 {
        self.visits.iter().filter_map(|s| s.cost).fold(f64::NEG_INFINITY, f64::max).max(-1e9) + NOT_WORKING
    }

    /// The first variant in the seeded order for which `wanted` holds.
    pub(super) fn by_chance(&self, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        self.order.iter().copied().find(|v| wanted(*v))
    }

    /// The next variants, `count` of them or as many as are left.
    pub(super) fn propose(&self, strategy: Strategy, count: usize) -> Vec<Proposal> {
        let plain = |variant| Proposal { variant, chain: 0 };
        let mut hinted: Vec<Proposal> = vec![];
        for variant in self.hints.iter().copied().filter(|v| self.free(*v)) {
            if hinted.len() < count && !hinted.contains(&plain(variant)) {
                hinted.push(plain(variant));
            }
        }
        if !hinted.is_empty() {
            return hinted;
        }
        match strategy {
            Strategy::Annealing => annealing::propose(self, count),
            Strategy::Model => model::propose(self, count).into_iter().map(plain).collect(),
            Strategy::Random | Strategy::Exhaustive => {
                self.order.iter().copied().filter(|v| self.free(*v)).take(count).map(plain).collect()
            }
        }
    }
}

/// The numbers below `count` in the order that a seed gives them.
pub(super) fn shuffled(seed: u64, count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    Draws::new(seed, 0).shuffle(&mut order);
    order
}

/// A seeded sample of `count` of `all` variants, in declaration order: it represents a space where nothing can be timed. The random strategy visits the same
/// variants. For each set of `needed` variants that the sample misses, the set's first variant in the seeded order is added.
pub fn sample(seed: u64, all: usize, count: usize, needed: &[Vec<u32>]) -> Vec<u32> {
    let order = shuffled(seed, all);
    let mut taken: Vec<u32> = order.iter().copied().take(count).collect();
    for set in needed {
        if !set.iter().any(|v| taken.contains(v)) {
            taken.extend(order.iter().copied().find(|v| set.contains(v)));
        }
    }
    taken.sort_unstable();
    taken
}
