//! Exit codes: part of what kforge promises to scripts.

use std::process::ExitCode;

/// How a command ended (design, section 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All that was asked for is done.
    Done = 0,
    /// The command line is wrong.
    Usage = 2,
    /// The selection matches nothing.
    NothingSelected = 4,
    /// A bug in kforge.
    Bug = 70,
    /// Another kforge holds the lock, and `--no-wait` was given.
    Busy = 75,
    /// A kernel is wrong, or an operator cannot tell.
    Wrong = 100,
    /// Something could not be built.
    NotBuilt = 101,
    /// A kernel is slower than it may be.
    Slower = 102,
    /// Evidence is missing or undecided where it was required.
    NoEvidence = 103,
    /// Interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
