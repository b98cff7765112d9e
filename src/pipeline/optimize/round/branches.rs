//! Methods to variants of the space that a kernel declares (docs/design.md, section 9.4): what the agent `rules` answers with. Knows tunables and what turning methods
//! off means; writes no code. Deterministic.
//!
//! A method that a kernel declares is on in a variant that turning it off would change. Wanted are variants with every chosen method on: first the one nearest to
//! the parent, then others that differ from those before in what matters to these methods, their own tunables and those that size blocks, and in nothing else where
//! that can be. Where no variant that was not tried has all of them on, those count that have most, the first chosen before the others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kforge_types::model::kernel::LaunchAction;
use kforge_types::model::{Kernel, Method, TuneValue, Variant};

/// Tunables of a variant.
type Values = BTreeMap<String, TuneValue>;

/// What there is to try.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Branches {
    /// The tunables of each, best first; fewer than were wanted where there are no more.
    pub values: Vec<Values>,
    /// Chosen methods that none of them has on, in the order in which they were chosen.
    pub left_out: Vec<String>,
}

impl Branches {
    /// Of the `chosen` methods those that are tried: a method that no branch has on was not, and stays open.
    pub fn tries(&self, chosen: &[String]) -> Vec<String> {
        chosen.iter().filter(|id| !self.left_out.contains(id)).cloned().collect()
    }
}

/// Up to `wanted` variants of a kernel's `space` with the `chosen` methods on, near to the `parent`'s values; none of `tried`, and not the parent.
pub fn branches(
    kernel: &Kernel,
    space: &[Variant],
    parent: &Values,
    chosen: &[String],
    wanted: usize,
    tried: &BTreeSet<Values>,
) -> Branches {
    let methods: Vec<Option<&Method>> = chosen.iter().map(|id| kernel.methods.iter().find(|m| m.id == *id)).collect();
    let on = |variant: &Variant| -> Vec<bool> {
        methods.iter().map(|m| m.is_some_and(|m| kernel.without(variant, m).is_some())).collect()
    };
    let rated = |have: &Vec<bool>| (have.iter().filter(|h| **h).count(), have.clone());
    let untried = |v: &&Variant| v.values != *parent && !tried.contains(&v.values);
    let having: Vec<(Vec<bool>, &Variant)> = space.iter().filter(untried).map(|v| (on(v), v)).collect();
    let Some(best) = having.iter().map(|(have, _)| have.clone()).max_by_key(rated) else {
        return Branches { values: vec![], left_out: chosen.to_vec() };
    };
    let left_out = chosen.iter().zip(&best).filter(|(_, on)| !**on).map(|(id, _)| id.clone()).collect();
    if !best.contains(&true) && !chosen.is_empty() {
        return Branches { values: vec![], left_out };
    }
    let spread = spread(kernel, &methods);
    let mut open: Vec<&Variant> =
        having.into_iter().filter(|(have, _)| *have == best).map(|(_, variant)| variant).collect();
    let mut values: Vec<Values> = vec![];
    while values.len() < wanted {
        let next = (0..open.len()).min_by_key(|at| rank(&open[*at].values, parent, &spread, &values, open[*at].order));
        let Some(at) = next else { break };
        values.push(open.remove(at).values.clone());
    }
    Branches { values, left_out }
}

/// The less, the sooner: tunables changed that matter to no chosen method; values that a branch before it has too; tunables changed in all; declared order.
fn rank(
    values: &Values,
    parent: &Values,
    spread: &BTreeSet<String>,
    before: &[Values],
    order: u32,
) -> (usize, Reverse<usize>, usize, u32) {
    let changed = |name: &&String| values.get(*name) != parent.get(*name);
    let beside = values.keys().filter(|n| !spread.contains(*n)).filter(changed).count();
    let fresh = |name: &&String| before.iter().all(|b| b.get(*name) != values.get(*name));
    // The first is the one nearest to the parent: with nothing before it everything would be new.
    let new = if before.is_empty() { 0 } else { spread.iter().filter(fresh).count() };
    (beside, Reverse(new), values.keys().filter(changed).count(), order)
}

/// The tunables over which branches are spread: those by which the methods are turned off, and those that size blocks.
fn spread(kernel: &Kernel, methods: &[Option<&Method>]) -> BTreeSet<String> {
    let of_methods = methods.iter().flatten().flat_map(|m| m.tunables());
    let blocks = kernel.launches.iter().flat_map(|launch| match &launch.action {
        LaunchAction::Kernel { block, .. } => block.iter().flat_map(|e| e.names()).collect::<Vec<_>>(),
        LaunchAction::Memset { .. } => vec![],
    });
    let declared = |name: &&str| kernel.tune.iter().any(|(tunable, _)| tunable.value == **name);
    of_methods.chain(blocks).filter(declared).map(str::to_string).collect()
}
