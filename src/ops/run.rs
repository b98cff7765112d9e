//! Runs one variant of a kernel on one shape on `cpu`, or any single step with the steps that it needs.

mod choose;
mod result;

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

pub use self::result::{Judged, Output, RunResult, StepEnd};
use crate::build::steps::execute;
use crate::event::Purpose;
use crate::explain::NoStep;
use crate::session::Opened;
use crate::session::build::{Packages, PlanRequest, Ready};
use crate::session::evidence_policy::EvidencePolicy;
use crate::{Error, Session, explain};
use kforge_engine::{Graph, Node, Source};
use kforge_pipeline::plan::Goal;
use kforge_project::workspace::select::{Selected, SelectionArgs};
use kforge_types::model::Arch;
use kforge_types::record::StepKind;

/// The request for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// What to run.
    pub what: What,
    /// The package of the kernel or step; if none is named, every package is searched.
    pub package: Option<String>,
    /// A manifest whose operators and shapes are added to the packages.
    pub overlay: Option<PathBuf>,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A step, by its id or by a part that only its id contains.
    Step(String),
    /// One variant of a kernel.
    Kernel {
        /// The kernel.
        name: String,
        /// The shape; the only one if none is named.
        shape: Option<String>,
        /// The variant, with its tunables in any order; the first in declared order if none is named.
        variant: Option<String>,
    },
}

/// Why nothing was run, or why the run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The kernel does not exist.
    #[error("there is no kernel `{0}`")]
    NoKernel(String),
    /// Several packages have the kernel.
    #[error("several packages have a kernel `{kernel}`")]
    SeveralPackages {
        /// The kernel.
        kernel: String,
        /// The packages.
        packages: Vec<String>,
    },
    /// The package has no `cpu` target to run on.
    #[error("package `{0}` has no `cpu` target, and this version runs kernels only there")]
    NoCpu(String),
    /// The kernel has no such shape.
    #[error("`{kernel}` has no shape `{shape}`")]
    NoShape {
        /// The kernel.
        kernel: String,
        /// The shape.
        shape: String,
        /// The shapes that it has.
        known: Vec<String>,
    },
    /// The kernel has several shapes, or none, and none was named.
    #[error("`{kernel}` has {} shapes: select one", known.len())]
    ShapeNeeded {
        /// The kernel.
        kernel: String,
        /// The shapes that it has.
        known: Vec<String>,
    },
    /// No variant of that name serves the shape.
    #[error("no variant `{variant}` of `{kernel}` serves shape `{shape}`")]
    NoVariant {
        /// The kernel.
        kernel: String,
        /// The variant.
        variant: String,
        /// The shape.
        shape: String,
        /// The variants that serve it.
        known: Vec<String>,
    },
    /// No variant serves the shape.
    #[error("kernel `{kernel}` has no variant for shape `{shape}` on `cpu`")]
    NotServed {
        /// The kernel.
        kernel: String,
        /// The shape.
        shape: String,
    },
    /// A step that the requested one needs failed, which was reported.
    #[error("a step failed")]
    Failed,
    /// There is no verdict.
    #[error("`{step}` gave no result: {why}")]
    Nothing {
        /// The step.
        step: String,
        /// The reason, for people.
        why: String,
    },
    /// The step has no result: a bug.
    #[error("BUG: `{0}` was planned and did not end")]
    Lost(String),
}

/// Builds the requested step and the steps that it needs, and nothing else.
///
/// # Errors
/// [`RunError`]; no step or several match; the build could not be started; or it was interrupted.
pub fn run(session: &Session, request: &RunRequest) -> Result<RunResult, Error> {
    match &request.what {
        What::Step(text) => step(session, request, text),
        What::Kernel { name, shape, variant } => kernel(session, request, name, (shape.as_deref(), variant.as_deref())),
    }
}

/// One variant of a kernel on one shape.
fn kernel(
    session: &Session,
    request: &RunRequest,
    name: &str,
    (shape, variant): (Option<&str>, Option<&str>),
) -> Result<RunResult, Error> {
    let opened = session.open()?;
    let words = SelectionArgs {
        packages: request.package.iter().cloned().collect(),
        // All packages are searched unless one is named.
        workspace: request.package.is_none(),
        kernels: vec![name.into()],
        ..SelectionArgs::default()
    };
    let mut selected = session.select(&opened.workspace, &words)?;
    selected.members.retain(|i| opened.workspace.members[*i].package.kernel(name).is_some());
    let packages = selected.members.iter().map(|i| &opened.workspace.members[*i].package).collect::<Vec<_>>();
    selected.targets = vec![choose::cpu(name, &packages)?];
    let asked = asked(selected, request, Goal::Verify);
    let packages = session.packages(&opened, &asked)?;
    let shape = choose::shape(name, shape, &packages)?;
    let asked = PlanRequest { selected: Selected { shapes: vec![shape.clone()], ..asked.selected }, ..asked };
    build(session, opened, &packages, &asked, |_, ready| {
        let judge = choose::variant(name, variant, &shape, &ready.graph)?;
        Ok((ready.graph.clone(), judge))
    })
}

/// One step of any kind and target, with the steps that it needs.
fn step(session: &Session, request: &RunRequest, text: &str) -> Result<RunResult, Error> {
    let opened = session.open()?;
    let first = text.split('/').next().unwrap_or_default();
    let named = opened.workspace.members.iter().any(|m| m.package.name == first);
    let words = SelectionArgs {
        packages: request.package.clone().or(named.then(|| first.to_string())).into_iter().collect(),
        workspace: !named && request.package.is_none(),
        ..SelectionArgs::default()
    };
    // Which steps there are depends on the selection, so the last build's comes first.
    let open = request.package.is_none() && request.overlay.is_none();
    let last = if open { explain::in_last_build(session, text) } else { None };
    let mut asked = match last {
        Some(last) => PlanRequest {
            overlay: last.overlay(),
            ..asked(
                session.select_over(&opened.workspace, &last.words(), last.overlay().as_deref())?,
                request,
                last.goal(),
            )
        },
        None => asked(session.select(&opened.workspace, &words)?, request, Goal::Build),
    };
    let packages = session.packages(&opened, &asked)?;
    if let Some(targets) = cpu_targets(session, &packages, &asked, text) {
        asked.selected.targets = targets;
    }
    build(session, opened, &packages, &asked, |opened, ready| {
        let (graph, past) = ready.with_services(session, opened, |services| {
            let graph = kforge_engine::expanded(ready.graph.clone(), &ready.options, services);
            (graph, explain::recalled(ready, services.memory, text))
        });
        let id = match (explain::find(text, graph.nodes().map(|n| n.id.as_str())), past) {
            (Err(NoStep::Unknown { .. }), Some(past)) => return Err(NoStep::Gone(past.id).into()),
            (found, _) => found?,
        };
        let node = graph.find(&id).map(|i| graph.node(i).clone()).ok_or(RunError::Lost(id))?;
        // A verification is shown together with its judgement.
        let judge = graph.nodes().find(|judge| node.kind == StepKind::Verify && judges(judge, &node)).cloned();
        Ok((graph, judge.unwrap_or(node)))
    })
}

/// The targets of a step and of the steps that it needs, if all of them are `cpu`: nothing needs to be resolved for the others. None if a device target is among
/// them, or if a plan that resolves nothing does not have the step.
fn cpu_targets(session: &Session, packages: &Packages, asked: &PlanRequest, text: &str) -> Option<Vec<String>> {
    let is_cpu = |node: &Node, target: &str| {
        let mut owners = packages.all().filter(|p| p.name == node.labels.package);
        owners.any(|p| p.targets.get(target).is_some_and(|t| t.arch == Arch::Cpu))
    };
    if packages.all().flat_map(|p| p.targets.values()).all(|t| t.arch == Arch::Cpu) {
        return None;
    }
    let opened = session.open().ok()?;
    let looking = session.look_at(opened, asked.selected.clone(), asked.goal, asked.overlay.clone()).ok()?;
    let planned = looking.plan(session, |opened, ready| {
        ready.with_services(session, opened, |services| {
            Ok::<_, Error>(kforge_engine::expanded(ready.graph.clone(), &ready.options, services))
        })
    });
    let graph = planned.ok()?;
    let id = explain::find(text, graph.nodes().map(|n| n.id.as_str())).ok()?;
    let needed = alone(&graph, &id).ok()?;
    let mut targets = BTreeSet::new();
    for (node, target) in needed.nodes().filter_map(|n| Some((n, n.labels.target.as_ref()?))) {
        if !is_cpu(node, target) {
            return None;
        }
        targets.insert(target.clone());
    }
    (!targets.is_empty()).then(|| targets.into_iter().collect())
}

/// Whether a step judges the observation of a verification.
fn judges(judge: &Node, verify: &Node) -> bool {
    judge.kind == StepKind::Judge && verification(judge) == Some(&verify.id)
}

/// The verification that a judge step judges.
fn verification(judge: &Node) -> Option<&String> {
    match &judge.inputs.get("observation")?.source {
        Source::Output { node, .. } => Some(node),
        Source::Blob(_) => None,
    }
}

fn asked(selected: Selected, request: &RunRequest, goal: Goal) -> PlanRequest {
    let overlay = request.overlay.clone();
    PlanRequest {
        selected,
        goal,
        jobs: None,
        keep_going: true,
        remeasure: false,
        evidence: EvidencePolicy::default(),
        overlay,
        write: true,
        looks: false,
    }
}

/// Builds the step that `choose` selects and the steps that it needs, and nothing else.
fn build(
    session: &Session,
    mut opened: Opened,
    packages: &Packages,
    asked: &PlanRequest,
    choose: impl FnOnce(&Opened, &Ready<'_>) -> Result<(Graph, Node), Error>,
) -> Result<RunResult, Error> {
    let mut ready = session.ready(&mut opened, packages, asked)?;
    let (graph, wanted) = choose(&opened, &ready)?;
    ready.graph = alone(&graph, &wanted.id)?;
    let outcome = execute(session, &opened, &mut ready, packages, Purpose::Step, None);
    ready.journal.flush()?;
    if outcome.interrupted {
        return Err(Error::Interrupted);
    }
    Ok(match wanted.kind {
        StepKind::Judge | StepKind::Verify => RunResult::Judged(Box::new(result::judged(&ready, &outcome, &wanted)?)),
        _ => RunResult::Step(Box::new(result::ended(&ready, &outcome, &wanted)?)),
    })
}

/// The graph of one node and the nodes that it needs.
fn alone(graph: &Graph, id: &str) -> Result<Graph, Error> {
    let mut open: Vec<u32> = graph.find(id).into_iter().collect();
    let mut needed: HashSet<u32> = HashSet::new();
    while let Some(at) = open.pop() {
        if needed.insert(at) {
            // No verification reads the result of another; it only waits for others that are more informative.
            let verifies = graph.node(at).kind == StepKind::Verify;
            open.extend(graph.dependencies(at).filter(|d| !(verifies && graph.node(*d).kind == StepKind::Verify)));
        }
    }
    let is_needed = |id: &String| graph.find(id).is_some_and(|i| needed.contains(&i));
    // The steps that its result would add are not requested.
    let bare = |n: &Node| {
        let after = n.after.iter().filter(|id| is_needed(id)).cloned().collect();
        Node { expands: false, after, ..n.clone() }
    };
    let nodes = (0u32..).zip(graph.nodes()).filter(|(i, _)| needed.contains(i)).map(|(_, n)| bare(n)).collect();
    Ok(Graph::new(nodes)?)
}
