//! Why the service refuses a request.

use std::path::PathBuf;

use super::invalid::Invalid;

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It asks for what cannot be evaluated, whatever the server has.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The id belongs to a task with another content.
    #[error("the id `{0}` belongs to a task with another content: choose another id, or none")]
    Conflict(String),
    /// There is no such task.
    #[error("there is no task `{0}`")]
    NoTask(String),
    /// The queue is full.
    #[error("the queue is full: {waiting} tasks wait")]
    QueueFull {
        /// How many tasks wait.
        waiting: usize,
        /// The seconds after which to try again.
        retry_after_s: u64,
    },
    /// The client has as many unfinished tasks as it may have.
    #[error("this client has {limit} unfinished tasks, and may not have more")]
    ClientLimit {
        /// The limit.
        limit: usize,
        /// The seconds after which to try again.
        retry_after_s: u64,
    },
    /// Requests that wait have as many bytes as they may have.
    #[error("the requests that wait have as many bytes as they may have: {limit}")]
    QueueBytes {
        /// The limit.
        limit: u64,
        /// The seconds after which to try again.
        retry_after_s: u64,
    },
    /// The same of one client.
    #[error("the unfinished requests of this client have as many bytes as they may have: {limit}")]
    ClientBytes {
        /// The limit.
        limit: u64,
        /// The seconds after which to try again.
        retry_after_s: u64,
    },
    /// No task is accepted any more, because the server is about to end.
    #[error("the server is about to end, and accepts no tasks")]
    Draining,
    /// Tasks cannot be stored.
    #[error("the server cannot store tasks: {0}")]
    Storage(String),
}

impl Refusal {
    /// Whether a limit on what waits is the reason.
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Refusal::QueueFull { .. }
                | Refusal::ClientLimit { .. }
                | Refusal::QueueBytes { .. }
                | Refusal::ClientBytes { .. }
        )
    }
}

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file or a folder of the service cannot be used.
    #[error("cannot use `{}`: {source}", path.display())]
    Storage {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Another server uses the folder.
    #[error("another `kforge serve` uses `{}`", .0.display())]
    Busy(PathBuf),
    /// The folder has files that are not the service's.
    #[error("`{}` has files that are not of `kforge serve`: name a new or an empty folder", .0.display())]
    NotOurs(PathBuf),
    /// The file system of the folder has no locks.
    #[error("`{}` is on a file system without locks, where two servers could use it: name a folder on another one", .0.display())]
    NoLocks(PathBuf),
    /// The journal was written by a later kforge.
    #[error("`{}` was written by a later kforge", .0.display())]
    Newer(PathBuf),
    /// Workers or devices cannot be prepared.
    #[error(transparent)]
    Build(Box<kforge_ops::Error>),
}

impl From<kforge_ops::Error> for StartError {
    fn from(error: kforge_ops::Error) -> Self {
        StartError::Build(Box::new(error))
    }
}

impl StartError {
    pub(crate) fn storage(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> StartError {
        let path = path.into();
        move |source| StartError::Storage { path, source }
    }
}
