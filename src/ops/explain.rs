//! Explains why a step ran or would run now, or describes a method of the registry.

use std::collections::BTreeSet;

use crate::{Error, Session};
use kforge_engine::Explanation;
use kforge_foundation::base::diag::closest;
use kforge_pipeline::optimize::methods::{self, Entry};
use kforge_pipeline::plan::Goal;
use kforge_project::workspace::select::SelectionArgs;

/// The subject of an explanation.
#[derive(Debug)]
pub enum Explained {
    /// A method of the registry.
    Method(&'static Entry),
    /// A step of the plan.
    Step(Box<Explanation>),
}

/// Why a text does not identify a step.
#[derive(Debug, thiserror::Error)]
pub enum NoStep {
    /// No such step exists.
    #[error("no step of the plan has `{text}` in its id")]
    Unknown {
        /// The text that was given.
        text: String,
        /// The most similar step, part of a step, or method.
        closest: Option<String>,
    },
    /// Several steps contain the text.
    #[error("{} steps have `{text}` in their ids: expected the id of one step, or a part that only one id has", ids.len())]
    Several {
        /// The text that was given.
        text: String,
        /// The steps, in order.
        ids: Vec<String>,
    },
}

/// Explains a step, by its id or by a part that only its id contains, or a method of the registry.
///
/// # Errors
/// [`NoStep`], or the plan cannot be made.
pub fn explain(session: &Session, what: &str) -> Result<Explained, Error> {
    // The id of a step contains slashes and that of a method does not. So a method's id can only be part of step ids, usually of several.
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

/// The id that equals `text`, or the only id that contains it.
pub fn find<'i>(text: &str, ids: impl Iterator<Item = &'i str>) -> Result<String, NoStep> {
    let ids: BTreeSet<&str> = ids.collect();
    if ids.contains(text) {
        return Ok(text.to_string());
    }
    let having: Vec<&str> = ids.iter().copied().filter(|id| id.contains(text)).collect();
    match having.as_slice() {
        [id] => Ok((*id).to_string()),
        [] => {
            // Compare with whole ids, and with the end of each id that has as many segments as `text`.
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
