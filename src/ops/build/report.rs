//! The report of a build: assembled from its results, stored in the output folder, and read back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::SystemTime;

use rayon::prelude::*;

use crate::Error;
use crate::event::Warning;
use crate::session::build::Ready;
use crate::session::build::names::pairs_read;
use crate::session::certificate::CUT_SHORT;
use crate::session::git::in_repository;
use crate::session::places::Places;
use crate::session::request::LastRequest;
use crate::session::{Opened, Session};
use kforge_engine::{Blobs, BuildOutcome, InputRef, Source};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::report::assemble::types_of;
use kforge_pipeline::report::not_built::NotBuiltReport;
use kforge_pipeline::report::provenance::BuiltReport;
use kforge_pipeline::report::savings::MethodPairs;
use kforge_pipeline::report::versus::PairsRead;
use kforge_pipeline::report::{self, Names, Report, StepView};
use kforge_project::workspace::Workspace;
use kforge_project::workspace::find::MANIFEST;
use kforge_project::workspace::lockfile::LockedWheel;
use kforge_types::model::Package;
use kforge_types::record::{FORMAT_VERSION, Outcome, SourcePlace, StepKind};

/// Why there is no report to show.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Nothing has been built yet.
    #[error("there is no report: nothing was built here yet (`{}`)", .0.display())]
    NotBuilt(std::path::PathBuf),
    /// The file is not a report.
    #[error("`{}` is not a report: {source}", path.display())]
    Malformed {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A later kforge wrote the file.
    #[error(
        "`{}` has format {version}, written by a later kforge: expected at most {FORMAT_VERSION}",
        path.display()
    )]
    Newer {
        /// The file.
        path: std::path::PathBuf,
        /// The file's format version.
        version: u32,
    },
}

/// A step that ended, in the form that reports use.
pub fn view<'s>(node: &'s kforge_engine::Node, done: &'s kforge_engine::Done) -> StepView<'s> {
    StepView {
        id: &node.id,
        kind: node.kind,
        labels: &node.labels,
        outcome: &done.outcome,
        result: done.result.as_ref(),
        notes: done.result.as_ref().map_or(&done.notes, |result| &result.notes),
        evidence: done.evidence.as_ref(),
    }
}

/// The report of a build.
pub fn assemble(ready: &Ready<'_>, outcome: &BuildOutcome) -> Report {
    let views: Vec<StepView<'_>> =
        outcome.graph.nodes().zip(&outcome.steps).map(|(node, done)| view(node, done)).collect();
    // Every judgement is read, and there may be tens of thousands, so they are read in parallel.
    let judged = |view: &&StepView<'_>| {
        matches!(view.kind, StepKind::Judge | StepKind::Search | StepKind::Select | StepKind::Bench)
    };
    let wanted: Vec<Digest> =
        views.iter().filter(judged).filter_map(|v| v.result).flat_map(|r| r.outputs.values().copied()).collect();
    let leaves = &ready.leaves;
    let ahead: HashMap<Digest, Option<Vec<u8>>> =
        wanted.into_par_iter().map(|digest| (digest, leaves.get(&digest).ok().flatten())).collect();
    let read = |digest: &Digest| match ahead.get(digest) {
        Some(bytes) => bytes.clone(),
        None => leaves.get(digest).ok().flatten(),
    };
    let places = Places::new(&outcome.graph, &ready.journal, &*ready.leaves);
    let reader = report::assemble::Reader {
        read: &read,
        places: &|id, text| places.text(id, text),
        place: &|id, place| places.place(id, place),
        first_place: &|id, text| places.first_place(id, text),
    };
    let pairs = |id: &str| -> Vec<PairsRead> {
        outcome.graph.find(id).map(|at| pairs_read(&outcome.graph.node(at).inputs)).unwrap_or_default()
    };
    let names = |id: &str| ready.names(id).map(|names| Names { pairs: pairs(id), ..names });
    let mut report = report::assemble(&views, &names, &reader);
    let of_method = |id: &str| -> Vec<MethodPairs> {
        let inputs = outcome.graph.find(id).map(|at| &outcome.graph.node(at).inputs);
        let of = |(name, input): (&String, &InputRef)| match &input.source {
            Source::Output { node, .. } => MethodPairs::of(name, node),
            Source::Blob(_) => None,
        };
        inputs.into_iter().flatten().filter_map(of).collect()
    };
    report::savings::add(&mut report, &views, &of_method, &reader);
    report::rounds::add(&mut report, &views, &ready.tried(), &reader);
    report
}

/// The build that a report is of.
pub fn built(session: &Session, opened: &Opened, asked: &LastRequest, outcome: &BuildOutcome) -> BuiltReport {
    let (commit, dirty) = session.git().and_then(|git| git.state(&opened.workspace.root)).unzip();
    // A clock before 1970 or far in the future gives no meaningful time.
    let at = jiff::Timestamp::try_from(SystemTime::now()).map(|now| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    BuiltReport {
        kforge: env!("CARGO_PKG_VERSION").into(),
        at: at.unwrap_or_default(),
        commit,
        dirty,
        folder: in_repository(&opened.workspace.root),
        interrupted: false,
        selected: asked.selected(),
        toolchains: pinned(&opened.workspace),
        failed_keys: failed_keys(outcome),
    }
}

/// The packages of each toolchain that the lockfile pins, with their versions.
fn pinned(workspace: &Workspace) -> BTreeMap<String, Vec<String>> {
    let of =
        |wheels: &Vec<LockedWheel>| wheels.iter().map(|wheel| format!("{} {}", wheel.name, wheel.version)).collect();
    workspace.lock.wheels.iter().map(|(toolchain, wheels)| (toolchain.clone(), of(wheels))).collect()
}

/// Names the folders of a report's packages, and the tables of the manifest that messages without another place are about.
pub fn locate(report: &mut Report, workspace: &Workspace) {
    for package in &mut report.packages {
        let Some(member) = workspace.members.iter().find(|member| member.package.name == package.name) else {
            package.folder = None;
            continue;
        };
        let folder = member.folder.strip_prefix(&workspace.root).ok();
        package.folder = folder.map(|folder| folder.display().to_string());
        for message in package.messages.iter_mut().filter(|message| message.place.is_none()) {
            let (kernel, operator) = (message.kernel.as_deref(), message.operator.as_deref());
            message.place = declared(&member.package, kernel, operator);
        }
    }
}

/// The line of the manifest with the table of a kernel or, without one, of an operator; none if an overlay declares it.
fn declared(package: &Package, kernel: Option<&str>, operator: Option<&str>) -> Option<SourcePlace> {
    let place = match (kernel, operator) {
        (Some(kernel), _) => &package.kernel(kernel)?.place,
        (None, Some(operator)) => &package.operator(operator)?.place,
        (None, None) => return None,
    };
    let before = place.file.text.get(..place.span.start)?;
    let line = u32::try_from(before.matches('\n').count() + 1).ok()?;
    Some(SourcePlace { file: MANIFEST.into(), line, column: None })
}

/// Adds the last known times of kernels whose present version was not timed.
pub fn add_earlier(opened: &Opened, ready: &Ready<'_>, outcome: &BuildOutcome, report: &mut Report) {
    let untimed = ready.untimed(outcome);
    if let Some(before) = stored(opened).filter(|_| !untimed.is_empty()) {
        let is_edited = |package: &str, kernel: &str, target: &str| {
            untimed.contains(&[package, kernel, target].map(str::to_string))
        };
        report::earlier::carry(report, &before, &is_edited);
    }
}

/// Adds to each kernel on a target that the build did not get to because of a failure which failure that is, and what the build before knew. An interrupted build
/// might have got to it.
pub fn add_not_built(opened: &Opened, outcome: &BuildOutcome, report: &mut Report) {
    if outcome.interrupted {
        return;
    }
    let failed = |id: &str| outcome.step(id).is_some_and(|done| matches!(done.outcome, Outcome::Failed(_)));
    let mut all: HashMap<[&str; 4], NotBuiltReport> = HashMap::new();
    for (node, done) in outcome.graph.nodes().zip(&outcome.steps) {
        let Outcome::Skipped(root) = &done.outcome else { continue };
        let (step, stopped) = match (&outcome.stopped_by, failed(root)) {
            (_, true) => (root.clone(), false),
            (Some(step), false) if done.stopped => (step.clone(), true),
            _ => continue,
        };
        let labels = &node.labels;
        let (Some(kernel), Some(target)) = (&labels.kernel, &labels.target) else { continue };
        let types = labels.types.as_deref().or(labels.variant.as_deref().map(types_of)).unwrap_or_default();
        let why = || NotBuiltReport { step, stopped, last: None };
        all.entry([&labels.package, kernel, target, types]).or_insert_with(why);
    }
    if !all.is_empty() {
        report::not_built::add(report, stored(opened).filter(is_of_all_shapes).as_ref(), &|place| {
            all.get(&place).cloned()
        });
    }
}

/// The keys of the steps that failed, in order and each once.
fn failed_keys(outcome: &BuildOutcome) -> Vec<String> {
    let failed = outcome.steps.iter().filter(|done| matches!(done.outcome, Outcome::Failed(_)));
    let keys: BTreeSet<String> = failed.filter_map(|done| done.key).map(|key| key.to_string()).collect();
    keys.into_iter().collect()
}

/// The stored report, if there is one that can be read.
pub(crate) fn stored(opened: &Opened) -> Option<Report> {
    serde_json::from_slice(&std::fs::read(opened.target.join("report.json")).ok()?).ok()
}

/// Stores a report where [`last`] finds it. If the stored report differs only in its time, it stays: a build with nothing to do gives no new results, whether it
/// is planned or certified.
pub fn keep(opened: &Opened, report: &Report) -> Result<(), Error> {
    let place = opened.target.join("report.json");
    let json = serde_json::to_vec_pretty(report)?;
    if let Some(mut known) = stored(opened)
        && let (Some(then), Some(now)) = (&mut known.built, &report.built)
    {
        then.at.clone_from(&now.at);
        if serde_json::to_vec_pretty(&known)? == json {
            return note_whole(opened);
        }
    }
    write_if_changed(&place, &json).map_err(Error::write(&place))?;
    note_whole(opened)
}

/// Records that a build was interrupted, so that its results are in no report.
pub fn note_interrupted(session: &Session, opened: &Opened) {
    let path = opened.target.join(CUT_SHORT);
    if let Err(source) = write_if_changed(&path, b"") {
        session.reporter.warn(Warning::NotNoted { path, source });
    }
}

/// Records that a build was not interrupted.
fn note_whole(opened: &Opened) -> Result<(), Error> {
    let path = opened.target.join(CUT_SHORT);
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::Remove { path, source }),
        _ => Ok(()),
    }
}

/// Whether the last build of a workspace was interrupted. If so, the stored report is that of the build before it.
pub fn is_interrupted(session: &Session, workspace: &Workspace) -> bool {
    session.target(workspace).join(CUT_SHORT).exists()
}

/// The report of the last build, if that was neither interrupted nor of single shapes: what it selected is a choice over all shapes. None if it cannot be read;
/// `kforge report` says why.
pub(crate) fn last_of_all_shapes(session: &Session) -> Option<Report> {
    let workspace = session.workspace().ok()?;
    if is_interrupted(session, &workspace) {
        return None;
    }
    last(session, &workspace).ok().filter(is_of_all_shapes)
}

/// Whether a report is of every shape of what it selects.
fn is_of_all_shapes(report: &Report) -> bool {
    report.built.as_ref().is_none_or(|built| built.selected.shapes.is_empty())
}

/// The report of the last build that was not interrupted.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn last(session: &Session, workspace: &Workspace) -> Result<Report, Error> {
    let path = session.target(workspace).join("report.json");
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(ReportError::NotBuilt(path).into()),
        Err(e) => return Err(Error::read(path)(e)),
    };
    let report: Report = match serde_json::from_slice(&bytes) {
        Ok(report) => report,
        Err(source) => return Err(ReportError::Malformed { path, source }.into()),
    };
    match report.format_version {
        version if version > FORMAT_VERSION => Err(ReportError::Newer { path, version }.into()),
        _ => Ok(report),
    }
}
