//! Programs whose file is still open for writing. Knows one error of the system.
//!
//! The system does not execute a file that any process has open for writing. A child that another thread starts holds a copy of every descriptor of this process
//! until it executes its own program. So a program that was written and closed a moment ago can be busy although nobody writes to it any more, for milliseconds.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// How often a start is tried again, and the time between two tries: together half a second.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Calls `start`, which starts a program, again for as long as the program's file is open for writing, for half a second.
///
/// # Errors
/// Those of `start`.
pub fn when_not_busy<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..TRIES {
        match start() {
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy => std::thread::sleep(PAUSE),
            started => return started,
        }
    }
    start()
}

/// Replaces this process with a program, as [`when_not_busy`] starts one. Returns only if that fails.
pub fn exec_when_not_busy(command: &mut Command) -> io::Error {
    let Err(error) = when_not_busy(|| Err::<Infallible, _>(command.exec()));
    error
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_that_is_open_for_writing_starts_once_it_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"#!/bin/sh\nexit 7\n").unwrap();
        file.set_permissions(Permissions::from_mode(0o755)).unwrap();
        let mut kept = Some(file);
        let mut tries = 0;
        let status = when_not_busy(|| {
            tries += 1;
            if tries == 3 {
                kept = None;
            }
            Command::new(&path).status()
        });
        assert_eq!(status.unwrap().code(), Some(7));
    }

    #[test]
    fn a_program_that_stays_busy_is_an_error_and_every_other_end_is_final() {
        let tried = |kind: Option<ErrorKind>| {
            let mut tries = 0;
            let ended = when_not_busy(|| {
                tries += 1;
                kind.map_or(Ok(()), |kind| Err(io::Error::from(kind)))
            });
            (ended.map_err(|e| e.kind()), tries)
        };
        let busy = ErrorKind::ExecutableFileBusy;
        assert_eq!(tried(Some(busy)), (Err(busy), TRIES + 1));
        assert_eq!(tried(Some(ErrorKind::NotFound)), (Err(ErrorKind::NotFound), 1));
        assert_eq!(tried(None), (Ok(()), 1));
    }
}
