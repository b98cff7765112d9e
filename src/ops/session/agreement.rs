//! Whether an installed kforge does steps as this program would. What a step gave is kept under the digests of the code that did it, so a worker of other code would
//! put other results under the keys of this one's.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::WorkerError;
use crate::implementation;
use kforge_foundation::process::{Command, End, run};

/// How long a kforge may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(30);

/// The words that ask for it: see [`implementation::combined`].
const WORDS: [&str; 2] = ["worker", "--implementation"];

/// Asks a program.
///
/// # Errors
/// It cannot be asked, or its code is different.
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
