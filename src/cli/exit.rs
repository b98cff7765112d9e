//! Exit codes, which are a stable interface for scripts, and the mapping from errors of operations to exit codes.

use std::process::ExitCode;

use kforge_ops::Error;
use kforge_ops::accept::AcceptError;
use kforge_ops::build::Ended;
use kforge_ops::compare::CompareError;
use kforge_ops::evidence::EvidenceError;
use kforge_ops::export::traces::TracesError;
use kforge_ops::history::HistoryError;
use kforge_ops::import::ImportError;
use kforge_ops::install::InstallError;
use kforge_ops::optimize::OptimizeError;
use kforge_ops::package::{Ground, PackageError};
use kforge_ops::publish::PublishError;
use kforge_ops::report::NotShown;
use kforge_ops::run::RunError;
use kforge_ops::verify_artifact::VerifyArtifactError;
use kforge_pipeline::release::ci::Conclusion;
use kforge_pipeline::release::history::NoHistory;

/// How a command ended (design, section 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was requested is done.
    Done = 0,
    /// The command line is wrong.
    Usage = 2,
    /// The selection matches nothing.
    NothingSelected = 4,
    /// A bug in kforge.
    Bug = 70,
    /// Another kforge holds the lock, and `--no-wait` was given.
    Busy = 75,
    /// A kernel is wrong, or an operator that must decide is indecisive.
    Wrong = 100,
    /// Something could not be built.
    NotBuilt = 101,
    /// A kernel is slower than the margin allows.
    Slower = 102,
    /// Required evidence is missing or undecided.
    NoEvidence = 103,
    /// Interrupted.
    Interrupted = 130,
}

impl Exit {
    /// The code for what cannot be packed: the first of 101, 100 and 103 that applies.
    pub fn of_grounds(grounds: impl Iterator<Item = Ground>) -> Exit {
        let grounds: Vec<Ground> = grounds.collect();
        match (grounds.contains(&Ground::Package), grounds.contains(&Ground::Wrong)) {
            (true, _) => Exit::NotBuilt,
            (false, true) => Exit::Wrong,
            (false, false) => Exit::NoEvidence,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl From<&Error> for Exit {
    fn from(error: &Error) -> Self {
        match error {
            Error::NoJobs => Exit::Usage,
            Error::Selection(_) | Error::NothingToDo { .. } | Error::Step(_) => Exit::NothingSelected,
            Error::Accept(AcceptError::NoTypes { .. } | AcceptError::NoKernel(_)) => Exit::NothingSelected,
            Error::Accept(AcceptError::SeveralPackages(_) | AcceptError::SeveralTargets) => Exit::Usage,
            Error::Accept(AcceptError::NoSource(_)) => Exit::Bug,
            Error::Candidates(_)
            | Error::NoTrajectories(_)
            | Error::NoResults(_)
            | Error::Traces(TracesError::NoDefinitions) => Exit::NothingSelected,
            Error::Compare(CompareError::SeveralKernels(_)) => Exit::Usage,
            Error::Diff(_) => Exit::NothingSelected,
            Error::Compare(CompareError::Interrupted) => Exit::Interrupted,
            Error::Compare(CompareError::Of { error, .. }) => Exit::from(&**error),
            Error::Evidence(EvidenceError::Nothing) => Exit::NoEvidence,
            Error::Package(PackageError::Nothing(_)) => Exit::NothingSelected,
            Error::Package(PackageError::Refused { reasons, .. }) => {
                Exit::of_grounds(reasons.iter().map(|reason| reason.why.ground()))
            }
            Error::Package(PackageError::Claims { .. } | PackageError::Manifest { .. }) => Exit::Bug,
            Error::Publish(PublishError::Unsigned(_)) => Exit::NoEvidence,
            Error::Publish(
                PublishError::Reference(_)
                | PublishError::TwoTags { .. }
                | PublishError::Digest(_)
                | PublishError::NoTags(_)
                | PublishError::OtherVersion { .. },
            ) => Exit::Usage,
            Error::Install(InstallError::Reference(_) | InstallError::Outside(_) | InstallError::Twice(_)) => {
                Exit::Usage
            }
            Error::VerifyArtifact(VerifyArtifactError::Unsigned(_) | VerifyArtifactError::Distrusted { .. }) => {
                Exit::NoEvidence
            }
            Error::NotShown(NotShown::Interrupted(error)) => Exit::from(&**error),
            Error::NotShown(NotShown::Share(_)) => Exit::Usage,
            Error::NotShown(NotShown::Foreign(_)) => Exit::NotBuilt,
            Error::NotShown(_) | Error::NoSuchKind(_) => Exit::NothingSelected,
            Error::History(
                HistoryError::Nothing(_) | HistoryError::None(NoHistory::NoBundle | NoHistory::NoCommit),
            ) => Exit::NothingSelected,
            Error::Run(RunError::ShapeNeeded { .. }) => Exit::Usage,
            Error::Run(RunError::Failed | RunError::NoCpu(_) | RunError::Nothing { .. }) => Exit::NotBuilt,
            Error::Run(RunError::Lost(_)) => Exit::Bug,
            Error::Run(_) => Exit::NothingSelected,
            Error::Optimize(OptimizeError::NoAgent { .. }) => Exit::NothingSelected,
            Error::Optimize(OptimizeError::Gone(_)) => Exit::Bug,
            Error::Import(ImportError::NoKernels { .. } | ImportError::NoTasks { .. }) => Exit::NothingSelected,
            Error::Import(ImportError::Outside { .. } | ImportError::TorchRelease(_)) => Exit::Usage,
            Error::Plan(_) => Exit::Bug,
            Error::Busy(_) => Exit::Busy,
            Error::Interrupted => Exit::Interrupted,
            _ => Exit::NotBuilt,
        }
    }
}

impl From<&Ended> for Exit {
    fn from(ended: &Ended) -> Self {
        match ended {
            Ended::Done => Exit::Done,
            Ended::NotBuilt | Ended::Contradicted(_) => Exit::NotBuilt,
            Ended::Wrong => Exit::Wrong,
            Ended::NoEvidence(_) => Exit::NoEvidence,
            Ended::Interrupted => Exit::Interrupted,
        }
    }
}

impl From<Conclusion> for Exit {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Interrupted => Exit::Interrupted,
            // What refused the artifacts has the exit code of the run.
            Conclusion::NotBuilt | Conclusion::Contradicted | Conclusion::NotPackaged => Exit::NotBuilt,
            Conclusion::Wrong => Exit::Wrong,
            Conclusion::Slower => Exit::Slower,
            Conclusion::NoEvidence => Exit::NoEvidence,
            Conclusion::Done => Exit::Done,
        }
    }
}

/// Why a command ends early. A command prints its own errors itself; errors of operations are not yet printed.
pub enum Failure {
    /// The reason has been printed.
    Said(Exit),
    /// An operation failed.
    Operation(Box<Error>),
}

impl From<Exit> for Failure {
    fn from(exit: Exit) -> Self {
        Failure::Said(exit)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Operation(Box::new(error))
    }
}
