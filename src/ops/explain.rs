//! Why a step ran, or would run now; or what a method of the registry is.

use std::collections::BTreeSet;

use crate::{Error, Session};
use kforge_engine::Explanation;
use kforge_foundation::base::diag::closest;
use kforge_pipeline::optimize::methods::{self, Entry};
use kforge_pipeline::plan::Goal;
use kforge_project::workspace::select::SelectionArgs;

/// What was asked about.
#[derive(Debug)]
pub enum Explained {
    /// A method of the registry.
    Method(&'static Entry),
    /// A step of the plan.
    Step(Box<Explanation>),
}

/// Why no step is meant.
#[derive(Debug, thiserror::Error)]
pub enum NoStep {
    /// There is no such step.
    #[error("no step of the plan has `{text}` in its id")]
    Unknown {
        /// What was asked.
        text: String,
        /// A step, a part of one or a method that is called nearly so.
        closest: Option<String>,
    },
    /// Several steps have it as a part.
    #[error("{} steps have `{text}` in their ids: expected the id of one step, or a part that only one id has", ids.len())]
    Several {
        /// What was asked.
        text: String,
        /// They, in order.
        ids: Vec<String>,
    },
}

/// Explains a step, by its id or a part that it alone has, or a method of the registry.
///
/// # Errors
/// [`NoStep`], or the plan cannot be made.
pub fn explain(session: &Session, what: &str) -> Result<Explained, Error> {
    // A step's id has slashes, a method's has none: what is a method in the registry can only be part of several steps' ids.
    if let Some(method) = methods::registry().get(what) {
        return Ok(Explained::Method(method));
    }
    let everything = SelectionArgs { workspace: true, ..SelectionArgs::default() };
    session.look(&everything, Goal::Build)?.plan(session, |opened, ready| {
        ready.with_services(session, opened, |services| {
            let graph = kforge_engine::expanded(ready.graph.clone(), &ready.options, services);
            let id = find(what, graph.nodes().map(|n| n.id.as_str()))?;
            let found = kforge_engine::explain(graph, &ready.options, services, &id);
            found.map(|explanation| Explained::Step(Box::new(explanation))).ok_or(Error::Unexplained(id))
        })
    })
}

/// The id that `text` is, or that alone has it as a part.
pub fn find<'i>(text: &str, ids: impl Iterator<Item = &'i str>) -> Result<String, NoStep> {
    let ids: BTreeSet<&str> = ids.collect();
    if ids.contains(text) {
        return Ok(text.to_string());
    }
    let having: Vec<&str> = ids.iter().copied().filter(|id| id.contains(text)).collect();
    match having.as_slice() {
        [id] => Ok((*id).to_string()),
        [] => {
            // An id, or the part of one that has as many segments.
            let parts = text.split('/').count();
            let ends =
                ids.iter().map(|id| id.rsplitn(parts + 1, '/').take(parts).map(str::len).sum::<usize>() + parts - 1);
            let tails: Vec<&str> = ids.iter().zip(ends).map(|(id, n)| &id[id.len().saturating_sub(n)..]).collect();
            let known = methods::registry().entries().iter().map(|e| e.id.as_str());
            let best = closest(text, tails.into_iter().chain(ids.iter().copied()).chain(known));
            Err(NoStep::Unknown { text: text.into(), closest: best.map(str::to_string) })
        }
        several => {
            Err(NoStep::Several { text: text.into(), ids: several.iter().map(|id| (*id).to_string()).collect() })
        }
    }
}
