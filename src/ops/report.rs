//! Shows the results of the last build, or the scores of its kernels.

mod listings;
mod stale;

pub(crate) use listings::listings;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::build::report::{is_interrupted, last};
use crate::event::Warning;
use crate::session::git::in_repository;
use crate::{Error, Session};
use kforge_foundation::base::Diagnostic;
use kforge_foundation::base::files::write_if_changed;
use kforge_numerics::measure::score::Form;
use kforge_pipeline::report::Report;
use kforge_pipeline::report::kernelbench::{self, EAGER, FACTORS, KernelBenchScores, NoTasks, TaskOrigin};
use kforge_pipeline::report::page::listings::{Listing, Listings, Place, sidecar};
use kforge_pipeline::report::page::{page, page_beside};
use kforge_pipeline::report::provenance::{BuiltReport, SelectedReport};
use kforge_pipeline::report::score::{NoScores, Scores, scores};
use kforge_project::workspace::select::SelectionArgs;
use kforge_project::workspace::{Workspace, root_folder};
use kforge_types::model::Reference;
use kforge_types::record::FORMAT_VERSION;

/// The name of the page in the output folder.
pub const PAGE: &str = "report.html";

/// The name of the page of a part of the report, which must not replace that of the whole.
pub const NARROWED_PAGE: &str = "report.narrowed.html";

/// The ending of the page beside it.
const SIDECAR: &str = "sass.html";

/// The request for a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportRequest {
    /// What to show; without a selection, the current package.
    pub words: SelectionArgs,
    /// The scores to compute; none if only the report is wanted.
    pub score: Option<ScoreRequest>,
    /// KernelBench's metrics to compute, if they are wanted.
    pub kernelbench: Option<MetricsRequest>,
}

/// How KernelBench's metrics are computed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricsRequest {
    /// The baseline; that of PyTorch's own execution if none is named.
    pub baseline: Option<String>,
    /// The factors p of `fast_p`; KernelBench's if none are named.
    pub fast_p: Option<Vec<f64>>,
}

/// How kernels are scored.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreRequest {
    /// The score's form.
    pub form: Form,
    /// The baseline: a kernel of the same operator, a variant, a baseline of the manifest, or `declared`, the variant declared first.
    pub baseline: String,
    /// Speedups. For each of them, the result states the share of correct kernels that are faster.
    pub fast_p: Vec<f64>,
}

/// The results of the last build.
#[derive(Debug)]
pub struct Shown {
    /// The selected part of its report.
    pub report: Report,
    /// Its scores, if requested.
    pub scores: Option<Scores>,
    /// KernelBench's metrics, if requested.
    pub kernelbench: Option<KernelBenchScores>,
    /// The warnings about the workspace's manifests.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why a report, or its scores, cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum NotShown {
    /// There is no report, and the last build, which would have written one, was interrupted.
    #[error(transparent)]
    Interrupted(Box<Error>),
    /// The last build did not build the selection.
    #[error("{}: the last build was {}", not_built(.asked), named(.built))]
    NotBuilt {
        /// The selected packages.
        asked: Vec<String>,
        /// The packages that were built.
        built: Vec<String>,
    },
    /// The last build has no results for the selection in its packages.
    #[error("the last build has no results for this selection")]
    Nothing,
    /// A number is not a valid speedup.
    #[error("`--fast-p {0}` is not a speedup: expected a number of 0 or more, such as 1.2")]
    Share(f64),
    /// There is nothing to score, or nothing to compare with.
    #[error(transparent)]
    NoScores(#[from] NoScores),
    /// No kernel is one of a task of KernelBench.
    #[error(transparent)]
    NoTasks(#[from] NoTasks),
    /// Where a page would be written, there is a file that kforge did not write.
    #[error("`{}` is no page of kforge, so it is not replaced by the page beside the report", .0.display())]
    Foreign(PathBuf),
}

/// The results of the last build of the current workspace.
///
/// # Errors
/// There is no report, or [`NotShown`].
pub fn report(session: &Session, request: &ReportRequest) -> Result<Shown, Error> {
    let (workspace, diagnostics) = session.workspace_and_warnings()?;
    let interrupted = is_interrupted(session, &workspace);
    let mut report = match last(session, &workspace) {
        Err(error) if interrupted => return Err(NotShown::Interrupted(Box::new(error)).into()),
        found => found?,
    };
    if interrupted {
        session.reporter.warn(Warning::LastInterrupted);
        report.built.iter_mut().for_each(|built| built.interrupted = true);
    }
    stale::mark(session, &mut report);
    let whole = report.clone();
    let packages = narrow(session, &workspace, &mut report, &request.words)?;
    if report != whole {
        let SelectionArgs { kernels, operators, shapes, targets, .. } = request.words.clone();
        report.narrowed = Some(SelectedReport { packages, kernels, operators, shapes, targets, overlay: None });
    }
    let scores = request.score.as_ref().map(|request| score(&report, request)).transpose()?;
    let kernelbench = request.kernelbench.as_ref().map(|request| metrics(&workspace, &report, request)).transpose()?;
    Ok(Shown { report, scores, kernelbench, diagnostics })
}

/// Writes a report as an HTML page and returns its path: the given one, relative to the session's folder, or in the output folder [`PAGE`], and
/// [`NARROWED_PAGE`] for a part of the report. Sources and machine code, as far as they can be found here, are a page beside it: `report.sass.html`.
///
/// # Errors
/// The workspace cannot be read, or a file cannot be written.
pub fn write_page(session: &Session, report: &Report, path: Option<&Path>) -> Result<PathBuf, Error> {
    let path = match path {
        Some(path) => session.cwd.join(path),
        None => {
            let name = if report.narrowed.is_some() { NARROWED_PAGE } else { PAGE };
            session.target(&session.workspace_and_warnings()?.0).join(name)
        }
    };
    write_pages(report, listings(session, report), &path)?;
    Ok(path)
}

/// Writes the page of a report to a path, and what was found of its variants to a page beside it. Returns the paths of both, as far as there are two. Beside a
/// pipe or a device, nothing is written.
pub(crate) fn write_pages(
    report: &Report,
    of: BTreeMap<Place, Vec<Listing>>,
    path: &Path,
) -> Result<Vec<PathBuf>, Error> {
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        std::fs::write(path, page(report)).map_err(Error::write(path))?;
        return Ok(vec![path.to_path_buf()]);
    }
    let beside = sidecar_of(path);
    let file = beside.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let listings = Listings { file, of };
    let second = sidecar(report, &listings);
    match &second {
        Some(_) if is_foreign(&beside) => return Err(NotShown::Foreign(beside).into()),
        Some(text) => {
            write_if_changed(&beside, text.as_bytes()).map_err(Error::write(&beside))?;
        }
        None if is_foreign(&beside) => {}
        None => remove(&beside)?,
    }
    write_if_changed(path, page_beside(report, &listings).as_bytes()).map_err(Error::write(path))?;
    Ok([path.to_path_buf()].into_iter().chain(second.map(|_| beside)).collect())
}

/// The page beside that of a report.
pub(crate) fn sidecar_of(path: &Path) -> PathBuf {
    path.with_extension(SIDECAR)
}

/// Whether there is a file that is not a page of kforge, or one that cannot be read. The titles of kforge's pages end with its name, and stand at their beginning.
fn is_foreign(path: &Path) -> bool {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    let mut start = vec![];
    if file.take(1 << 16).read_to_end(&mut start).is_err() {
        return true;
    }
    let start = String::from_utf8_lossy(&start);
    let title = start.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    !(start.starts_with("<!doctype html>") && title.is_some_and(|(title, _)| title.ends_with(": kforge report")))
}

/// Removes what an earlier report wrote beside its page.
fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::write(path)(error)),
        _ => Ok(()),
    }
}

/// A report without results, for a workspace whose manifests have errors. It says where the workspace is, so that places in diagnostics can be shown.
pub fn unbuilt(session: &Session) -> Report {
    let root = session.manifest().map(|manifest| root_folder(&manifest));
    let folder = root.ok().and_then(|root| in_repository(&root));
    let built = BuiltReport { kforge: env!("CARGO_PKG_VERSION").into(), folder, ..BuiltReport::default() };
    Report { format_version: FORMAT_VERSION, built: Some(built), ..Report::default() }
}

/// Removes everything that is not selected. Returns the packages that are left if others were removed.
fn narrow(
    session: &Session,
    workspace: &Workspace,
    report: &mut Report,
    words: &SelectionArgs,
) -> Result<Vec<String>, Error> {
    let selected = session.select(workspace, words)?;
    let members: Vec<&str> = selected.members.iter().map(|i| workspace.members[*i].package.name.as_str()).collect();
    let built: Vec<String> = report.packages.iter().map(|p| p.name.clone()).collect();
    report.packages.retain(|package| members.contains(&package.name.as_str()));
    if report.packages.is_empty() {
        return Err(NotShown::NotBuilt { asked: members.into_iter().map(String::from).collect(), built }.into());
    }
    let left: Vec<String> = report.packages.iter().map(|package| package.name.clone()).collect();
    let left = if left == built { vec![] } else { left };
    // The results of operators stay, unless the selection is within packages.
    if [&words.kernels, &words.operators, &words.shapes, &words.targets].iter().all(|words| words.is_empty()) {
        return Ok(left);
    }
    let takes = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    report.retain(&|_, kernel, operator, target| {
        takes(&selected.kernels, kernel) && takes(&selected.operators, operator) && takes(&selected.targets, target)
    });
    for target in report.packages.iter_mut().flat_map(|p| &mut p.kernels).flat_map(|k| &mut k.targets) {
        target.narrow(&|shape| takes(&selected.shapes, shape));
    }
    for package in &mut report.packages {
        let kernels = &package.kernels;
        package.leaders.retain(|leader| {
            takes(&selected.targets, &leader.target)
                && takes(&selected.shapes, &leader.shape)
                && kernels.iter().any(|kernel| leader.is_about(&kernel.name))
        });
    }
    if report.packages.is_empty() { Err(NotShown::Nothing.into()) } else { Ok(left) }
}

/// KernelBench's metrics of the tasks that manifests state.
fn metrics(workspace: &Workspace, report: &Report, request: &MetricsRequest) -> Result<KernelBenchScores, NotShown> {
    let ps = request.fast_p.as_deref().unwrap_or(&FACTORS);
    factors(ps)?;
    let operators = workspace.members.iter().flat_map(|member| {
        member.package.operators.iter().map(move |operator| (member.package.name.clone(), operator))
    });
    let tasks = operators.filter_map(|(package, operator)| {
        let origin = operator.origin.as_ref().filter(|origin| origin.set == kernelbench::SET)?;
        let trains = matches!(&operator.reference, Reference::Torch { call, .. } if call.train);
        let task = TaskOrigin { level: origin.level, number: origin.number, name: origin.name.clone(), trains };
        Some(((package, operator.name.clone()), task))
    });
    let baseline = request.baseline.as_deref().unwrap_or(EAGER);
    Ok(kernelbench::kernelbench(report, &tasks.collect(), baseline, ps)?)
}

/// Refuses numbers that are no factors.
fn factors(ps: &[f64]) -> Result<(), NotShown> {
    match ps.iter().find(|p| !p.is_finite() || **p < 0.0) {
        Some(p) => Err(NotShown::Share(*p)),
        None => Ok(()),
    }
}

fn score(report: &Report, request: &ScoreRequest) -> Result<Scores, NotShown> {
    factors(&request.fast_p)?;
    let found = scores(report, request.form, &request.baseline, &request.fast_p);
    Ok(found?)
}

fn not_built(packages: &[String]) -> String {
    match packages {
        [one] => format!("`{one}` was not built"),
        several => format!("none of {} was built", names(several)),
    }
}

fn named(packages: &[String]) -> String {
    if packages.is_empty() { "of nothing".into() } else { format!("of {}", names(packages)) }
}

/// Names for a message: `a`, `b` and 7 more.
fn names(all: &[String]) -> String {
    let shown = all.iter().take(6).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if all.len() > 6 { format!("{shown} and {} more", all.len() - 6) } else { shown }
}
