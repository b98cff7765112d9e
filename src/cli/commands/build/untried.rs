//! Which steps a failure kept from being tried, in a line. Knows how a build ended; why a step failed is told elsewhere.

use kforge_engine::{BuildOutcome, Done};
use kforge_types::record::Outcome;

/// How many steps were not tried because something failed, and whether `--keep-going` would try some of them; none where there are no such steps, or where the
/// build was interrupted and might have tried them. What was skipped because this machine cannot run what it needs is not told of.
pub(super) fn untried(outcome: &BuildOutcome) -> Option<String> {
    if outcome.interrupted {
        return None;
    }
    let failed = |id: &str| outcome.step(id).is_some_and(|done| matches!(done.outcome, Outcome::Failed(_)));
    let stopped = |done: &Done| done.stopped && !done.interrupted;
    let without = |done: &Done| !done.stopped && matches!(&done.outcome, Outcome::Skipped(root) if failed(root));
    let count = outcome.steps.iter().filter(|done| stopped(done) || without(done)).count() as u64;
    if count == 0 {
        return None;
    }
    let (steps, verb) = (super::super::count(count, "step"), if count == 1 { "was" } else { "were" });
    let could = |node: &kforge_engine::Node| node.unavailable.is_none();
    let more = outcome.graph.nodes().zip(&outcome.steps).any(|(node, done)| stopped(done) && could(node));
    let after = outcome.stopped_by.as_ref().map_or_else(
        || "because something that they need failed".to_string(),
        |id| format!("because the build ended at `{id}`"),
    );
    let hint = if more { "; `--keep-going` goes on with what does not need it" } else { "" };
    Some(format!("{steps} {verb} not tried, {after}{hint}"))
}
