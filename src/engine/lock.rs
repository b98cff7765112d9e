//! File locks: the only module that takes them. Knows files and how to wait; does not know what a lock protects, and does not print.
//!
//! A lock belongs to the open file, so it disappears with the process that took it, however that process ends. A leftover lock file means nothing.
//!
//! **Order.** A process that holds one lock may take another only if that lock is further down in this list: the workspace lock, the cache lock, the lock of a
//! key, the lock for starting a runner on a device, the place in the queue for a device, the lock of a device. No thread holds two locks of the same row, and
//! no thread that holds one waits for a thread that waits for one. So no two processes can wait for each other.
//!
//! A lock file may be removed by its holder. Lock files of keys are, because otherwise there would be one for every key ever computed. A process that waited
//! for the removed file then holds a lock that no other process can see. So after taking a lock, we check that the path still leads to the locked file, and
//! begin again if not.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The polling interval of a wait that can be interrupted.
const POLL: Duration = Duration::from_millis(20);

/// Which other holders the lock permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Other shared holders.
    Shared,
    /// No other holder.
    Exclusive,
}

/// What to do while another holder has the lock.
pub enum Wait<'a> {
    /// Give up at once with [`LockError::Busy`].
    No,
    /// Wait without limit. The callback is called once before the wait begins, and not at all if the lock is free.
    Forever(&'a mut dyn FnMut()),
    /// The same, but give up with [`LockError::Interrupted`] soon after the flag is set.
    Unless(&'a AtomicBool, &'a mut dyn FnMut()),
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another holder has it.
    #[error("`{}` is locked by another process", .0.display())]
    Busy(PathBuf),
    /// The wait was interrupted.
    #[error("interrupted while waiting for `{}`", .0.display())]
    Interrupted(PathBuf),
    /// The file could not be created or locked.
    #[error("cannot lock `{}`: {source}", path.display())]
    Io {
        /// The lock's file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    held: bool,
}

impl Lock {
    /// Takes the lock on the file at `path`. Creates the file and its folders if they do not exist. On a file system without locks, it succeeds without a lock,
    /// and [`Lock::is_held`] then returns false.
    pub fn acquire(path: &Path, mode: Mode, mut wait: Wait<'_>) -> Result<Lock, LockError> {
        let fail = |source| LockError::Io { path: path.to_path_buf(), source };
        let mut told = false;
        loop {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(fail)?;
            }
            let file = open(path).map_err(fail)?;
            let held = match attempt(&file, mode) {
                Ok(()) => true,
                Err(TryLockError::Error(e)) if unsupported(&e) => false,
                Err(TryLockError::Error(e)) => return Err(fail(e)),
                Err(TryLockError::WouldBlock) => {
                    match &mut wait {
                        Wait::No => return Err(LockError::Busy(path.to_path_buf())),
                        Wait::Forever(contended) => {
                            tell(&mut told, contended);
                            block(&file, mode).map_err(fail)?;
                        }
                        Wait::Unless(interrupted, contended) => {
                            tell(&mut told, contended);
                            if interrupted.load(Ordering::Relaxed) {
                                return Err(LockError::Interrupted(path.to_path_buf()));
                            }
                            std::thread::sleep(POLL);
                            continue;
                        }
                    }
                    true
                }
            };
            if !held || leads_to(path, &file).map_err(fail)? {
                return Ok(Lock { file, path: path.to_path_buf(), held });
            }
        }
    }

    /// Takes the lock on a file that exists, exclusively and without waiting. Follows no link and creates nothing. None if there is no such file, another
    /// holder has it, or the file system has no locks.
    pub fn of_existing(path: &Path) -> Option<Lock> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path).ok()?;
        attempt(&file, Mode::Exclusive).ok()?;
        let held = leads_to(path, &file).ok()?;
        held.then(|| Lock { file, path: path.to_path_buf(), held })
    }

    /// Whether the lock is held: false if the file system does not support locks.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Removes the lock file and releases the lock. Only for a lock that is held exclusively.
    pub fn remove(self) {
        // A waiter finds that the path leads elsewhere and begins again. A file that cannot be removed is only litter.
        if self.held {
            let _ = std::fs::remove_file(&self.path);
        }
        drop(self.file);
    }
}

/// Opens the lock file and creates it if necessary. In a home that only others may write, opens it for reading, which suffices for locking.
fn open(path: &Path) -> io::Result<File> {
    match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            File::open(path).map_err(|_| e)
        }
        other => other,
    }
}

fn tell(told: &mut bool, contended: &mut dyn FnMut()) {
    if !std::mem::replace(told, true) {
        contended();
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that takes locks")]
fn attempt(file: &File, mode: Mode) -> Result<(), TryLockError> {
    match mode {
        Mode::Shared => file.try_lock_shared(),
        Mode::Exclusive => file.try_lock(),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that takes locks")]
fn block(file: &File, mode: Mode) -> io::Result<()> {
    loop {
        let done = match mode {
            Mode::Shared => file.lock_shared(),
            Mode::Exclusive => file.lock(),
        };
        match done {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Network file systems and similar ones return these errors.
fn unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
        || matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::ENOLCK))
}

fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests;
