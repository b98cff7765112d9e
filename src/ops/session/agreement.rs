//! Checks whether an installed kforge executes steps as this program would. Results are stored under the digests of the code that produced them, so a worker
//! with other code would store different results under this program's keys.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::WorkerError;
use crate::implementation;
use kforge_foundation::process::{Command, End, run};

/// How long a kforge may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The arguments of the query: see [`implementation::combined`].
const WORDS: [&str; 2] = ["worker", "--implementation"];

/// Queries a program.
///
/// # Errors
/// The program cannot be queried, or its code is different.
pub(super) fn check(program: &Path, interrupted: &AtomicBool) -> Result<(), WorkerError> {
    let owned = || program.to_path_buf();
    let finished = run(&Command::new(program).args(WORDS), Some(PATIENCE), interrupted)
        .map_err(|source| WorkerError::NotStarted { program: owned(), source })?;
    if finished.end != End::Exited(0) {
        return Err(WorkerError::NoAnswer { program: owned(), end: format!("it {}", finished.end) });
    }
    let (theirs, ours) = (finished.stdout.text().trim().to_string(), implementation::combined());
    if theirs == ours { Ok(()) } else { Err(WorkerError::Differs { program: owned(), theirs, ours }) }
}
