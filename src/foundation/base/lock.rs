//! File locks that exclude other processes. Knows one lock at a time; does not know what it guards.

#![expect(clippy::disallowed_methods, reason = "this is where rooms below the engine take their locks")]

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// A held lock. It is released when it is dropped or when the process ends for any reason.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Takes the lock of the file at `path`. Creates the file if it is missing. Never removes the file, because two processes could lock a removed lock file. Calls
/// `waiting` once if another process holds the lock, then waits.
///
/// # Errors
/// The file cannot be created or locked.
pub fn exclusive(path: &Path, waiting: impl FnOnce()) -> io::Result<FileLock> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            waiting();
            file.lock()?;
        }
        Err(TryLockError::Error(e)) => return Err(e),
    }
    Ok(FileLock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_second_says_that_it_waits_and_gets_it_after_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/lock");
        let first = exclusive(&path, || panic!("nobody else holds it")).unwrap();
        let (send, receive) = mpsc::channel();
        let second = std::thread::spawn(move || exclusive(&path, || send.send(()).unwrap()).is_ok());
        receive.recv().unwrap();
        drop(first);
        assert!(second.join().unwrap());
    }
}
