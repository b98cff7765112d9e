//! Folders of steps that are under way: who makes one holds a lock on it, which goes with the process however that ends, so that whoever comes next knows what a
//! killed build left. Knows folders and locks; does not know what steps keep there.
//!
//! A folder can be swept between being made and being locked. Whoever made it finds its path leading elsewhere, or the sweeper's lock, and makes another.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::{STEP_AGE, newest};
use crate::engine::lock::leads_to;

/// A folder of a step, removed when it is dropped.
#[derive(Debug)]
pub struct StepFolder {
    folder: tempfile::TempDir,
    /// None where the file system knows no locks.
    _lock: Option<File>,
}

impl StepFolder {
    /// A new folder within `steps`, which is made if it is not there.
    pub fn new(steps: &Path) -> io::Result<StepFolder> {
        std::fs::create_dir_all(steps)?;
        loop {
            let folder = tempfile::Builder::new().prefix("step-").tempdir_in(steps)?;
            let lock = match File::open(folder.path()) {
                Ok(lock) => lock,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            match lock.try_lock() {
                Ok(()) if leads_to(folder.path(), &lock)? => return Ok(StepFolder { folder, _lock: Some(lock) }),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(_)) => return Ok(StepFolder { folder, _lock: None }),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folder of a step whose process has ended; where the file system knows no locks, one that is untouched for [`STEP_AGE`] before `now`. Says whether it
/// did.
pub(super) fn sweep(folder: &Path, now: SystemTime) -> bool {
    let Ok(lock) = File::open(folder) else { return false };
    let left = match lock.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => {
            newest(folder).is_some_and(|t| now.duration_since(t).is_ok_and(|age| age > STEP_AGE))
        }
    };
    // The lock is held meanwhile: see above.
    left && std::fs::remove_dir_all(folder).is_ok()
}
