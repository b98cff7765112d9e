//! Events that an operation reports while it runs, and their observer. Contains no text for people except that of warnings.

use crate::session::tools::NoCuda;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::evidence::Imported;
use crate::optimize::event::{AskWatch, AttemptRequest, RoundEvent};
use crate::session::build::Packages;
use crate::session::rounds::Seat;
use kforge_engine::Graph;
use kforge_engine::evidence::{HERE, HOME};
use kforge_engine::gauge::Gauge;
use kforge_engine::machine_key::NoKey;
use kforge_foundation::base::render::{Look, render};
use kforge_foundation::base::{Diagnostic, Digest, count};
use kforge_pipeline::release::affected::Affected;
use kforge_pipeline::release::trust::Distrusted;
use kforge_types::record::event::Event as StepEvent;

/// Something that an operation reports.
#[derive(Debug)]
pub enum Event<'a> {
    /// A diagnostic about a manifest, a setting or the machine. Diagnostics that end an operation are in its [`crate::Error`] instead.
    Diagnostic(&'a Diagnostic),
    /// A problem that does not end the operation.
    Warning(&'a Warning),
    /// The operation waits for another process.
    Blocked(Blocked),
    /// pip resolves a CUDA release or a requirement that kforge.lock lacks.
    Resolving(Resolving<'a>),
    /// Wheels are downloaded, named by their projects or by a requirement.
    Downloading(&'a [String]),
    /// So much of the wheels has been downloaded; some times a second.
    Downloaded {
        /// The bytes that are here.
        bytes: u64,
        /// The bytes of all wheels.
        total: u64,
    },
    /// The wheel of this project is unpacked.
    Installing(&'a str),
    /// kforge.lock was written.
    LockfileWritten,
    /// A line that describes a change of kforge.lock.
    LockfileChange {
        /// The change, for people.
        change: &'a str,
        /// Whether the change is only planned and not written.
        planned: bool,
    },
    /// A file that a new package would create already exists and is kept.
    FileKept(&'a Path),
    /// What a change touches was found.
    Affected(&'a Affected),
    /// A state of a comparison, or a run of [`crate::reproduce`], is built.
    Building(&'a str),
    /// The champions of two states are timed in this many pairs.
    Comparing(usize),
    /// The machine code of variants is disassembled, at most that of so many.
    Disassembling(usize),
    /// An event of the rounds.
    Round(&'a RoundEvent<'a>),
    /// A bundle of evidence was imported into the home.
    Imported(&'a Imported),
    /// An artifact is sent to a folder or a registry.
    Publishing(&'a str),
    /// An artifact is fetched from a folder or a registry.
    Fetching(&'a str),
}

/// The process for which an operation waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// Another kforge is working in this workspace.
    Workspace,
    /// The shared cache is being collected.
    Cache,
    /// Another kforge is installing the same toolchain.
    Toolchain,
    /// Another kforge publishes to, or installs into, the same folder.
    Folder,
}

/// What pip resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolving<'a> {
    /// The wheels of a CUDA release.
    Cuda(&'a str),
    /// The wheels of a release of Triton.
    Triton(&'a str),
    /// The wheels of a release of PyTorch.
    Torch(&'a str),
    /// A requirement of a header library.
    Requirement(&'a str),
}

/// A problem that does not end an operation.
#[derive(Debug, thiserror::Error)]
pub enum Warning {
    /// A file that an interrupted command would have written has changed since.
    #[error("`{0}` changed after an interrupted command planned to write it: the rest of that command is not done")]
    NotFinished(String),
    /// There is no CUDA for a package.
    #[error("cannot compile machine code for package `{package}`: {why}")]
    NoCuda {
        /// The package.
        package: String,
        /// The reason.
        why: NoCuda,
    },
    /// There is no CUDA for a package whose kernels for `cpu` include cub.
    #[error("cannot emulate cub for package `{package}`, which needs its headers: {why}")]
    NoCub {
        /// The package.
        package: String,
        /// The reason.
        why: NoCuda,
    },
    /// A bundle of evidence in the repository is refused.
    #[error("ignoring the bundle of evidence `{name}`: {why}; restore it from version control, or remove it")]
    Bundle {
        /// Its path in the workspace.
        name: String,
        /// The reason.
        why: String,
    },
    /// The remote cache gave an error.
    #[error("the remote cache `{url}` failed: {why}; what it does not give is computed here")]
    Remote {
        /// Its address.
        url: String,
        /// The error.
        why: String,
    },
    /// Results were not stored in the remote cache.
    #[error("{} not stored in the remote cache", if *.0 == 1 { "1 result is".to_string() } else { format!("{} results are", .0) })]
    NotStoredRemotely(usize),
    /// A remote cache is named, and this program cannot use one.
    #[error("the remote cache `{0}` is not used: this kforge was built without its feature `remote`")]
    NoRemoteFeature(String),
    /// This machine has no key of its own.
    #[error(
        "this machine has no key of its own, so nothing that it observes or computes stands `here`: {0}; `KFORGE_MACHINE_KEY` names another file"
    )]
    NoMachineKey(NoKey),
    /// Evidence that the build took is only claimed.
    #[error(
        "{} claimed by {}: nobody whom this build trusts signed {}; `--trust FILE` names the keys to trust",
        if *.count == 1 { "1 observation is".to_string() } else { format!("{count} observations are") },
        if origin == HOME { "the home, which another machine or an earlier kforge wrote".to_string() } else { format!("`{origin}`") },
        if *.count == 1 { "it" } else { "them" }
    )]
    Claimed {
        /// The bundle, or [`HOME`].
        origin: String,
        /// The number of observations.
        count: u64,
    },
    /// What is stored was not made with this machine's key, and the build requires that.
    #[error(
        "ignoring {}: this machine's key did not authenticate {}, as after copying a home, so {} only claimed here",
        stored(*.results, *.observations),
        if results + observations == 1 { "it" } else { "them" },
        if results + observations == 1 { "it is" } else { "they are" }
    )]
    NotOwn {
        /// The number of results of steps.
        results: u64,
        /// The number of observations of a device.
        observations: u64,
    },
    /// A record claims to be from the future.
    #[error(
        "ignoring record {} {}: it says that it was measured at {measured_at}, which is more than five minutes ahead; check this machine's clock",
        record.short(),
        if [HERE, HOME].contains(&origin.as_str()) { "in the home".to_string() } else { format!("from `{origin}`") }
    )]
    Ahead {
        /// Its digest.
        record: Digest,
        /// The bundle that brought it, or where it lies.
        origin: String,
        /// The time in the record.
        measured_at: String,
    },
    /// The signature of a bundle does not count.
    #[error("{name} is only claimed: {why}")]
    Distrusted {
        /// The bundle.
        name: String,
        /// The reason.
        why: Distrusted,
    },
    /// The repository's trusted keys differ from those in `HEAD`.
    #[error("this build trusts the keys in `{}`, which differs from `HEAD`: `--base REV` trusts those of a revision", .0.display())]
    TrustDiffers(PathBuf),
    /// A recorded answer cannot be read.
    #[error("ignoring a recorded answer: {0}")]
    Answer(String),
    /// The remembered candidates cannot be read.
    #[error("ignoring earlier candidates: {0}")]
    Candidates(String),
    /// The results of candidates cannot be stored.
    #[error("cannot store the results of candidates: {0}")]
    NotRemembered(std::io::Error),
    /// Steps of the plan have no evidence, and the exported bundle does not contain any either.
    #[error(
        "{} of the plan {} no evidence, which this bundle does not contain either:",
        count(steps.len() as u64, "step"),
        if steps.len() == 1 { "has" } else { "have" }
    )]
    NotBrought {
        /// Their ids.
        steps: Vec<String>,
    },
    /// A text that agents are shown in full reveals a holdout shape.
    #[error("{}: {what} reveals a holdout shape, and prompts show it to agents", seat.name())]
    HoldoutRevealed {
        /// The seat of the rounds.
        seat: Seat,
        /// The text: `its source`.
        what: &'static str,
    },
    /// The last build was interrupted and has no report.
    #[error("the last build was interrupted: these are the results of the build before it")]
    LastInterrupted,
    /// What keeps a history from being whole.
    #[error("{text}")]
    History {
        /// What is missing, and why.
        text: String,
    },
    /// The results that a report holds cannot be compared with the present state of the workspace.
    #[error("cannot tell what has changed since the last build: {why}")]
    NotCompared {
        /// What keeps the plan from being made.
        why: String,
    },
    /// A problem with the journal or a store that affects no result.
    #[error("{text}")]
    Store {
        /// What happened, for people.
        text: String,
    },
    /// The file that records an interrupted build, or the request of a build, cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    NotNoted {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// `2 stored results and 1 stored observation`.
fn stored(results: u64, observations: u64) -> String {
    let parts = [(results, "stored result"), (observations, "stored observation")].into_iter().filter(|(n, _)| *n > 0);
    parts.map(|(n, what)| count(n, what)).collect::<Vec<_>>().join(" and ")
}

/// Observes operations. Operations call it from several threads.
pub trait Observer: Send + Sync {
    /// Called for each event.
    fn event(&self, event: &Event<'_>);

    /// Called when a build of these steps begins; results may add more steps. Returns what watches the steps. The default watches nothing.
    fn watch<'b>(&'b self, build: Steps<'b>, graph: &Graph) -> Box<dyn Watch + 'b> {
        let _ = (build, graph);
        Box::new(Unwatched)
    }

    /// Called when a build in another process begins. Returns what watches its steps. The default watches nothing.
    fn watch_elsewhere(&self) -> Box<dyn Watch + '_> {
        Box::new(Unwatched)
    }

    /// Called when these attempts at rounds are requested. Returns what watches them. The default watches nothing.
    fn asking<'b>(&'b self, attempts: &'b [AttemptRequest]) -> Box<dyn AskWatch + 'b> {
        let _ = attempts;
        Box::new(crate::optimize::event::Unwatched)
    }
}

/// A build that is beginning.
#[derive(Clone, Copy)]
pub struct Steps<'b> {
    /// The packages that are built.
    pub packages: &'b Packages,
    /// The purpose of this build.
    pub purpose: Purpose,
    /// The compiler's output in a compile step, from this run or the last one, by the step's id.
    pub log: &'b dyn Fn(&str) -> String,
    /// How far it is.
    pub gauge: &'b Gauge,
}

/// The purpose of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A build that the user requested.
    Build,
    /// A build within rounds: more may be tried after it.
    Round,
    /// The build of one state of a comparison.
    Side,
    /// The build of what one step needs.
    Step,
}

/// Watches the steps of one build.
pub trait Watch {
    /// A step began or ended, or a store reports a problem. Positions in texts are files and lines.
    fn event(&mut self, event: &StepEvent);

    /// All steps have ended.
    fn ended(&mut self) {}
}

struct Unwatched;

impl Watch for Unwatched {
    fn event(&mut self, _: &StepEvent) {}
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: &Event<'_>) {}
}

/// A reported warning or diagnostic, stored so that a later build with nothing to do can repeat it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordedMessage {
    /// The text of a warning.
    Warning(String),
    /// A diagnostic, rendered with styles.
    Diagnostic(String),
}

/// Passes events to an observer, and records the warnings and diagnostics among them.
pub struct Reporter {
    observer: Arc<dyn Observer>,
    said: Mutex<Vec<RecordedMessage>>,
}

impl Reporter {
    /// A reporter for an observer.
    pub fn new(observer: Arc<dyn Observer>) -> Self {
        Reporter { observer, said: Mutex::default() }
    }

    /// Reports an event.
    pub fn event(&self, event: &Event<'_>) {
        let said = match event {
            Event::Warning(warning) => Some(RecordedMessage::Warning(warning.to_string())),
            Event::Diagnostic(diagnostic) => {
                Some(RecordedMessage::Diagnostic(render(diagnostic, Look { colour: true, ..Look::default() })))
            }
            _ => None,
        };
        self.said.lock().unwrap_or_else(PoisonError::into_inner).extend(said);
        self.observer.event(event);
    }

    /// Reports a warning, unless it was reported before: an operation that plans several times finds the same again.
    pub fn warn(&self, warning: Warning) {
        if !self.said().contains(&RecordedMessage::Warning(warning.to_string())) {
            self.event(&Event::Warning(&warning));
        }
    }

    /// All warnings and diagnostics so far.
    pub fn said(&self) -> Vec<RecordedMessage> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The observer.
    pub fn observer(&self) -> &Arc<dyn Observer> {
        &self.observer
    }
}
