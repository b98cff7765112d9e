//! Explains why a step ran or would run now, why a selection chose its champions, what a kernel's champions are, or what a method is and who uses it.
//!
//! A plan depends on the selection and on results, so a step is looked for in several plans: in that of the selection, if one is given, otherwise in that of the
//! last build, then in that of everything, and at last among the steps that the workspace remembers.

mod choice;
mod kernel;
mod method;

use std::collections::BTreeSet;

use crate::build::report::last_of_all_shapes;
use crate::session::build::{Packages, Ready};
use crate::session::plan::Looking;
use crate::session::request::LastRequest;
use crate::{Error, Session};
use kforge_engine::{Explanation, Memory, Node, ReadyResult};
use kforge_foundation::base::diag::closest;
use kforge_pipeline::optimize::methods::{self, Entry};
use kforge_pipeline::plan::Goal;
use kforge_pipeline::report::arguments::Arguments;
use kforge_pipeline::report::choice::{Choice, Chosen};
use kforge_pipeline::report::explanation::ArgumentsOf;
use kforge_pipeline::report::kernel::{KernelDocument, LastSelection};
use kforge_pipeline::report::method::MethodUse;
use kforge_pipeline::report::not_built::NotBuiltReport;
use kforge_project::workspace::select::SelectionArgs;

/// The request for an explanation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplainRequest {
    /// The id of a step, a part that only its id contains, a kernel, or a method.
    pub what: String,
    /// The selection whose plan is looked at; if it is empty, that of the last build, then everything.
    pub words: SelectionArgs,
}

/// The subject of an explanation.
#[derive(Debug)]
pub enum Explained {
    /// A method, of the registry or of kernels of the workspace.
    Method {
        /// Its id.
        id: String,
        /// Its entry in the registry; none if only kernels define it.
        entry: Option<&'static Entry>,
        /// How champions of the workspace use it.
        uses: Vec<MethodUse>,
    },
    /// A step of the plan, the choices that it made if it is a selection, and the names of arguments for the steps of its explanation.
    Step(Box<Explanation>, Vec<Choice>, ArgumentsOf),
    /// A kernel, once for each package that has one of that name.
    Kernel(Vec<KernelDocument>),
}

/// Why a text does not identify a step.
#[derive(Debug, thiserror::Error)]
pub enum NoStep {
    /// No step, kernel or method of that name exists.
    #[error("no step of the plan has `{text}` in its id, and no kernel or method has this name")]
    Unknown {
        /// The text that was given.
        text: String,
        /// The most similar step, part of a step, or method.
        closest: Option<String>,
    },
    /// An earlier build had the step, but no plan has it now.
    #[error(
        "`{0}` is no step of the plan now: an earlier build had it, and results that it depends on have changed since, or the manifest has"
    )]
    Gone(String),
    /// Several steps contain the text.
    #[error("{} steps have `{text}` in their ids: expected the id of one step, or a part that only one id has", ids.len())]
    Several {
        /// The text that was given.
        text: String,
        /// The steps, in order.
        ids: Vec<String>,
    },
}

/// Explains a step, by its id or by a part that only its id contains, a kernel, or a method.
///
/// # Errors
/// [`NoStep`], or the plan cannot be made.
pub fn explain(session: &Session, request: &ExplainRequest) -> Result<Explained, Error> {
    let what = request.what.as_str();
    // The id of a step contains slashes, those of methods and names of kernels do not. So such a name can only be part of step ids, usually of several.
    if let Some(entry) = methods::registry().get(what) {
        // The registry is there without a workspace, and with one that cannot be planned.
        let uses = if session.has_manifest() { first(session, request, |p| p.uses(what)).ok().flatten() } else { None };
        return Ok(Explained::Method { id: what.into(), entry: Some(entry), uses: uses.unwrap_or_default() });
    }
    if !what.contains('/') {
        let named = |plan: &Known<'_, '_>| match (plan.kernels(what), plan.uses(what)) {
            (Some(kernels), _) => Some(Explained::Kernel(kernels)),
            (None, Some(uses)) => Some(Explained::Method { id: what.into(), entry: None, uses }),
            (None, None) => None,
        };
        if let Some(mut found) = first(session, request, named)? {
            // Whoever names a selection asks about its plan only.
            if let (Explained::Kernel(kernels), true) = (&mut found, request.words == SelectionArgs::default()) {
                add_last_build(session, kernels);
            }
            return Ok(found);
        }
    }
    step(session, request)
}

/// Adds what the last build selected, and what failed in it, where nothing is selected now.
fn add_last_build(session: &Session, kernels: &mut [KernelDocument]) {
    let is_empty = |kernel: &KernelDocument| kernel.seats.iter().any(|seat| seat.choices.is_empty());
    let open = |kernel: &KernelDocument| !kernel.open.is_empty() || is_empty(kernel);
    if !kernels.iter().any(open) {
        return;
    }
    let Some(report) = last_of_all_shapes(session) else { return };
    for kernel in kernels {
        let is_known = |target: &str, types: &str| {
            kernel.seats.iter().any(|seat| (seat.target.as_str(), seat.types.as_str()) == (target, types))
        };
        kernel.last_build = LastSelection::of(&report, &kernel.package, &kernel.kernel, is_known);
        for seat in kernel.seats.iter_mut().filter(|seat| seat.choices.is_empty()) {
            seat.last_build = Chosen::of(&report, &kernel.package, &kernel.kernel, (&seat.target, &seat.types));
            for last in report.at(&kernel.package, &kernel.kernel, &seat.target, &seat.types) {
                seat.last_failures.extend(last.failures());
                let prevented = last.shapes.iter().find_map(|shape| shape.prevented_by.clone());
                let failed = prevented.map(|step| NotBuiltReport { step, stopped: false, last: None });
                seat.not_built = last.not_built.clone().or(failed);
            }
        }
    }
}

/// A plan with its known results.
struct Known<'a, 'p> {
    packages: &'a Packages,
    ready: &'a Ready<'p>,
    known: ReadyResult,
}

impl Known<'_, '_> {
    fn kernels(&self, name: &str) -> Option<Vec<KernelDocument>> {
        let found = kernel::kernels(self.packages, self.ready, &self.known, name);
        (!found.is_empty()).then_some(found)
    }

    fn uses(&self, id: &str) -> Option<Vec<MethodUse>> {
        let found = method::uses(self.packages, self.ready, &self.known, id);
        (!found.is_empty()).then_some(found)
    }
}

/// The first answer that a plan gives.
fn first<T>(
    session: &Session,
    request: &ExplainRequest,
    answer: impl Fn(&Known<'_, '_>) -> Option<T>,
) -> Result<Option<T>, Error> {
    for looking in plans(session, &request.words)? {
        let found = looking.plan_of(session, |opened, packages, ready| {
            let known = ready.with_services(session, opened, |services| {
                kforge_engine::known(ready.graph.clone(), &ready.options, services)
            });
            Ok::<_, Error>(answer(&Known { packages, ready, known }))
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The plans in which something is looked for, in order.
fn plans(session: &Session, words: &SelectionArgs) -> Result<Vec<Looking>, Error> {
    if *words != SelectionArgs::default() {
        return Ok(vec![session.look(words, Goal::Build)?]);
    }
    let everything = SelectionArgs { workspace: true, ..SelectionArgs::default() };
    let everything = session.look(&everything, Goal::Build)?;
    let last = LastRequest::last(&everything.opened.target);
    // What the last build selected may be gone from the manifest.
    let last = last.and_then(|last| session.look_with(&last.words(), last.goal(), last.overlay()).ok());
    Ok(last.into_iter().chain([everything]).collect())
}

/// Explains a step.
fn step(session: &Session, request: &ExplainRequest) -> Result<Explained, Error> {
    let what = request.what.as_str();
    let open = request.words == SelectionArgs::default();
    let mut missing = NoStep::Unknown { text: what.into(), closest: None };
    let mut past = None;
    for looking in plans(session, &request.words)? {
        let found = looking.plan_of(session, |opened, packages, ready| {
            ready.with_services(session, opened, |services| {
                // A result adds its steps only once, so what follows walks the graph that has them.
                let graph = kforge_engine::expanded(ready.graph.clone(), &ready.options, services);
                let id = match find(what, graph.nodes().map(|node| node.id.as_str())) {
                    Ok(id) => id,
                    Err(none @ NoStep::Unknown { .. }) => {
                        // Whoever names a selection asks about its plan only.
                        let past = if open { recalled(ready, services.memory, what) } else { None };
                        return Ok(Err((none, past)));
                    }
                    Err(several) => return Err(several.into()),
                };
                let known = kforge_engine::known(graph.clone(), &ready.options, services);
                let explanation = kforge_engine::explain(graph, &ready.options, services, &id);
                let explanation = explanation.ok_or_else(|| Error::Unexplained(id.clone()))?;
                let choices = choice::choices(ready, &known, &id).unwrap_or_default();
                let arguments = arguments(packages, &known, &explanation);
                Ok::<_, Error>(Ok(Explained::Step(Box::new(explanation), choices, arguments)))
            })
        })?;
        match found {
            Ok(explained) => return Ok(explained),
            Err((none, recalled)) => {
                missing = none;
                // The last plan is that of everything.
                past = recalled;
            }
        }
    }
    match past {
        Some(explanation) => Ok(Explained::Step(Box::new(explanation), vec![], ArgumentsOf::new())),
        None => Err(missing.into()),
    }
}

/// The names of arguments for the steps of kernels in an explanation.
fn arguments(packages: &Packages, known: &ReadyResult, explanation: &Explanation) -> ArgumentsOf {
    let told = |id: &String| explanation.because.iter().any(|because| because.what == *id);
    let nodes = known.steps.iter().map(|(node, _)| node).filter(|node| told(&node.id));
    let of = |node: &Node| Some(Arguments::of_step(packages.kernel(&node.labels)?, &node.params));
    nodes.filter_map(|node| Some((node.id.clone(), of(node)?))).collect()
}

/// The request of the last build, if its plan has the step; none if it has not, or if there was no build.
pub(crate) fn in_last_build(session: &Session, text: &str) -> Option<LastRequest> {
    let opened = session.open().ok()?;
    let last = LastRequest::last(&opened.target)?;
    let looking = session.look_with(&last.words(), last.goal(), last.overlay()).ok()?;
    let found = looking.plan(session, |opened, ready| {
        ready.with_services(session, opened, |services| {
            let graph = kforge_engine::expanded(ready.graph.clone(), &ready.options, services);
            Ok::<_, Error>(find(text, graph.nodes().map(|n| n.id.as_str())).is_ok())
        })
    });
    found.is_ok_and(|found| found).then_some(last)
}

/// What the workspace remembers of a step that the plan does not have.
pub(crate) fn recalled(ready: &Ready<'_>, memory: &dyn Memory, text: &str) -> Option<Explanation> {
    let durations = ready.journal.durations();
    let id = find(text, durations.keys().map(String::as_str)).ok()?;
    kforge_engine::recalled(memory, &id)
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
