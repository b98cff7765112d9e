//! The steps that were not tried because of a failure. Knows how a build ended; why a step failed is reported elsewhere.

use kforge_engine::{BuildOutcome, Done, Node, NodeId};
use kforge_types::record::Outcome;

/// The steps that were not tried because of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untried {
    /// The number of steps.
    pub count: u64,
    /// The step whose failure ended the build, if one did; else the untried steps depend on a failed step.
    pub stopped_by: Option<NodeId>,
    /// Whether `--keep-going` would try some of them.
    pub more: bool,
}

/// Counts the steps that were not tried. None if there are no such steps, or if the build was interrupted, because it might have tried them. A step that was
/// skipped because this machine lacks something it needs does not count.
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
