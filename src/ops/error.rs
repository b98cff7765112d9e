//! Why an operation ended without a result. This module holds the errors that operations share. An error that only one operation returns is in an enum beside
//! that operation.

use crate::session::devices::DevicesError;
use crate::session::tools::{NoCuda, NoTorch, NoTriton};
use std::io;
use std::path::PathBuf;

use crate::accept::AcceptError;
use crate::bindings::BindingsError;
use crate::build::report::ReportError;
use crate::candidates::CandidatesError;
use crate::compare::CompareError;
use crate::diff::DiffError;
use crate::edit::EditError;
use crate::event::Blocked;
use crate::evidence::EvidenceError;
use crate::evidence::sign::SignError;
use crate::explain::NoStep;
use crate::export::NoTrajectories;
use crate::export::t4::NoResults;
use crate::export::traces::TracesError;
use crate::history::HistoryError;
use crate::import::ImportError;
use crate::import::tuner::TunerError;
use crate::install::InstallError;
use crate::new::NewError;
use crate::optimize::OptimizeError;
use crate::package::PackageError;
use crate::publish::PublishError;
use crate::published::NoNetwork;
use crate::report::NotShown;
use crate::reproduce::ReproduceError;
use crate::run::RunError;
use crate::session::tools::MissingTools;
use crate::session::trust::TrustError;
use crate::tree::NoSuchKind;
use crate::update::Offline;
use crate::verify_artifact::VerifyArtifactError;
use kforge_engine::GraphError;
use kforge_engine::lock::LockError;
use kforge_foundation::base::{Diagnostic, Severity};
use kforge_pipeline::release::registry::RegistryError;
use kforge_pipeline::report::exports::ExportError;
use kforge_pipeline::report::timings::NotRendered;
use kforge_project::toolchain;
use kforge_project::workspace::lockfile::LockfileError;

/// Why an operation ended without a result. Its text is one message, without hints.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The manifests or settings have errors: all their diagnostics, including warnings, in order.
    #[error("{}", messages(.0))]
    Wrong(Vec<Diagnostic>),
    /// There is no manifest in the current folder or above it.
    #[error("{}", .0.message)]
    NoManifest(Box<Diagnostic>),
    /// The selection names something that does not exist.
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
    /// Another process holds a required lock, and [`crate::Options::no_wait`] is set.
    #[error("{}", match .0 {
        Blocked::Workspace => "another kforge works in this workspace, and --no-wait was given",
        Blocked::Cache => "the shared cache is being collected, and --no-wait was given",
        Blocked::Toolchain => "another kforge installs the same toolchain, and --no-wait was given",
        Blocked::Folder => "another kforge writes into this folder, and --no-wait was given",
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
        /// The cause.
        source: io::Error,
    },
    /// The changes that an interrupted command began to write cannot be completed.
    #[error("cannot complete what an interrupted command began in `{}`: {source}", root.display())]
    Pending {
        /// The workspace's root.
        root: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {what}`{}`: {source}", path.display())]
    Read {
        /// A description before the path, such as `the overlay `; empty if the path says enough.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {what}`{}`: {source}", path.display())]
    Write {
        /// A description before the path; empty if the path says enough.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be removed.
    #[error("cannot remove `{}`: {source}", path.display())]
    Remove {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A folder that would be removed is not one that builds made.
    #[error("`{}` is not the output folder of a build, and kforge does not remove it", .0.display())]
    NotOutputs(PathBuf),
    /// A store of kforge cannot be read or written. The error names the path.
    #[error(transparent)]
    Store(#[from] io::Error),
    /// kforge.lock cannot be read or written, or must not change.
    #[error(transparent)]
    Lockfile(#[from] LockfileError),
    /// kforge.lock lacks a required entry, and must not change.
    #[error("kforge.lock must change: it {}, and --locked was given", .0.missing())]
    LockfileLacks(Locked),
    /// kforge.lock lacks a library, and the network must not be used.
    #[error("kforge.lock does not name `{requirement}`: run `kforge update` with a network")]
    Unresolved {
        /// The library's requirement.
        requirement: String,
    },
    /// A library cannot be resolved or installed.
    #[error("{why}")]
    Library {
        /// The library's requirement.
        requirement: String,
        /// The error of pip or of the installation.
        why: toolchain::Error,
    },
    /// pip resolved no wheel for a library.
    #[error("pip resolved nothing for `{requirement}`")]
    NothingResolved {
        /// The library's requirement.
        requirement: String,
    },
    /// A toolchain cannot be resolved.
    #[error(transparent)]
    Toolchain(toolchain::Error),
    /// A package has no CUDA.
    #[error(transparent)]
    Cuda(#[from] NoCuda),
    /// There is no Triton for a package.
    #[error(transparent)]
    Triton(#[from] NoTriton),
    /// There is no PyTorch for a package.
    #[error(transparent)]
    Torch(#[from] NoTorch),
    /// A toolchain cannot be installed.
    #[error(transparent)]
    Tools(#[from] MissingTools),
    /// The keys that may sign evidence are not known.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A bundle cannot be signed, or a key cannot be added.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// A toolchain cannot be resolved. A diagnostic has reported the reason.
    #[error("a toolchain cannot be resolved")]
    Refused,
    /// The remembered candidates cannot be read.
    #[error("cannot read earlier candidates: {0}")]
    Remembered(io::Error),
    /// The recorded rounds of a kernel cannot be looked up.
    #[error("kernel `{kernel}`: {why}")]
    Rounds {
        /// The kernel.
        kernel: String,
        /// The cause.
        why: String,
    },
    /// The description of this machine's devices cannot be written for workers, or a test scenario cannot be read.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// The number of jobs is 0.
    #[error("`-j 0` runs nothing: expected a positive number, or -N for all cores except N")]
    NoJobs,
    /// The worker program cannot execute steps, or belongs to another kforge.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// There is no report to show.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A report, or its scores, lacks what was requested.
    #[error(transparent)]
    NotShown(#[from] NotShown),
    /// There is no history to show.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A package cannot be created.
    #[error(transparent)]
    New(#[from] NewError),
    /// Kernels cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A single step cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Rounds cannot be run.
    #[error(transparent)]
    Optimize(#[from] OptimizeError),
    /// The plan has no step of a kind.
    #[error(transparent)]
    NoSuchKind(#[from] NoSuchKind),
    /// Resolving again needs the network.
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
    /// A cache gives no hints.
    #[error(transparent)]
    Tuner(#[from] TunerError),
    /// There are no results of tuning to export.
    #[error(transparent)]
    NoResults(#[from] NoResults),
    /// No traces can be exported.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// Two states cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// Two sides of a kernel have no difference to show.
    #[error(transparent)]
    Diff(#[from] DiffError),
    /// Evidence cannot be exported or imported.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A package cannot be packed as an artifact.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// There are no loaders of an artifact.
    #[error(transparent)]
    Bindings(#[from] BindingsError),
    /// A package cannot be built twice.
    #[error(transparent)]
    Reproduce(#[from] ReproduceError),
    /// An artifact cannot be verified.
    #[error(transparent)]
    VerifyArtifact(#[from] VerifyArtifactError),
    /// An artifact cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// An artifact cannot be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// A folder or a registry of artifacts cannot be used. An interruption is [`Error::Interrupted`].
    #[error(transparent)]
    Registry(RegistryError),
    /// A registry is needed, and the network must not be used.
    #[error(transparent)]
    NoNetwork(#[from] NoNetwork),
    /// A manifest cannot be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// No step, or more than one, matches a text.
    #[error(transparent)]
    Step(#[from] NoStep),
    /// A step of the plan cannot be explained: a bug.
    #[error("BUG: `{0}` is in the plan and cannot be explained")]
    Unexplained(String),
    /// The page of timings cannot be rendered.
    #[error("{why}")]
    Timings {
        /// The cause.
        why: NotRendered,
    },
    /// Results cannot be written in a format of another tool.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A value cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A plan is not a valid graph: a bug.
    #[error("BUG: {0}")]
    Plan(#[from] GraphError),
}

/// An entry that kforge.lock lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locked {
    /// The wheels of a CUDA release.
    Cuda(String),
    /// The wheels of a release of Triton.
    Triton(String),
    /// The wheels of a release of PyTorch.
    Torch(String),
    /// A requirement of a header library.
    Requirement(String),
}

impl Locked {
    fn missing(&self) -> String {
        match self {
            Locked::Cuda(release) => format!("names no wheels for CUDA {release}"),
            Locked::Triton(release) => format!("names no wheels for Triton {release}"),
            Locked::Torch(release) => format!("names no wheels for PyTorch {release}"),
            Locked::Requirement(requirement) => format!("does not name `{requirement}`"),
        }
    }
}

/// Why a program cannot execute the steps of this one.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The worker program cannot be started.
    #[error("cannot start the worker program `{}`: {source}", program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The worker program does not answer as kforge does.
    #[error("the worker program `{}` is not a kforge that this program can use: {end}", program.display())]
    NoAnswer {
        /// The program.
        program: PathBuf,
        /// How the program ended.
        end: String,
    },
    /// The worker program's code executes steps differently, and the results of different code must not be mixed.
    #[error(
        "the worker program `{}` is of another kforge ({theirs}) than this program ({ours}): build both of the same version",
        program.display()
    )]
    Differs {
        /// The program.
        program: PathBuf,
        /// The worker program's description of its code.
        theirs: String,
        /// This program's description of its own code.
        ours: String,
    },
}

impl Error {
    /// Converts an error in reading a file.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Read { what: "", path, source }
    }

    /// Converts an error in writing a file.
    pub(crate) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Write { what: "", path, source }
    }

    /// Converts an error in removing a file.
    pub(crate) fn remove(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Remove { path, source }
    }

    /// Converts an error in taking a lock.
    pub(crate) fn lock(of: Blocked) -> impl FnOnce(LockError) -> Error {
        move |error| match error {
            LockError::Busy(_) => Error::Busy(of),
            LockError::Interrupted(_) => Error::Interrupted,
            other @ LockError::Io { .. } => Error::Lock(other),
        }
    }
}

impl From<RegistryError> for Error {
    fn from(error: RegistryError) -> Error {
        match error {
            RegistryError::Interrupted => Error::Interrupted,
            error => Error::Registry(error),
        }
    }
}

/// The messages of the errors among diagnostics, in one line.
fn messages(found: &[Diagnostic]) -> String {
    let errors = found.iter().filter(|d| d.severity == Severity::Error);
    errors.map(|d| d.message.as_str()).collect::<Vec<_>>().join("; ")
}
