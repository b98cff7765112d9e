//! Handles steps that found an input missing or corrupt. Knows results and the store. The engine has already failed the step, and the build must be started
//! again.

use super::build::Ready;
use kforge_engine::{Blobs, BuildOutcome, Source};
use kforge_types::record::Outcome;

impl Ready<'_> {
    /// After a step has failed because content that it reads is missing, reads all content that the build's results refer to. The store removes corrupt
    /// content, so that one more build recreates all of it, rather than one build for each link of a chain. Caches check only sizes, because otherwise every
    /// fresh build would hash everything.
    pub fn sweep_lost(&self, outcome: &BuildOutcome) {
        let result = |id: &str| outcome.step(id).and_then(|done| done.result.as_ref());
        let gone = |source: &Source| match source {
            Source::Output { node, name, .. } => {
                result(node).and_then(|r| r.outputs.get(name)).is_some_and(|digest| !self.leaves.has(digest))
            }
            Source::Blob(_) => false,
        };
        let mut failed =
            outcome.graph.nodes().zip(&outcome.steps).filter(|(_, d)| matches!(d.outcome, Outcome::Failed(_)));
        if failed.any(|(node, _)| node.inputs.values().any(|input| gone(&input.source))) {
            let results = outcome.steps.iter().filter_map(|done| done.result.as_ref());
            for digest in results.flat_map(|result| result.outputs.values()) {
                // Content that cannot be read now is not used later either.
                let _ = self.leaves.get(digest);
            }
        }
    }
}
