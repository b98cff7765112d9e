//! Which kernels of a selection a change since a revision touches: plans the working tree and the revision, and compares the plans. Runs no step and writes only
//! the folder in which the revision is checked out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::Error;
use crate::build::trusting;
use crate::compare::{check_out, named, of, sides::counterpart};
use crate::event::Event;
use crate::implementation::implementations;
use crate::session::build::{Packages, Ready};
use crate::session::{Opened, Session};
use kforge_engine::symbolic_keys;
use kforge_foundation::base::Digest;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::affected::{self, Affected, AffectedTarget, Declarations, KernelName, PlannedState};
use kforge_pipeline::release::revision::Revision;
use kforge_project::workspace::Workspace;
use kforge_project::workspace::select::{Selected, SelectionArgs};
use kforge_types::model::{Arch, Package};
use kforge_types::record::DeviceClass;

/// The request for the affected kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AffectedRequest {
    /// The base: a git revision.
    pub base: String,
    /// The kernels to consider.
    pub words: SelectionArgs,
}

/// Finds the kernels that differ between a revision and the working tree.
///
/// # Errors
/// The revision does not exist, or one of the two states cannot be planned.
pub fn affected(session: &Session, request: &AffectedRequest) -> Result<Affected, Error> {
    let opened = session.open()?;
    let trusted = trusting(session, &opened, Some(&request.base))?;
    let session = trusted.as_ref().unwrap_or(session);
    let selected = session.select(&opened.workspace, &request.words)?;
    let revision = check_out(session, &opened, &request.base)?;
    let asked = Asked { selected: &selected, goal: Goal::Build, overlay: None, observes: false };
    Ok(since(session, &opened, asked, &revision, &request.base)?.affected)
}

/// What is planned of both states.
#[derive(Clone)]
pub(crate) struct Asked<'a> {
    /// The selection in the working tree.
    pub(crate) selected: &'a Selected,
    /// How far a build would go.
    pub(crate) goal: Goal,
    /// The overlay.
    pub(crate) overlay: Option<PathBuf>,
    /// Whether to find out which devices were observed.
    pub(crate) observes: bool,
}

/// What the plans of two states say.
pub(crate) struct Difference {
    /// The kernels that differ.
    pub(crate) affected: Affected,
    /// The devices that are here, and those with records in the home or in either state; empty unless that was asked.
    pub(crate) devices: BTreeSet<DeviceClass>,
}

/// The part of a selection that a change since a revision touches, and what the change touches; none if it touches nothing of the selection.
///
/// # Errors
/// Those of [`affected`].
pub(crate) fn narrowed(
    session: &Session,
    opened: &Opened,
    asked: Asked<'_>,
    word: &str,
) -> Result<(Affected, Option<Selected>), Error> {
    let revision = check_out(session, opened, word)?;
    let selected = asked.selected;
    let affected = since(session, opened, asked, &revision, word)?.affected;
    let narrowed = selected.narrowed(&opened.workspace, affected.names());
    session.reporter.event(&Event::Affected(&affected));
    Ok((affected, narrowed))
}

/// Compares the plan of the working tree with that of a revision that was checked out. `word` is the revision's name.
///
/// # Errors
/// One of the two states cannot be planned.
pub(crate) fn since(
    session: &Session,
    opened: &Opened,
    asked: Asked<'_>,
    revision: &Revision,
    word: &str,
) -> Result<Difference, Error> {
    let quiet = session.unheard();
    // The working tree's plan is made again when it is built, and its warnings are shown then.
    let observed = |opened: &Opened, packages: &Packages, ready: &Ready<'_>| match asked.observes {
        true => devices(opened, packages, ready),
        false => Ok(BTreeSet::new()),
    };
    let head = planned(&quiet, quiet.open()?, asked.selected.clone(), &asked, observed)?;
    let name = named(word, revision);
    let of_base = of(&name);
    let elsewhere = quiet.elsewhere(revision.folder.clone(), revision.outputs.clone());
    let other = elsewhere.open().map_err(&of_base)?;
    let base = match counterpart(&opened.workspace, asked.selected, &other.workspace) {
        Some(chosen) => match planned(&elsewhere, other, chosen, &asked, brought) {
            // The base has such kernels, and none of them for the selected targets.
            Err(Error::NothingToDo { .. }) => Planned::default(),
            planned => planned.map_err(&of_base)?,
        },
        None => Planned::default(),
    };
    let target = |package: &str, target: &str| described(&opened.workspace, package, target);
    let affected = affected::affected(&base.state, &head.state, &implementations(), &target, &revision.commit);
    Ok(Difference { affected, devices: head.devices.into_iter().chain(base.devices).collect() })
}

/// A target of a package, for documents.
pub(crate) fn described(workspace: &Workspace, package: &str, target: &str) -> Option<AffectedTarget> {
    let member = workspace.members.iter().find(|member| member.package.name == package)?;
    let target = member.package.targets.get(target)?;
    let (arch, device) = (target.arch.name().to_string(), target.device.clone());
    Some(AffectedTarget { target: target.name.clone(), arch, device })
}

/// A planned state, and the devices with observations.
#[derive(Default)]
struct Planned {
    state: PlannedState,
    devices: BTreeSet<DeviceClass>,
}

/// Plans a state without running or writing anything. `devices` finds the devices with observations.
fn planned(
    session: &Session,
    opened: Opened,
    selected: Selected,
    asked: &Asked<'_>,
    devices: impl FnOnce(&Opened, &Packages, &Ready<'_>) -> Result<BTreeSet<DeviceClass>, Error>,
) -> Result<Planned, Error> {
    let overlay = asked.overlay.clone();
    session.look_at(opened, selected, asked.goal, overlay)?.plan_of(session, |opened, packages, ready| {
        let graph = ready.graph.clone();
        let keys = symbolic_keys(&graph, &ready.implementations);
        let mut declarations = Declarations::default();
        let parts = packages.all().flat_map(|package| package.kernels.iter().map(move |kernel| (package, kernel)));
        let parts = parts.map(|(package, kernel)| {
            let mut of = declarations.of(kernel, package.operator(&kernel.operator));
            of.extend(ready.expander.read_later(&package.name, &kernel.name));
            of.extend(pins(&opened.workspace, package, &kernel.name));
            ((package.name.clone(), kernel.name.clone()), of)
        });
        let parts: BTreeMap<KernelName, BTreeMap<String, Digest>> = parts.collect();
        let state = PlannedState { graph, keys, parts, records: records(ready) };
        Ok::<_, Error>(Planned { state, devices: devices(opened, packages, ready)? })
    })
}

/// The pins of a kernel in the lockfile. A step that selects among variants that a search visits reads them, and is not planned yet.
fn pins(workspace: &Workspace, package: &Package, kernel: &str) -> Option<(String, Digest)> {
    let pins: Vec<_> = workspace.lock.pins(&package.name).filter(|(seat, _)| seat.kernel == kernel).collect();
    let text = format!("{pins:?}");
    (!pins.is_empty()).then(|| ("kforge.lock".to_string(), Digest::of(text.as_bytes())))
}

/// The records in the bundles of the repository, by the kernels and targets whose steps asked for them where the bundles were made.
fn records(ready: &Ready<'_>) -> BTreeMap<[String; 3], BTreeSet<(Digest, bool)>> {
    let mut all: BTreeMap<[String; 3], BTreeSet<(Digest, bool)>> = BTreeMap::new();
    for (question, records) in ready.committed.iter() {
        for step in ready.known_as.get(question).into_iter().flat_map(|(_, steps)| steps) {
            let labels = &step.labels;
            let (Some(kernel), Some(target)) = (&labels.kernel, &labels.target) else { continue };
            let seat = [labels.package.clone(), kernel.clone(), target.clone()];
            all.entry(seat).or_default().extend(records.iter().map(|seen| (seen.digest, seen.signer.is_some())));
        }
    }
    all
}

/// The classes of the devices that records in the repository are of.
fn brought(_: &Opened, _: &Packages, ready: &Ready<'_>) -> Result<BTreeSet<DeviceClass>, Error> {
    Ok(ready.committed.values().flatten().map(|seen| seen.record.provenance.device.clone()).collect())
}

/// The classes of the devices that are here or that workers of a server hold, and of those that records in the home and in the repository are of. None if no package has a device target.
pub(crate) fn devices(opened: &Opened, packages: &Packages, ready: &Ready<'_>) -> Result<BTreeSet<DeviceClass>, Error> {
    if packages.all().flat_map(|package| package.targets.values()).all(|target| target.arch == Arch::Cpu) {
        return Ok(BTreeSet::new());
    }
    let index = ready.index(opened);
    let recorded = index.all()?.into_iter().chain(index.beside()).map(|seen| seen.record.provenance.device);
    let here = ready.devices.present.0.iter().chain(&ready.remote_devices).map(|device| device.class.clone());
    Ok(here.chain(recorded).collect())
}
