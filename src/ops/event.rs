//! What an operation reports while it runs, and who listens. Knows no words for people beyond those of warnings.

use crate::session::tools::NoCuda;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::evidence::Imported;
use crate::optimize::event::{AskWatch, AttemptRequest, RoundEvent};
use crate::session::build::Packages;
use crate::session::rounds::Seat;
use kforge_engine::Graph;
use kforge_foundation::base::Diagnostic;
use kforge_foundation::base::render::{Look, render};
use kforge_types::record::event::Event as StepEvent;

/// Something that an operation reports.
#[derive(Debug)]
pub enum Event<'a> {
    /// A diagnostic about a manifest, a setting or the machine. Those that end an operation come with its [`crate::Error`] instead.
    Diagnostic(&'a Diagnostic),
    /// Something that does not end the operation.
    Warning(&'a Warning),
    /// The operation waits for another process.
    Blocked(Blocked),
    /// Pip resolves what kforge.lock does not name yet: a CUDA release or a requirement.
    Resolving(Resolving<'a>),
    /// Wheels are downloaded: projects or a requirement.
    Downloading(&'a [String]),
    /// A wheel of this project is unpacked.
    Installing(&'a str),
    /// kforge.lock was written.
    LockfileWritten,
    /// A line of what changes in kforge.lock.
    LockfileChange {
        /// What would change, for people.
        change: &'a str,
        /// Whether it stays as it is, because only a plan was asked for.
        planned: bool,
    },
    /// A file that a new package would create already exists and is kept.
    FileKept(&'a Path),
    /// A state of a comparison is built.
    Building(&'a str),
    /// So many champions of two states are timed in pairs.
    Comparing(usize),
    /// Something that rounds report.
    Round(&'a RoundEvent<'a>),
    /// A bundle of evidence was taken into the home.
    Imported(&'a Imported),
}

/// What an operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// Another kforge that works in this workspace.
    Workspace,
    /// The shared cache is being collected.
    Cache,
    /// Another kforge that installs the same toolchain.
    Toolchain,
}

/// What is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolving<'a> {
    /// The wheels of a CUDA release.
    Cuda(&'a str),
    /// A requirement of a header library.
    Requirement(&'a str),
}

/// Something wrong that does not end an operation.
#[derive(Debug, thiserror::Error)]
pub enum Warning {
    /// A file that an interrupted command would have written was changed since.
    #[error("`{0}` changed after an interrupted command planned to write it: the rest of that command is not done")]
    NotFinished(String),
    /// There is no CUDA for a package.
    #[error("cannot compile machine code for package `{package}`: {why}")]
    NoCuda {
        /// The package.
        package: String,
        /// Why not.
        why: NoCuda,
    },
    /// A bundle of evidence in the repository is refused.
    #[error("ignoring the bundle of evidence `{name}`: {why}; restore it from version control, or remove it")]
    Bundle {
        /// Its path in the workspace.
        name: String,
        /// Why.
        why: String,
    },
    /// A recorded answer cannot be read.
    #[error("ignoring a recorded answer: {0}")]
    Answer(String),
    /// Remembered candidates cannot be read.
    #[error("ignoring earlier candidates: {0}")]
    Candidates(String),
    /// What became of candidates cannot be kept.
    #[error("cannot store the results of candidates: {0}")]
    NotRemembered(std::io::Error),
    /// Steps of a plan that have no evidence, which an exported bundle does not bring either.
    #[error(
        "{} of the plan {} no evidence, which this bundle does not contain either:",
        kforge_foundation::base::count(steps.len() as u64, "step"),
        if steps.len() == 1 { "has" } else { "have" }
    )]
    NotBrought {
        /// Their ids.
        steps: Vec<String>,
    },
    /// What agents are shown whole tells of a shape that is held back.
    #[error("{}: {what} reveals a holdout shape, and prompts show it to agents", seat.name())]
    HeldBackTold {
        /// Whose rounds these are.
        seat: Seat,
        /// What is shown: `its source`.
        what: &'static str,
    },
    /// The last build has no report.
    #[error("the last build was interrupted: these are the results of the build before it")]
    LastInterrupted,
    /// The journal or a store has trouble that harms no result.
    #[error("{text}")]
    Store {
        /// What happened, for people.
        text: String,
    },
    /// A file that would say that a build was interrupted cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    NotNoted {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Listens to operations. Operations call it from several threads.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn event(&self, event: &Event<'_>);

    /// A build of these steps begins, to which results may add more: what watches them. The default watches nothing.
    fn watch<'b>(&'b self, build: Steps<'b>, graph: &Graph) -> Box<dyn Watch + 'b> {
        let _ = (build, graph);
        Box::new(Unwatched)
    }

    /// These attempts at rounds are asked for: what watches them. The default watches nothing.
    fn asking<'b>(&'b self, attempts: &'b [AttemptRequest]) -> Box<dyn AskWatch + 'b> {
        let _ = attempts;
        Box::new(crate::optimize::event::Unwatched)
    }
}

/// A build that begins.
#[derive(Clone, Copy)]
pub struct Steps<'b> {
    /// The packages that are built.
    pub packages: &'b Packages,
    /// What this build is for.
    pub purpose: Purpose,
    /// What the compiler said in a compile step, now or when it last ran, by the step's id.
    pub log: &'b dyn Fn(&str) -> String,
}

/// What a build is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A build that was asked for.
    Build,
    /// One of several: more is tried after it.
    Round,
    /// One state of a comparison.
    Side,
    /// What one step needs.
    Step,
}

/// Watches the steps of one build.
pub trait Watch {
    /// A step began or ended, or a store complains. Places in texts are files and lines.
    fn event(&mut self, event: &StepEvent);

    /// All steps have ended.
    fn ended(&mut self) {}
}

struct Unwatched;

impl Watch for Unwatched {
    fn event(&mut self, _: &StepEvent) {}
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: &Event<'_>) {}
}

/// A warning or diagnostic as it was reported, kept for a build that has nothing to do and says the same again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// The text of a warning.
    Warning(String),
    /// A diagnostic, rendered with styles.
    Diagnostic(String),
}

/// Hands events to an observer, and keeps the warnings and diagnostics among them.
pub struct Reporter {
    observer: Arc<dyn Observer>,
    said: Mutex<Vec<Said>>,
}

impl Reporter {
    /// For an observer.
    pub fn new(observer: Arc<dyn Observer>) -> Self {
        Reporter { observer, said: Mutex::default() }
    }

    /// Reports an event.
    pub fn event(&self, event: &Event<'_>) {
        let said = match event {
            Event::Warning(warning) => Some(Said::Warning(warning.to_string())),
            Event::Diagnostic(diagnostic) => {
                Some(Said::Diagnostic(render(diagnostic, Look { colour: true, ..Look::default() })))
            }
            _ => None,
        };
        self.said.lock().unwrap_or_else(PoisonError::into_inner).extend(said);
        self.observer.event(event);
    }

    /// Reports a warning.
    pub fn warn(&self, warning: Warning) {
        self.event(&Event::Warning(&warning));
    }

    /// All warnings and diagnostics so far.
    pub fn said(&self) -> Vec<Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Who listens.
    pub fn observer(&self) -> &Arc<dyn Observer> {
        &self.observer
    }
}
