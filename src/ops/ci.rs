//! One run in CI: finds what a change touches, builds that with evidence, compares its champions with those of the base, and packages it on request. Knows the
//! order of these operations; each of them decides by itself.
//!
//! | what | decided by |
//! |---|---|
//! | which kernels are built | [`crate::affected`]; all that are selected, if there is no base |
//! | whether a kernel is wrong, and which evidence is missing | [`crate::build`] |
//! | whether a champion is slower | [`crate::compare`], from pairs and times of one class of devices |
//! | whether a package can be packaged | [`crate::package()`](mod@crate::package), which reads the evidence of the whole package, also that of kernels that the change does not touch |
//! | which targets are compared | those whose device somebody has observed: this machine has one, or the home or the repository of either state has a record of one |

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Error;
use crate::affected::{Asked, described, devices, since};
use crate::build::{BuildRequest, BuildState, Ended, Finished, execute, trusting};
use crate::compare::{BuiltBase, CompareError, CompareRequest, WORKING_TREE, build_base, check_out, with_outcome};
use crate::event::Event;
use crate::package::write::remove_artifacts;
use crate::package::{PackageError, PackageRequest, Packaged, package_with};
use crate::pen::{Passphrase, Pen};
use crate::report::{PAGE, sidecar_of, unbuilt, write_pages};
use crate::session::evidence_policy::EvidencePolicy;
use crate::session::{Opened, Session};
use kforge_engine::{BuildOutcome, ClaimsOption};
use kforge_foundation::base::Diagnostic;
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::plan::{Goal, Selection};
use kforge_pipeline::release::ci::{
    CiArtifact, CiBase, CiReport, Conclusion, MissingEvidence, SkippedDevice, StepsOf, steps_by_kernel,
};
use kforge_pipeline::release::comparison::{Change, Comparison, Seat};
use kforge_pipeline::release::comparison_page;
use kforge_pipeline::release::revision::Revision;
use kforge_pipeline::report::exports::{ExportFormat, export, summary_results};
use kforge_pipeline::report::page::listings::{Listing, Place};
use kforge_project::workspace::select::{Selected, SelectionArgs};
use kforge_project::workspace::{Workspace, root_folder};
use kforge_types::model::Arch;
use kforge_types::record::{DeviceClass, Standing};

/// The name of the document of a run.
pub const DOCUMENT: &str = "ci.json";

/// The name of the comparison as a comment on a pull request.
const COMPARISON: &str = "comparison.md";

/// The name of the comparison as a page.
const COMPARISON_PAGE: &str = "comparison.html";

/// The folder for artifacts, in the folder for the documents.
const ARTIFACTS: &str = "package";

/// The folder for the documents of a run, in the output folder of a workspace.
const FOLDER: &str = "ci";

/// The request for a run in CI.
#[derive(Debug, Clone, PartialEq)]
pub struct CiRequest {
    /// The git revision that the working tree changes; none to build everything that is selected, and to compare nothing.
    pub base: Option<String>,
    /// The kernels to consider.
    pub words: SelectionArgs,
    /// The relative difference in time up to which champions count as equal.
    pub margin: f64,
    /// The least standing of evidence that counts.
    pub standing: Standing,
    /// Whether the run may succeed although evidence is missing or undecided.
    pub allow_missing: bool,
    /// Package what the change touches if nothing is known to be wrong; everything that is selected if there is no base.
    pub artifacts: bool,
    /// The key that signs the artifacts.
    pub sign_key: Option<PathBuf>,
    /// The folder for the documents; if none, `ci` in the output folder.
    pub output: Option<PathBuf>,
    /// The number of steps to run in parallel; a negative number means all cores except that many.
    pub jobs: Option<i64>,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ci {
    /// Its document, whose exit code is not known yet.
    pub report: CiReport,
    /// The build; none if the change touches nothing of the selection.
    pub finished: Option<Finished>,
    /// Why artifacts that were asked for could not be made. The run then concludes with [`Conclusion::NotPackaged`].
    pub refused: Option<Error>,
    /// The sources and the machine code of what the page of its results compares, as far as they are found here.
    pub listings: BTreeMap<Place, Vec<Listing>>,
    /// The folder for its documents.
    pub folder: PathBuf,
}

/// Runs everything that CI checks. The result says how it ended; [`write_reports`] writes it.
///
/// # Errors
/// The base does not exist, one of the two states has errors, the key cannot be used, or the run could not be started.
pub fn ci(session: &Session, request: &CiRequest, passphrase: &Passphrase<'_>) -> Result<Ci, Error> {
    let began = Instant::now();
    let folder = folder(session, request)?;
    forget(&folder)?;
    remove_artifacts(session, &folder.join(ARTIFACTS))?;
    let pen = request.sign_key.as_ref().map(|key| Pen::of(session, key, passphrase)).transpose()?;
    let opened = session.open()?;
    let trusted = trusting(session, &opened, request.base.as_deref())?;
    let session = trusted.as_ref().unwrap_or(session);
    let selected = session.select(&opened.workspace, &request.words)?;
    let run = Run { session, request, began };
    let Concluded { mut report, finished, whole } = match &request.base {
        None => run.alone(opened, selected)?,
        Some(word) => run.since(opened, &selected, word)?,
    };
    let mut refused = None;
    if request.artifacts && report.conclusion != Conclusion::Done {
        report.not_packaged = vec![format!("the run ended before anything was packaged: {}", report.conclusion.text())];
    }
    if request.artifacts && report.conclusion == Conclusion::Done {
        match run.package(&whole, &folder, pen.as_ref()) {
            Ok(artifacts) => report.artifacts = Some(artifacts),
            Err(Error::Interrupted) => report.conclusion = Conclusion::Interrupted,
            Err(error) => {
                report.conclusion = Conclusion::NotPackaged;
                report.not_packaged = reasons(&error);
                refused = Some(error);
            }
        }
    }
    let listings = match &finished {
        // What plans say was said by the run.
        Some(finished) if report.conclusion != Conclusion::Interrupted => {
            crate::report::listings(&session.unheard(), &finished.report)
        }
        _ => BTreeMap::new(),
    };
    Ok(Ci { report, finished, refused, listings, folder })
}

/// Why nothing is packaged: a line for each reason.
fn reasons(error: &Error) -> Vec<String> {
    match error {
        Error::Package(PackageError::Refused { reasons, .. }) => reasons.iter().map(ToString::to_string).collect(),
        error => vec![error.to_string()],
    }
}

/// Writes the documents of a run into its folder: [`DOCUMENT`], the comparison as Markdown and as a page, and the results in the formats of other tools and as a
/// page, with sources and machine code on a page beside it. Returns their paths.
///
/// # Errors
/// A document cannot be written.
pub fn write_reports(session: &Session, ci: &Ci) -> Result<Vec<PathBuf>, Error> {
    let mut texts = vec![(DOCUMENT, serde_json::to_string_pretty(&ci.report)? + "\n")];
    texts.extend(ci.report.comparison.as_ref().map(|found| (COMPARISON, found.markdown())));
    let nothing = unbuilt(session);
    let results = ci.finished.as_ref().map_or(&nothing, |finished| &finished.report);
    for format in ExportFormat::ALL {
        let text = match format {
            ExportFormat::Summary => ci.report.summary(&summary_results(results)),
            format => export(results, &[], format)?,
        };
        texts.push((format.file_name(), text));
    }
    texts.extend(ci.report.comparison.as_ref().map(|found| (COMPARISON_PAGE, comparison_page::page(found))));
    let mut written = write(&ci.folder, &texts)?;
    written.extend(write_pages(results, ci.listings.clone(), &ci.folder.join(PAGE))?);
    Ok(written)
}

/// Writes what is wrong with a workspace that cannot be built, in the formats of other tools that show diagnostics. Returns the paths of the documents.
///
/// # Errors
/// A document cannot be written, or there is no workspace.
pub fn write_diagnostics(session: &Session, request: &CiRequest, found: &[Diagnostic]) -> Result<Vec<PathBuf>, Error> {
    let mut texts = vec![];
    for format in ExportFormat::ALL.into_iter().filter(|format| format.has_diagnostics()) {
        texts.push((format.file_name(), export(&unbuilt(session), found, format)?));
    }
    write(&folder(session, request)?, &texts)
}

fn write(folder: &Path, texts: &[(&str, String)]) -> Result<Vec<PathBuf>, Error> {
    let write = |(name, text): &(&str, String)| {
        let place = folder.join(name);
        write_if_changed(&place, text.as_bytes()).map_err(Error::write(&place))?;
        Ok(place)
    };
    texts.iter().map(write).collect()
}

/// The folder for the documents. It is known also where manifests have errors.
fn folder(session: &Session, request: &CiRequest) -> Result<PathBuf, Error> {
    if let Some(output) = &request.output {
        return Ok(session.cwd.join(output));
    }
    let target = match session.named_target() {
        Some(target) => target,
        None => root_folder(&session.manifest()?).join("target"),
    };
    Ok(target.join("kforge").join(FOLDER))
}

/// Removes the documents of an earlier run, so that a run that cannot be started leaves none.
fn forget(folder: &Path) -> Result<(), Error> {
    let names = [DOCUMENT, COMPARISON, PAGE, COMPARISON_PAGE];
    let names = names.into_iter().chain(ExportFormat::ALL.map(ExportFormat::file_name));
    let places = names.map(|name| folder.join(name)).chain([sidecar_of(&folder.join(PAGE))]);
    for place in places {
        match std::fs::remove_file(&place) {
            Err(e) if !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(Error::remove(&place)(e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A run that goes on.
struct Run<'a> {
    session: &'a Session,
    request: &'a CiRequest,
    began: Instant,
}

/// What a run says before anything is packaged.
struct Concluded {
    report: CiReport,
    finished: Option<Finished>,
    /// The GPU targets of the packages that it is about. A package is packaged whole, with the kernels that the change does not touch.
    whole: BTreeSet<SkippedDevice>,
}

/// What the build of a run says.
struct BuildSummary {
    steps: Vec<StepsOf>,
    /// The steps that lack evidence, except those of skipped targets.
    missing: Vec<MissingEvidence>,
    skipped: BTreeSet<SkippedDevice>,
    /// The comparison, or why there is none although there is a base.
    comparison: Option<Result<Comparison, String>>,
}

impl Run<'_> {
    /// Builds everything that is selected.
    fn alone(&self, opened: Opened, selected: Selected) -> Result<Concluded, Error> {
        let targets = device_targets(&opened.workspace, &selected);
        let whole = targets.clone();
        let report = CiReport::new(None, None, !self.request.allow_missing);
        let build = self.build();
        let began = (self.began, None);
        let (finished, outcome) = execute(self.session, opened, selected, &build, began, |state, outcome| {
            let observed = devices(state.opened, state.packages, state.ready)?;
            let (skipped, _) = split(targets, &observed);
            Ok(BuildSummary::of(&state, &outcome, skipped, None))
        })?;
        Ok(Concluded { report: self.concluded(report, &finished, outcome), finished: Some(finished), whole })
    }

    /// Builds what a change since a revision touches, and compares its champions.
    fn since(&self, opened: Opened, all: &Selected, word: &str) -> Result<Concluded, Error> {
        let Run { session, request, began } = *self;
        let revision = check_out(session, &opened, word)?;
        let asked = Asked { selected: all, goal: Goal::Build, overlay: None, observes: true };
        let difference = since(session, &opened, asked, &revision, word)?;
        session.reporter.event(&Event::Affected(&difference.affected));
        let base = CiBase { revision: word.into(), commit: revision.commit.clone() };
        let narrowed = all.narrowed(&opened.workspace, difference.affected.names());
        let report = CiReport::new(Some(base), Some(difference.affected), !request.allow_missing);
        let Some(selected) = narrowed else {
            let report = CiReport { artifacts: request.artifacts.then(Vec::new), ..report };
            return Ok(Concluded { report, finished: None, whole: BTreeSet::new() });
        };
        let touched = Selected { members: selected.members.clone(), ..all.clone() };
        let whole = device_targets(&opened.workspace, &touched);
        let (skipped, compared) = split(device_targets(&opened.workspace, &selected), &difference.devices);
        let base = self.base(&opened, &revision, word, &selected, &compared)?;
        session.reporter.event(&Event::Building(WORKING_TREE));
        let (timed, build) = (selected.clone(), self.build());
        let (finished, outcome) = execute(session, opened, selected, &build, (began, None), |state, outcome| {
            let without = BuildSummary::of(&state, &outcome, skipped, None);
            let comparison = match (base, state.ended) {
                (None, _) | (_, Ended::Interrupted | Ended::Contradicted(_)) => None,
                (Some(Err(why)), _) => Some(Err(why)),
                (Some(Ok(base)), _) => {
                    let head = (state.opened, state.ready, state.packages);
                    let found = with_outcome(session, head, outcome, &base, (&timed, request.margin));
                    Some(comparable(found)?)
                }
            };
            let comparison = comparison.map(|found| found.map(|found| without.kept(found)));
            Ok(BuildSummary { comparison, ..without })
        })?;
        Ok(Concluded { report: self.concluded(report, &finished, outcome), finished: Some(finished), whole })
    }

    /// Packages these targets.
    fn package(
        &self,
        whole: &BTreeSet<SkippedDevice>,
        folder: &Path,
        pen: Option<&Pen>,
    ) -> Result<Vec<CiArtifact>, Error> {
        let packages: BTreeSet<&String> = whole.iter().map(|of| &of.package).collect();
        let targets: BTreeSet<&String> = whole.iter().map(|of| &of.target.target).collect();
        if packages.is_empty() {
            return Ok(vec![]);
        }
        let request = PackageRequest {
            words: SelectionArgs {
                packages: packages.into_iter().cloned().collect(),
                targets: targets.into_iter().cloned().collect(),
                ..SelectionArgs::default()
            },
            output: Some(folder.join(ARTIFACTS)),
            key: None,
            allow_claimed: self.request.standing == Standing::Claimed,
            claims: ClaimsOption::RequireEvidence,
            jobs: self.request.jobs,
            dry_run: false,
        };
        let made = package_with(self.session, &request, pen)?;
        let within = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
        let artifact = |made: Packaged| CiArtifact {
            archive: within(&made.archive),
            folder: within(&made.folder),
            package: made.index.package,
            version: made.index.version,
            root: made.index.root,
            bytes: made.bytes,
            kernels: made.kernels,
            signed_by: made.signed_by,
            claimed: made.claimed,
        };
        Ok(made.into_iter().map(artifact).collect())
    }

    /// The champions of the base on the targets that are compared, or why it has none; none if no target is compared.
    fn base(
        &self,
        opened: &Opened,
        revision: &Revision,
        word: &str,
        selected: &Selected,
        compared: &BTreeSet<SkippedDevice>,
    ) -> Result<Option<Result<BuiltBase, String>>, Error> {
        if compared.is_empty() {
            return Ok(None);
        }
        let targets: BTreeSet<String> = compared.iter().map(|of| of.target.target.clone()).collect();
        let timed = Selected { targets: targets.into_iter().collect(), ..selected.clone() };
        let request = CompareRequest {
            base: word.into(),
            head: None,
            words: SelectionArgs::default(),
            margin: self.request.margin,
            remeasure: false,
            require_evidence: Some(self.request.standing),
            jobs: self.request.jobs,
        };
        comparable(build_base(self.session, revision, (&opened.workspace, &timed), &request)).map(Some)
    }

    /// The request for the build.
    fn build(&self) -> BuildRequest {
        let CiRequest { base, words, standing, jobs, .. } = self.request.clone();
        BuildRequest {
            words,
            jobs,
            keep_going: true,
            evidence: EvidencePolicy::requiring(Some(standing)),
            base,
            plans: true,
            ..BuildRequest::new(Goal::Build)
        }
    }

    /// The report of a run that ended this way.
    fn concluded(&self, report: CiReport, finished: &Finished, outcome: BuildSummary) -> CiReport {
        let BuildSummary { steps, missing, skipped, comparison } = outcome;
        let (comparison, not_compared) = match comparison {
            Some(Ok(found)) => (Some(found), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let rows = |change| comparison.as_ref().map_or(0, |found| found.count(change));
        let open = rows(Change::Undecided) + rows(Change::Unknown) > 0 || not_compared.is_some();
        let conclusion = match &finished.ended {
            Ended::Interrupted => Conclusion::Interrupted,
            Ended::NotBuilt => Conclusion::NotBuilt,
            Ended::Contradicted(_) => Conclusion::Contradicted,
            Ended::Wrong => Conclusion::Wrong,
            Ended::Done | Ended::NoEvidence(_) if rows(Change::Slower) > 0 => Conclusion::Slower,
            Ended::Done | Ended::NoEvidence(_) if report.requires_evidence && (open || !missing.is_empty()) => {
                Conclusion::NoEvidence
            }
            Ended::Done | Ended::NoEvidence(_) => Conclusion::Done,
        };
        CiReport {
            steps,
            verdicts: finished.verdicts,
            comparison,
            not_compared,
            skipped: skipped.into_iter().collect(),
            missing_evidence: missing,
            conclusion,
            ..report
        }
    }
}

impl BuildSummary {
    fn of(
        state: &BuildState<'_, '_>,
        outcome: &BuildOutcome,
        skipped: BTreeSet<SkippedDevice>,
        comparison: Option<Result<Comparison, String>>,
    ) -> BuildSummary {
        let steps = outcome.graph.nodes().zip(&outcome.steps);
        let steps = steps_by_kernel(steps.map(|(node, done)| (node.id.as_str(), &node.labels, &done.outcome)));
        let lacking = match state.ended {
            Ended::NoEvidence(lacking) => &lacking[..],
            _ => &[],
        };
        let is_skipped = |id: &str| {
            let labels = outcome.graph.find(id).map(|at| &outcome.graph.node(at).labels);
            labels.is_some_and(|of| of.target.as_ref().is_some_and(|target| is_among(&skipped, &of.package, target)))
        };
        let missing = lacking.iter().filter(|step| !is_skipped(&step.id));
        let missing = missing.map(|of| MissingEvidence { step: of.id.clone(), why: of.why.clone() }).collect();
        BuildSummary { steps, missing, skipped, comparison }
    }

    /// The comparison without targets that are skipped: another package may have one of the same name.
    fn kept(&self, found: Comparison) -> Comparison {
        let keeps = |seat: &Seat| !is_among(&self.skipped, &seat.package, &seat.target);
        Comparison {
            rows: found.rows.iter().filter(|row| keeps(&row.seat)).cloned().collect(),
            added: found.added.iter().filter(|seat| keeps(seat)).cloned().collect(),
            removed: found.removed.iter().filter(|seat| keeps(seat)).cloned().collect(),
            ..found
        }
    }
}

/// A state that could not be built cannot be compared, which is no error of the run.
fn comparable<T>(found: Result<T, Error>) -> Result<Result<T, String>, Error> {
    fn is_unbuilt(error: &Error) -> bool {
        match error {
            Error::Compare(CompareError::NotBuilt) => true,
            Error::Compare(CompareError::Of { error, .. }) => is_unbuilt(error),
            _ => false,
        }
    }
    match found {
        Err(error) if is_unbuilt(&error) => Ok(Err(match &error {
            Error::Compare(CompareError::Of { name, .. }) => format!("{name} could not be built"),
            _ => format!("{WORKING_TREE} could not be built"),
        })),
        found => found.map(Ok),
    }
}

fn is_among(targets: &BTreeSet<SkippedDevice>, package: &str, target: &str) -> bool {
    targets.iter().any(|of| of.package == package && of.target.target == target)
}

/// The device targets of the selected kernels.
fn device_targets(workspace: &Workspace, selected: &Selected) -> BTreeSet<SkippedDevice> {
    let packages = selected.members.iter().map(|at| &workspace.members[*at].package);
    let kernels = packages.flat_map(|package| package.kernels.iter().map(move |kernel| (package, kernel)));
    let kernels = kernels.filter(|(package, kernel)| {
        Selection::takes(&selected.kernels, &kernel.name)
            && Selection::takes(&selected.operators, &kernel.operator)
            && selected.keeps(&package.name, &kernel.name)
    });
    let targets = kernels.flat_map(|(package, kernel)| kernel.targets.iter().map(move |target| (package, target)));
    let targets = targets.filter(|(_, target)| Selection::takes(&selected.targets, target));
    let described = targets.filter_map(|(package, target)| {
        Some(SkippedDevice { package: package.name.clone(), target: described(workspace, &package.name, target)? })
    });
    described.filter(|of| of.target.arch != Arch::Cpu.name()).collect()
}

/// The targets whose device nobody has observed, and the others.
fn split(
    targets: BTreeSet<SkippedDevice>,
    observed: &BTreeSet<DeviceClass>,
) -> (BTreeSet<SkippedDevice>, BTreeSet<SkippedDevice>) {
    let is_of = |class: &DeviceClass, of: &SkippedDevice| {
        class.runs(&of.target.arch) && of.target.device.as_ref().is_none_or(|device| *device == class.product)
    };
    targets.into_iter().partition(|of| !observed.iter().any(|class| is_of(class, of)))
}
