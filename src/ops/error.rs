//! Why an operation ended without a result. What operations share is here; what one operation alone refuses is an enum of its own, beside it.

use crate::session::devices::DevicesError;
use crate::session::tools::NoCuda;
use std::io;
use std::path::PathBuf;

use crate::accept::AcceptError;
use crate::build::report::ReportError;
use crate::candidates::CandidatesError;
use crate::compare::CompareError;
use crate::edit::EditError;
use crate::event::Blocked;
use crate::evidence::EvidenceError;
use crate::explain::NoStep;
use crate::export::NoTrajectories;
use crate::new::NewError;
use crate::optimize::OptimizeError;
use crate::report::NotShown;
use crate::run::RunError;
use crate::session::tools::MissingTools;
use crate::tree::NoSuchKind;
use crate::update::Offline;
use kforge_engine::GraphError;
use kforge_engine::lock::LockError;
use kforge_foundation::base::{Diagnostic, Severity};
use kforge_pipeline::report::timings::NotRendered;
use kforge_project::toolchain;
use kforge_project::workspace::lockfile::LockfileError;

/// Why an operation ended without a result. Its text is one message, without what may help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The manifests, or settings, have errors: all that was found of them, warnings included, in order.
    #[error("{}", messages(.0))]
    Wrong(Vec<Diagnostic>),
    /// There is no manifest at hand.
    #[error("{}", .0.message)]
    NoManifest(Box<Diagnostic>),
    /// The selection names something that is not there.
    #[error("{}", messages(.0))]
    Selection(Vec<Diagnostic>),
    /// The selection leaves nothing to do.
    #[error(
        "nothing to do: {}",
        if *.kernels { "the selected kernels are not for the selected targets" } else {
            "the selected packages declare no kernel; add a `[kernel.NAME]` table"
        }
    )]
    NothingToDo {
        /// Whether the selected packages declare a kernel.
        kernels: bool,
    },
    /// Another process holds what is needed, and [`crate::Options::no_wait`] is set.
    #[error("{}", match .0 {
        Blocked::Workspace => "another kforge works in this workspace, and --no-wait was given",
        Blocked::Cache => "the shared cache is being collected, and --no-wait was given",
        Blocked::Toolchain => "another kforge installs the same toolchain, and --no-wait was given",
    })]
    Busy(Blocked),
    /// [`crate::Session::interrupted`] was set.
    #[error("interrupted")]
    Interrupted,
    /// A lock cannot be taken.
    #[error(transparent)]
    Lock(LockError),
    /// The home cannot be used.
    #[error("cannot use `{}`: {source}", path.display())]
    Home {
        /// Its folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What an interrupted command began to write cannot be finished.
    #[error("cannot complete what an interrupted command began in `{}`: {source}", root.display())]
    Pending {
        /// The workspace's root.
        root: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {what}`{}`: {source}", path.display())]
    Read {
        /// What it is, before its path: `the overlay `; empty where the path says it.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {what}`{}`: {source}", path.display())]
    Write {
        /// What it is, before its path; empty where the path says it.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be removed.
    #[error("cannot remove `{}`: {source}", path.display())]
    Remove {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A store of kforge's own cannot be read or written; the error names the place.
    #[error(transparent)]
    Store(#[from] io::Error),
    /// kforge.lock cannot be read or written, or may not change.
    #[error(transparent)]
    Lockfile(#[from] LockfileError),
    /// kforge.lock does not name what is needed, and may not change.
    #[error("kforge.lock must change: it {}, and --locked was given", .0.missing())]
    LockfileLacks(Locked),
    /// kforge.lock does not name a library, and the network may not be used.
    #[error("kforge.lock does not name `{requirement}`: run `kforge update` with a network")]
    Unresolved {
        /// What the library requires.
        requirement: String,
    },
    /// A library cannot be resolved or installed.
    #[error("{why}")]
    Library {
        /// What it requires.
        requirement: String,
        /// What pip, or the installation, said.
        why: toolchain::Error,
    },
    /// pip resolved no wheel for a library.
    #[error("pip resolved nothing for `{requirement}`")]
    NothingResolved {
        /// What the library requires.
        requirement: String,
    },
    /// A toolchain cannot be resolved.
    #[error(transparent)]
    Toolchain(toolchain::Error),
    /// A package has no CUDA.
    #[error(transparent)]
    Cuda(#[from] NoCuda),
    /// A toolchain cannot be installed.
    #[error(transparent)]
    Tools(#[from] MissingTools),
    /// A toolchain cannot be resolved; a diagnostic said why.
    #[error("a toolchain cannot be resolved")]
    Refused,
    /// What is remembered of candidates cannot be read.
    #[error("cannot read earlier candidates: {0}")]
    Remembered(io::Error),
    /// The recorded rounds of a kernel cannot be looked up.
    #[error("kernel `{kernel}`: {why}")]
    Rounds {
        /// The kernel.
        kernel: String,
        /// Why.
        why: String,
    },
    /// What the devices of this machine are cannot be written for workers, or a scenario of tests cannot be read.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// A number of jobs that runs nothing.
    #[error("`-j 0` runs nothing: expected a positive number, or -N for all cores except N")]
    NoJobs,
    /// The program that is to do steps does not do them, or is of another kforge.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// There is no report to show.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// What a report, or its scores, was asked for is not in it.
    #[error(transparent)]
    NotShown(#[from] NotShown),
    /// No package is made.
    #[error(transparent)]
    New(#[from] NewError),
    /// A step cannot be run by itself.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There are no rounds.
    #[error(transparent)]
    Optimize(#[from] OptimizeError),
    /// The plan has no step of a kind.
    #[error(transparent)]
    NoSuchKind(#[from] NoSuchKind),
    /// To resolve anew takes a network.
    #[error(transparent)]
    Offline(#[from] Offline),
    /// A champion cannot be accepted.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// No candidate is shown.
    #[error(transparent)]
    Candidates(#[from] CandidatesError),
    /// There is nothing to export.
    #[error(transparent)]
    NoTrajectories(#[from] NoTrajectories),
    /// Two states cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// Evidence cannot be exported or imported.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A manifest cannot be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// No step is meant, or several.
    #[error(transparent)]
    Step(#[from] NoStep),
    /// A step of the plan cannot be explained: a bug.
    #[error("BUG: `{0}` is in the plan and cannot be explained")]
    Unexplained(String),
    /// The page of timings cannot be made.
    #[error("{why}")]
    Timings {
        /// What happened.
        why: NotRendered,
    },
    /// A value cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A plan that is no graph: a bug.
    #[error("BUG: {0}")]
    Plan(#[from] GraphError),
}

/// What kforge.lock does not name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locked {
    /// The wheels of a CUDA release.
    Cuda(String),
    /// A requirement.
    Requirement(String),
}

impl Locked {
    fn missing(&self) -> String {
        match self {
            Locked::Cuda(release) => format!("names no wheels for CUDA {release}"),
            Locked::Requirement(requirement) => format!("does not name `{requirement}`"),
        }
    }
}

/// Why a program cannot do the steps of this one.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It cannot be started.
    #[error("cannot start the worker program `{}`: {source}", program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It does not answer as a kforge does.
    #[error("the worker program `{}` is not a kforge that this program can use: {end}", program.display())]
    NoAnswer {
        /// The program.
        program: PathBuf,
        /// How it ended.
        end: String,
    },
    /// Its code does steps differently: results of the two may not be mixed.
    #[error(
        "the worker program `{}` is of another kforge ({theirs}) than this program ({ours}): build both of the same version",
        program.display()
    )]
    Differs {
        /// The program.
        program: PathBuf,
        /// What it says of its code.
        theirs: String,
        /// What this program says of its own.
        ours: String,
    },
}

impl Error {
    /// For a file that cannot be read.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Read { what: "", path, source }
    }

    /// For a file that cannot be written.
    pub(crate) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Write { what: "", path, source }
    }

    /// For a file that cannot be removed.
    pub(crate) fn remove(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Remove { path, source }
    }

    /// For a lock that was not taken.
    pub(crate) fn lock(of: Blocked) -> impl FnOnce(LockError) -> Error {
        move |error| match error {
            LockError::Busy(_) => Error::Busy(of),
            LockError::Interrupted(_) => Error::Interrupted,
            other @ LockError::Io { .. } => Error::Lock(other),
        }
    }
}

/// The errors among diagnostics, in one line.
fn messages(found: &[Diagnostic]) -> String {
    let errors = found.iter().filter(|d| d.severity == Severity::Error);
    errors.map(|d| d.message.as_str()).collect::<Vec<_>>().join("; ")
}
