//! From methods to variants of the space that a kernel declares (docs/design.md, section 9.4): the answer of the agent `rules`. Knows tunables and what turning
//! methods off means; writes no code. Deterministic.
//!
//! A declared method is on in a variant if turning it off would change the variant. Variants with every chosen method on are preferred: first the one nearest
//! to the parent, then variants that differ from the earlier ones in the tunables of these methods and the tunables that size blocks, and, if possible, in no
//! others. If no untried variant has all of them on, the variants with most of them on are taken; methods chosen first count more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kforge_types::model::kernel::LaunchAction;
use kforge_types::model::{Kernel, Method, TuneValue, Variant};

/// Tunables of a variant.
type Values = BTreeMap<String, TuneValue>;

/// The variants to try.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Branches {
    /// The tunables of each, best first. There may be fewer than were requested.
    pub values: Vec<Values>,
    /// Chosen methods that no branch has on, in the order in which they were chosen.
    pub left_out: Vec<String>,
}

impl Branches {
    /// The `chosen` methods that are tried. A method that no branch has on was not tried and stays open.
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

/// The sort key; the smallest comes first: changed tunables that matter to no chosen method; values that an earlier branch also has; all changed tunables;
/// declared order.
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
    // The first branch is the one nearest to the parent: compared with no branch, every value would be new.
    let new = if before.is_empty() { 0 } else { spread.iter().filter(fresh).count() };
    (beside, Reverse(new), values.keys().filter(changed).count(), order)
}

/// The tunables in which branches differ: those that turn the methods off, and those that size blocks.
fn spread(kernel: &Kernel, methods: &[Option<&Method>]) -> BTreeSet<String> {
    let of_methods = methods.iter().flatten().flat_map(|m| m.tunables());
    let blocks = kernel.launches.iter().flat_map(|launch| match &launch.action {
        LaunchAction::Kernel { block, .. } => block.iter().flat_map(|e| e.names()).collect::<Vec<_>>(),
        LaunchAction::Memset { .. } => vec![],
    });
    let declared = |name: &&str| kernel.tune.iter().any(|(tunable, _)| tunable.value == **name);
    of_methods.chain(blocks).filter(declared).map(str::to_string).collect()
}
