//! Which steps a failure kept from being tried. Knows how a build ended; why a step failed is reported elsewhere.

use kforge_engine::{BuildOutcome, Done, Node, NodeId};
use kforge_types::record::Outcome;

/// Steps that were not tried because something failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untried {
    /// How many.
    pub count: u64,
    /// The step at which the build ended, where one ended it; else they needed something that failed.
    pub stopped_by: Option<NodeId>,
    /// Whether a build that keeps going would try some of them.
    pub more: bool,
}

/// How many steps were not tried; none where there are no such steps, or where the build was interrupted and might have tried them. What was skipped because this
/// machine cannot run what it needs does not count.
pub(super) fn untried(outcome: &BuildOutcome) -> Option<Untried> {
    if outcome.interrupted {
        return None;
    }
    let failed = |id: &str| outcome.step(id).is_some_and(|done| matches!(done.outcome, Outcome::Failed(_)));
    let stopped = |done: &Done| done.stopped && !done.interrupted;
    let without = |done: &Done| !done.stopped && matches!(&done.outcome, Outcome::Skipped(root) if failed(root));
    let count = outcome.steps.iter().filter(|done| stopped(done) || without(done)).count() as u64;
    let could = |node: &Node| node.unavailable.is_none();
    let more = || outcome.graph.nodes().zip(&outcome.steps).any(|(node, done)| stopped(done) && could(node));
    (count > 0).then(|| Untried { count, stopped_by: outcome.stopped_by.clone(), more: more() })
}
