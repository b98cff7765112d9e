//! Accepts a champion: it becomes the package's own. The source that an agent or a template wrote goes into the repository with its provenance, and the variant
//! is pinned as the only one. Afterwards a build needs neither an agent nor a search. Asks no agent and measures nothing: uses only stored results.

mod file;

use std::path::PathBuf;

use crate::Error;
use crate::session::build::{Packages, Ready};
use crate::session::open::make_target;
use crate::session::rounds::Seat;
use crate::session::standing::{NotVerified, Stands, Vacant};
use crate::session::{Opened, Session};
use kforge_foundation::base::Diagnostic;
use kforge_pipeline::plan::Goal;
use kforge_project::workspace::accepted;
use kforge_project::workspace::changes::{self, Change};
use kforge_project::workspace::lockfile::{self, FILE_NAME, Lockfile, LockfileError, Pin};
use kforge_project::workspace::select::SelectionArgs;
use kforge_project::workspace::{Member, Workspace};
use kforge_types::model::{Arch, Kernel, TypeChoice};

/// Selects the champions to accept, and how to store them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AcceptRequest {
    /// The kernel.
    pub kernel: String,
    /// The packages to search for the kernel; all if none is named.
    pub packages: Vec<String>,
    /// The targets whose champions are accepted; all if none is named.
    pub targets: Vec<String>,
    /// The choices of types whose champions are accepted; all if none is named.
    pub types: Vec<String>,
    /// The file to write the source to.
    pub file: Option<PathBuf>,
    /// The name of a new kernel to create from the champion, for one target.
    pub name: Option<String>,
    /// Overwrite an existing file.
    pub force: bool,
    /// Undo an earlier acceptance.
    pub undo: bool,
    /// Report what would change, and write nothing.
    pub dry_run: bool,
}

/// The changes that were, or would be, made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Files by their path in the workspace, and whether each is new.
    pub files: Vec<(String, bool)>,
    /// Changes of pins in kforge.lock, worded as changes that would happen.
    pub pins: Vec<String>,
    /// The champions that were accepted; empty if pins were released.
    pub champions: Vec<AcceptedChampion>,
    /// Whether earlier acceptances were undone.
    pub freed: bool,
}

/// An accepted champion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedChampion {
    /// The kernel on a target for one choice of types.
    pub seat: Seat,
    /// The shapes of this champion, in words: empty for all shapes, else ` for SHAPE` or ` for r = 2`.
    pub stands_for: String,
    /// The variant's label; empty if the kernel has only one variant.
    pub variant: String,
    /// Whether no device has timed the champion.
    pub provisional: bool,
    /// The file that now holds the champion's source, relative to the package; none if the champion is only pinned.
    pub source: Option<String>,
}

/// Why nothing was accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// A seat has no champion.
    #[error("{} cannot be accepted: {}", .0.seat.name(), .0)]
    Nobody(Vacant),
    /// The champion of a seat is unknown.
    #[error(
        "the champion of {} is not known{}",
        .seat.name(),
        .open.as_ref().map(|id| format!(": `{id}` would have to run")).unwrap_or_default()
    )]
    Unknown {
        /// The seat.
        seat: Seat,
        /// A step that must run first.
        open: Option<String>,
        /// Whether the kernel has rounds.
        has_rounds: bool,
    },
    /// The kernel has no such choice of types.
    #[error("kernel `{kernel}` has no such types: expected {}", .known.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", "))]
    NoTypes {
        /// The kernel.
        kernel: String,
        /// The choices of types that it has.
        known: Vec<String>,
    },
    /// There is no source to write, because the champion is a variant of the package's own source.
    #[error(
        "the champion of `{kernel}` is a variant of the package's source `{source_file}`: there is nothing to write"
    )]
    NothingToWrite {
        /// The kernel.
        kernel: String,
        /// Its source.
        source_file: String,
    },
    /// The champions have different sources.
    #[error("the champions of `{kernel}` have different sources:")]
    DifferentSources {
        /// The kernel.
        kernel: String,
        /// The champions, with the round of each.
        champions: Vec<(AcceptedChampion, u32)>,
    },
    /// A champion is not verified.
    #[error("{} is not verified: {why}", .champion.who())]
    NotVerified {
        /// The champion.
        champion: AcceptedChampion,
        /// The reason.
        why: NotVerified,
    },
    /// No device has timed a champion.
    #[error("{} is provisional: no device has timed it", .champion.who())]
    NotTimed {
        /// The champion.
        champion: AcceptedChampion,
    },
    /// Several packages have such a kernel.
    #[error("several packages have a kernel `{0}`: select one with `-p`")]
    SeveralPackages(String),
    /// No package has such a kernel.
    #[error("`{0}` is not the name of a kernel: expected the name of one kernel")]
    NoKernel(String),
    /// No pin of the kernel was accepted.
    #[error("kernel `{0}` has no accepted champion")]
    NotAccepted(String),
    /// A new kernel can only be for one target.
    #[error("`--name` makes a kernel for one target: expected exactly one `--target`")]
    SeveralTargets,
    /// The declaration cannot be added to the manifest.
    #[error("`{}`: {why}", manifest.display())]
    NotDeclared {
        /// The manifest.
        manifest: PathBuf,
        /// The cause.
        why: accepted::AcceptError,
    },
    /// The edited manifest would have errors.
    #[error("`{}` would have errors; nothing was written", manifest.display())]
    Wrong {
        /// The manifest.
        manifest: PathBuf,
        /// The errors that it would have.
        found: Vec<Diagnostic>,
    },
    /// A file is outside the workspace.
    #[error("`{}` is outside the workspace and is not written", .0.display())]
    OutsideWorkspace(PathBuf),
    /// A file is not in the package's folder.
    #[error("`{}` is not in the package's folder `{}`", path.display(), folder.display())]
    OutsidePackage {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// A file already exists and is not the source of only this kernel.
    #[error("`{source_file}` already exists and is not the source of only `{kernel}`")]
    Exists {
        /// The file, relative to the package.
        source_file: String,
        /// The kernel.
        kernel: String,
    },
    /// A champion has no source: a bug.
    #[error("BUG: a champion of `{0}` has no source")]
    NoSource(String),
    /// The changes cannot be written.
    #[error("cannot write: {0}")]
    NotWritten(std::io::Error),
}

impl Seat {
    /// `p/k/T=f16/cpu`.
    pub fn name(&self) -> String {
        let parts = [self.package.as_str(), &self.kernel, &self.types, &self.target];
        parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/")
    }
}

impl AcceptedChampion {
    fn of(stands: &Stands, source: Option<String>) -> Self {
        AcceptedChampion {
            seat: stands.seat.clone(),
            stands_for: stands.stands_for.clone(),
            variant: stands.build.label.clone(),
            provisional: stands.provisional,
            source,
        }
    }

    /// The label, for messages.
    pub fn label(&self) -> &str {
        if self.variant.is_empty() { "the only variant" } else { &self.variant }
    }

    fn who(&self) -> String {
        format!("{}, champion of {}{},", self.label(), self.seat.name(), self.stands_for)
    }
}

/// The changes to make.
struct Plan {
    /// Files other than the lockfile.
    files: Vec<Change>,
    lock: Lockfile,
    champions: Vec<AcceptedChampion>,
}

/// Accepts champions, or undoes earlier acceptances.
///
/// # Errors
/// [`AcceptError`], or the plan cannot be made.
pub fn accept(session: &Session, request: &AcceptRequest) -> Result<Accepted, Error> {
    let words = SelectionArgs {
        packages: request.packages.clone(),
        kernels: vec![request.kernel.clone()],
        targets: request.targets.clone(),
        ..SelectionArgs::default()
    };
    // The lock keeps out builds and other `accept` commands. kforge.lock and the manifest must be read under the lock, so that no other command changes them
    // before they are overwritten.
    let _lock = match request.dry_run {
        true => vec![],
        false => {
            let mut opened = session.open()?;
            make_target(&opened.target)?;
            session.lock(&mut opened)?
        }
    };
    let looking = session.look(&words, Goal::Build)?;
    if request.undo {
        let plan = undone(&looking.opened.workspace, request)?;
        return write(session, &looking.opened.workspace, plan, request);
    }
    let (plan, workspace) = looking.plan_of(session, |opened, packages, ready| {
        let plan = planned(session, opened, packages, ready, request)?;
        Ok::<_, Error>((plan, opened.workspace.clone()))
    })?;
    write(session, &workspace, plan, request)
}

/// Finds the champions, and the changes that accepting them needs.
fn planned(
    session: &Session,
    opened: &Opened,
    packages: &Packages,
    ready: &Ready<'_>,
    request: &AcceptRequest,
) -> Result<Plan, Error> {
    let (member, kernel) = named(packages, request)?;
    let known = ready
        .with_services(session, opened, |services| kforge_engine::known(ready.graph.clone(), &ready.options, services));
    let standing = ready.standing(&known);
    let of_types = |types: &str| request.types.is_empty() || request.types.iter().any(|t| t == types);
    let mut all: Vec<Stands> = vec![];
    for seat in seats(member, kernel, request).into_iter().filter(|seat| of_types(&seat.types)) {
        let before = all.len();
        for found in &standing {
            match found {
                Ok(stands) if stands.seat == seat => all.push(stands.clone()),
                Err(vacant) if vacant.seat == seat => return Err(AcceptError::Nobody(vacant.clone()).into()),
                _ => {}
            }
        }
        if all.len() == before {
            let (open, has_rounds) = (known.open.first().cloned(), kernel.rounds.is_some());
            return Err(AcceptError::Unknown { seat, open, has_rounds }.into());
        }
    }
    if all.is_empty() {
        let known = member.package.operator(&kernel.operator).map(|o| o.choices()).unwrap_or_default();
        let known = known.iter().map(|c| c.label.clone()).collect();
        return Err(AcceptError::NoTypes { kernel: kernel.name.clone(), known }.into());
    }
    for stands in &all {
        sound(member, stands)?;
    }
    let mut lock = opened.workspace.lock.clone();
    let mut champions = vec![];
    let written = all.iter().filter(|s| s.build.written.is_some()).count();
    let as_file = request.file.is_some() || request.name.is_some();
    let made = kernel.generate.is_some();
    if written == 0 && !(as_file && made) {
        if as_file {
            let (kernel, source_file) = (kernel.name.clone(), kernel.source.clone());
            return Err(AcceptError::NothingToWrite { kernel, source_file }.into());
        }
        for stands in &all {
            champions.push(AcceptedChampion::of(stands, None));
            lock.champions
                .insert(pinned(&stands.seat, &stands.class), Pin::Accepted(stands.build.variant.label.clone()));
        }
        return Ok(Plan { files: vec![], lock, champions });
    }
    let Some(first) = all.first().filter(|first| all.iter().all(|s| s.build.source == first.build.source)) else {
        let champions = all.iter().map(|s| (AcceptedChampion::of(s, None), s.build.round)).collect();
        return Err(AcceptError::DifferentSources { kernel: kernel.name.clone(), champions }.into());
    };
    let files = file::files(session, &opened.workspace, member, (kernel, ready), &all, request)?;
    let source = files.source.clone();
    let of = request.name.as_ref().unwrap_or(&kernel.name);
    if request.name.is_none() {
        // Pins that name variants of rounds are no longer valid.
        lock.champions.retain(|seat, _| seat.package != member.package.name || seat.kernel != kernel.name);
    }
    let accepted = first.build.written.as_ref().map_or(kernel, |w| &w.kernel);
    for stands in &all {
        champions.push(AcceptedChampion::of(stands, Some(source.clone())));
        let seat = Seat { kernel: of.clone(), ..stands.seat.clone() };
        lock.champions.insert(pinned(&seat, &stands.class), Pin::Accepted(stands.build.variant.label.clone()));
    }
    if request.name.is_none() {
        others(member, kernel, accepted, &all, &mut lock);
    }
    Ok(Plan { files: files.changes, lock, champions })
}

/// Pins the accepted variants of the first selected target for the unselected targets too, because they now use the same source.
fn others(member: &Member, kernel: &Kernel, accepted: &Kernel, all: &[Stands], lock: &mut Lockfile) {
    let Some(first) = all.first().map(|s| s.seat.target.clone()) else { return };
    let choices = member.package.operator(&kernel.operator).map(|o| o.choices()).unwrap_or_default();
    for target in kernel.targets.iter().filter(|name| !all.iter().any(|s| s.seat.target == **name)) {
        for stands in all.iter().filter(|s| s.seat.target == first) {
            let choice = choices.iter().find(|c| c.label == stands.seat.types);
            let there = choice.zip(member.package.targets.get(target)).is_some_and(|(choice, target)| {
                accepted.variant(target, choice, &stands.build.variant.values).is_ok_and(|v| v.is_some())
            });
            if there {
                let seat = Seat { target: target.clone(), ..stands.seat.clone() };
                let pin = Pin::Accepted(stands.build.variant.label.clone());
                lock.champions.insert(pinned(&seat, &stands.class), pin);
            }
        }
    }
}

/// Refuses a champion that is not verified, or not timed on a target that is timed.
fn sound(member: &Member, stands: &Stands) -> Result<(), AcceptError> {
    let champion = || AcceptedChampion::of(stands, None);
    if let Err(why) = &stands.verified {
        return Err(AcceptError::NotVerified { champion: champion(), why: why.clone() });
    }
    let arch = member.package.targets.get(&stands.seat.target).map(|t| &t.arch);
    match stands.provisional && arch != Some(&Arch::Cpu) {
        true => Err(AcceptError::NotTimed { champion: champion() }),
        false => Ok(()),
    }
}

/// The kernel that the request names.
fn named<'p>(packages: &'p Packages, request: &AcceptRequest) -> Result<(&'p Member, &'p Kernel), AcceptError> {
    let members = packages.all().filter_map(|p| packages.member(&p.name));
    let mut found = members.filter_map(|m| Some((m, m.package.kernel(&request.kernel)?)));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(AcceptError::SeveralPackages(request.kernel.clone())),
        (None, _) => Err(AcceptError::NoKernel(request.kernel.clone())),
    }
}

/// The seats that the request selects.
fn seats(member: &Member, kernel: &Kernel, request: &AcceptRequest) -> Vec<Seat> {
    let choices = member.package.operator(&kernel.operator).map(|o| o.choices()).unwrap_or_default();
    let targets = kernel.targets.iter().filter(|t| request.targets.is_empty() || request.targets.contains(t));
    let both = targets.flat_map(|target| choices.iter().map(move |choice| (target, choice)));
    let of = |(target, choice): (&String, &TypeChoice)| Seat {
        package: member.package.name.clone(),
        kernel: kernel.name.clone(),
        types: choice.label.clone(),
        target: target.clone(),
    };
    both.map(of).collect()
}

/// The lockfile without the accepted pins of a kernel.
fn undone(workspace: &Workspace, request: &AcceptRequest) -> Result<Plan, AcceptError> {
    let mut lock = workspace.lock.clone();
    let takes = |list: &[String], name: &String| list.is_empty() || list.contains(name);
    let frees = |seat: &lockfile::Seat, pin: &Pin| {
        matches!(pin, Pin::Accepted(_))
            && seat.kernel == request.kernel
            && takes(&request.packages, &seat.package)
            && takes(&request.targets, &seat.target)
            && takes(&request.types, &seat.types)
    };
    lock.champions.retain(|seat, pin| !frees(seat, pin));
    match lock == workspace.lock {
        true => Err(AcceptError::NotAccepted(request.kernel.clone())),
        false => Ok(Plan { files: vec![], lock, champions: vec![] }),
    }
}

/// Writes all changes, unless this is a dry run.
fn write(session: &Session, workspace: &Workspace, plan: Plan, request: &AcceptRequest) -> Result<Accepted, Error> {
    let Plan { mut files, lock, champions } = plan;
    let pins = workspace.lock.changes(&lock);
    if session.options.locked && !pins.is_empty() {
        return Err(LockfileError::Locked(pins).into());
    }
    files.retain(Change::changes);
    let named = files.iter().map(|file| (file.path.clone(), file.before.is_none())).collect();
    let accepted = Accepted { files: named, pins, champions, freed: request.undo };
    if request.dry_run {
        return Ok(accepted);
    }
    if !accepted.pins.is_empty() {
        let change = Change::of(&workspace.root, FILE_NAME, lock.to_text());
        files.push(change.map_err(Error::read(FILE_NAME))?);
    }
    changes::write(&workspace.root, &session.pending(&workspace.root), &files).map_err(AcceptError::NotWritten)?;
    Ok(accepted)
}

fn pinned(seat: &Seat, class: &str) -> lockfile::Seat {
    let Seat { package, kernel, types, target } = seat.clone();
    lockfile::Seat { package, kernel, types, target, class: class.into() }
}
