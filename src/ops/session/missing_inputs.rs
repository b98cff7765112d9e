//! What to do when a step found that something it reads is gone or corrupt. Knows results and the store; the engine has failed the step already, and the build
//! is to be started again.

use super::build::Ready;
use kforge_engine::{Blobs, BuildOutcome, Source};
use kforge_types::record::Outcome;

impl Ready<'_> {
    /// Once a step has failed for want of a content that it reads, reads every content that the build's results lead to: the store removes what is corrupt, so
    /// that one more build makes all of it anew, rather than one for each link of a chain. Caches look at sizes only, or every fresh build would hash everything.
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
                // What cannot be read now is not believed then either.
                let _ = self.leaves.get(digest);
            }
        }
    }
}
