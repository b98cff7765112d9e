//! One side of a comparison: a built state of the workspace and its champions. Knows how to build; compares nothing.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use super::{CompareError, CompareRequest};
use crate::Error;
use crate::build::failing;
use crate::build::steps::{ended, execute};
use crate::contradictions;
use crate::event::Purpose;
use crate::session::build::{Packages, PlanRequest, Ready};
use crate::session::champions::Champion;
use crate::session::evidence_policy::EvidencePolicy;
use crate::session::places::Places;
use crate::session::{Opened, Session};
use kforge_engine::evidence::Record;
use kforge_engine::{Blobs, BuildOptions, BuildOutcome, Done, Node, Questions};
use kforge_foundation::base::Digest;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::Bundle;
use kforge_pipeline::release::comparison::{Seat, Unbuilt, Wrong};
use kforge_project::workspace::Workspace;
use kforge_project::workspace::select::Selected;
use kforge_types::model::Arch;
use kforge_types::record::params::Judgement;
use kforge_types::record::timing::BenchObserved;
use kforge_types::record::{DeviceClass, FindingKind, Outcome, Spec, Standing, StepKind, StepResult};

/// The champion of a seat.
#[derive(Debug, Clone)]
pub(super) struct Stood {
    /// The variant.
    pub(super) variant: String,
    /// The spec of the step that times the champion.
    pub(super) spec: Spec,
    /// The champion's times, with the class of the device.
    pub(super) benches: Vec<(DeviceClass, BenchObserved)>,
    /// Why stored times of the kernel at this shape do not count, if there are such.
    pub(super) refused: Option<String>,
}

impl Stood {
    fn benched(record: &Record, read: impl Fn(&Digest) -> Option<Vec<u8>>) -> Option<(DeviceClass, BenchObserved)> {
        let bytes = read(record.result.outputs.get("observation")?)?;
        Some((record.provenance.device.clone(), serde_json::from_slice(&bytes).ok()?))
    }
}

/// The champions by seat.
pub(super) type Seated = BTreeMap<Seat, Stood>;

/// A state that was built.
pub(super) struct Side<'a, 'p> {
    /// Its workspace.
    pub(super) opened: &'a Opened,
    /// The plan and services that built it. Holds the locks.
    pub(super) ready: &'a Ready<'p>,
    /// The questions of its plan, and what of them is known.
    pub(super) known: Questions,
    /// Its champions.
    pub(super) champions: Vec<Champion>,
    /// The champions by seat.
    pub(super) seated: Seated,
    /// The package, kernel, target and shape of every step that times a kernel; each should have a champion.
    pub(super) timed: BTreeSet<[String; 4]>,
    /// What is wrong, on any target.
    pub(super) wrong: Vec<Wrong>,
    /// What was not built, for targets that are not timed.
    pub(super) unbuilt: Vec<Unbuilt>,
}

/// Builds the selection and passes it to `with`. A failure on a target that is not timed is no error, because timed targets do not depend on it.
///
/// # Errors
/// A step for a timed target failed, or an error of `with`.
pub(super) fn built<R>(
    session: &Session,
    mut opened: Opened,
    selected: Selected,
    request: &CompareRequest,
    with: impl FnOnce(&Side<'_, '_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let asked = PlanRequest {
        selected,
        goal: Goal::Build,
        jobs: request.jobs,
        keep_going: true,
        remeasure: request.remeasure,
        evidence: EvidencePolicy::requiring(request.require_evidence),
        overlay: None,
        write: true,
        looks: false,
    };
    let packages = session.packages(&opened, &asked)?;
    let mut ready = session.ready(&mut opened, &packages, &asked)?;
    let outcome = execute(session, &opened, &mut ready, &packages, Purpose::Side, None);
    ready.journal.flush()?;
    ready.sweep_lost(&outcome);
    if session.interrupted.load(Ordering::Relaxed) || outcome.interrupted {
        return Err(CompareError::Interrupted.into());
    }
    if !contradictions::report(session, &ready, &outcome).is_empty() {
        return Err(CompareError::Contradicted.into());
    }
    if request.require_evidence == Some(Standing::Claimed) {
        session.report_claims(&outcome);
    }
    let done = with(&side(session, &opened, &ready, &packages, outcome)?);
    ready.end();
    done
}

/// The state that a build gave.
///
/// # Errors
/// A step for a timed target failed.
pub(super) fn side<'a, 'p>(
    session: &Session,
    opened: &'a Opened,
    ready: &'a Ready<'p>,
    packages: &Packages,
    outcome: BuildOutcome,
) -> Result<Side<'a, 'p>, Error> {
    let places = Places::new(&outcome.graph, &ready.journal, &*ready.leaves);
    let unbuilt = unbuilt(packages, &outcome, &places).ok_or(CompareError::NotBuilt)?;
    let wrong = wrong(&outcome, &places, &*ready.leaves);
    let refused = refused(&outcome);
    // This build's measurements are stored now and need not be repeated.
    let options = BuildOptions { remeasure: None, ..ready.options.clone() };
    let graph = ended(outcome)?;
    let known = ready.with_services(session, opened, |services| kforge_engine::questions(graph, &options, services));
    let champions = ready.champions(&known);
    let evidence = ready.evidence(opened);
    let mut seated = Seated::new();
    for Champion { timed: champion, spec, node, .. } in &champions {
        let seen = evidence.seen(&champion.bench, spec, node.product.as_deref())?;
        let read = |digest: &Digest| ready.leaves.get(digest).ok().flatten();
        let benches = seen.and_then(|seen| Stood::benched(&seen.record, read)).into_iter().collect();
        let seat = Seat::of(champion);
        let at = [&seat.package, &seat.kernel, &seat.target, &seat.shape].map(Clone::clone);
        let refused = refused.get(&at).cloned();
        seated.insert(seat, Stood { variant: champion.variant.clone(), spec: spec.clone(), benches, refused });
    }
    let label = |text: &Option<String>| text.clone().unwrap_or_default();
    let benches = known.asked.iter().map(|q| &q.node).filter(|node| node.kind == StepKind::Bench);
    let timed =
        benches.map(|n| &n.labels).map(|l| [l.package.clone(), label(&l.kernel), label(&l.target), label(&l.shape)]);
    let timed = timed.collect();
    Ok(Side { opened, ready, known, champions, seated, timed, wrong, unbuilt })
}

/// What was not built, for targets that are not timed. None if a step failed that is not only for such a target.
fn unbuilt(packages: &Packages, outcome: &BuildOutcome, places: &Places<'_>) -> Option<Vec<Unbuilt>> {
    let mut all = BTreeMap::new();
    for (node, done) in outcome.graph.nodes().zip(&outcome.steps) {
        let labels = &node.labels;
        let declared = packages.all().find(|p| p.name == labels.package);
        let declared = declared.zip(labels.target.as_ref()).and_then(|(p, name)| p.targets.get(name));
        let timed = declared.is_none_or(|t| t.arch != Arch::Cpu);
        let (failed, because) = match &done.outcome {
            Outcome::Failed(_) if timed => return None,
            Outcome::Failed(why) => (true, format!("`{}` failed: {}", node.id, first_line(places, node, why))),
            Outcome::Unavailable(why) if !timed && node.kind == StepKind::Compile => (false, why.clone()),
            _ => continue,
        };
        let name = |text: &Option<String>| text.clone().unwrap_or_default();
        let (package, kernel, target) = (labels.package.clone(), name(&labels.kernel), name(&labels.target));
        let seat = [package.clone(), kernel.clone(), target.clone()];
        let said = Unbuilt { package, kernel, target, failed, because };
        // A failure is more informative than something that this machine lacks.
        match all.entry(seat) {
            Entry::Vacant(none) => drop(none.insert(said)),
            Entry::Occupied(mut other) if !other.get().failed && failed => drop(other.insert(said)),
            Entry::Occupied(_) => {}
        }
    }
    Some(all.into_values().collect())
}

/// Why stored times do not count, by package, kernel, target and shape: for example, they are only claimed.
fn refused(outcome: &BuildOutcome) -> BTreeMap<[String; 4], String> {
    let label = |text: &Option<String>| text.clone().unwrap_or_default();
    let benches = outcome.graph.nodes().zip(&outcome.steps).filter(|(node, _)| node.kind == StepKind::Bench);
    let why = |(node, done): (&Node, &Done)| {
        let why = done.unanswered.as_ref().filter(|why| why.is_refused())?;
        let of = &node.labels;
        Some(([of.package.clone(), label(&of.kernel), label(&of.target), label(&of.shape)], why.to_string()))
    };
    benches.filter_map(why).collect()
}

/// The first line of a step's text, with positions as files and lines.
fn first_line(places: &Places<'_>, node: &Node, text: &str) -> String {
    places.text(&node.id, text.lines().next().unwrap_or_default())
}

/// What is wrong: each kernel once per target, and each operator once, in the order of the plan.
fn wrong(outcome: &BuildOutcome, places: &Places<'_>, blobs: &dyn Blobs) -> Vec<Wrong> {
    let name = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut all: Vec<Wrong> = vec![];
    for (node, result, why) in failing(outcome) {
        let labels = &node.labels;
        let (kernel, operator, target) = (name(&labels.kernel), name(&labels.operator), name(&labels.target));
        let because = format!("`{}`: {}", node.id, first_line(places, node, why));
        let finding = finding(result, blobs);
        let said = Wrong { package: labels.package.clone(), kernel, operator, target, because, finding };
        let about = |w: &Wrong| [w.package.clone(), w.kernel.clone(), w.operator.clone(), w.target.clone()];
        if !all.iter().any(|other| about(other) == about(&said)) {
            all.push(said);
        }
    }
    all
}

/// The finding that decides a judgement; none of other results, and none if only values are wrong.
fn finding(result: &StepResult, blobs: &dyn Blobs) -> Option<FindingKind> {
    let judgement = blobs.get(result.outputs.get("judgement")?).ok()??;
    serde_json::from_slice::<Judgement>(&judgement).ok()?.finding
}

/// The champions of the workspace in which a bundle was created.
pub(super) fn of_bundle(bundle: &Bundle) -> Seated {
    let read = |digest: &Digest| bundle.contents.get(digest).cloned();
    let mut seated = Seated::new();
    for champion in &bundle.champions {
        // A bundle with champions that were not timed is refused earlier.
        let Some(question) = bundle.questions.iter().find(|q| q.key == champion.bench) else { continue };
        let benches = question.records.iter().filter_map(|record| Stood::benched(record, read)).collect();
        let stood = Stood { variant: champion.variant.clone(), spec: question.spec.clone(), benches, refused: None };
        seated.insert(Seat::of(champion), stood);
    }
    seated
}

/// The selection for another state of a workspace: the members and names that the other state has too. None if it has none of them.
pub(crate) fn counterpart(of: &Workspace, selected: &Selected, other: &Workspace) -> Option<Selected> {
    let named: Vec<&str> = selected.members.iter().map(|i| of.members[*i].package.name.as_str()).collect();
    // A selection of all members selects all members of the other state too, including those that only it has.
    let all = selected.members.len() == of.members.len();
    let fits = |i: &usize| all || named.contains(&other.members[*i].package.name.as_str());
    let members: Vec<usize> = (0..other.members.len()).filter(fits).collect();
    let packages = || members.iter().map(|i| &other.members[*i].package);
    let has = |wanted: &[String], known: Vec<&str>| -> Option<Vec<String>> {
        let both: Vec<String> = wanted.iter().filter(|name| known.contains(&name.as_str())).cloned().collect();
        (wanted.is_empty() || !both.is_empty()).then_some(both)
    };
    let operators = || packages().flat_map(|p| &p.operators);
    let kernels = packages().flat_map(|p| p.kernels.iter().map(move |kernel| (p, kernel)));
    let kept =
        kernels.filter(|(p, kernel)| selected.keeps(&p.name, &kernel.name)).map(|(_, kernel)| kernel.name.as_str());
    let kernels = has(&selected.kernels, kept.collect())?;
    let shapes = has(&selected.shapes, operators().flat_map(|o| &o.shapes).map(|s| s.name.as_str()).collect())?;
    let targets = has(&selected.targets, packages().flat_map(|p| p.targets.keys()).map(String::as_str).collect())?;
    let operators = has(&selected.operators, operators().map(|o| o.name.as_str()).collect())?;
    let only = selected.only.clone();
    (!members.is_empty()).then_some(Selected { members, kernels, operators, shapes, targets, only })
}
