//! Shows the plan, with the steps that known results add to it. Runs nothing.

use crate::{Error, Session};
use kforge_engine::{Graph, Lack};
use kforge_pipeline::plan::Goal;
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::record::StepKind;

/// The request for a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeRequest {
    /// What to plan.
    pub words: SelectionArgs,
    /// A kind of step that the plan must contain.
    pub kind: Option<StepKind>,
}

/// A plan.
#[derive(Debug)]
pub struct Tree {
    /// Its steps.
    pub graph: Graph,
    /// What each step lacks, in the order of the graph.
    pub lacks: Vec<Option<Lack>>,
}

/// The plan has no step of the requested kind.
#[derive(Debug, thiserror::Error)]
#[error("the selection has no {0} step")]
pub struct NoSuchKind(pub StepKind);

/// Plans, and looks up known results.
///
/// # Errors
/// [`NoSuchKind`], or the plan cannot be made.
pub fn tree(session: &Session, request: &TreeRequest) -> Result<Tree, Error> {
    session.look(&request.words, Goal::Build)?.plan(session, |opened, ready| {
        let (graph, lacks) = ready.with_services(session, opened, |services| {
            kforge_engine::lacking(ready.graph.clone(), &ready.options, services)
        });
        match request.kind {
            Some(kind) if graph.nodes().all(|node| node.kind != kind) => Err(NoSuchKind(kind).into()),
            _ => Ok(Tree { graph, lacks }),
        }
    })
}
