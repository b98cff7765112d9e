//! Removes the output folder of a workspace. [`crate::cache`] handles the shared cache.

use std::path::{Path, PathBuf};

use crate::event::{Blocked, Event};
use crate::{Error, Session};
use kforge_engine::lock::{Lock, Mode, Wait};

/// What was, or would be, removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// The output folder.
    pub target: PathBuf,
    /// The number of files in the folder and their size in bytes; none if the folder does not exist.
    pub removed: Option<(u64, u64)>,
}

/// Removes the outputs of the current workspace. With `dry_run`, only reports what would be removed.
///
/// # Errors
/// The workspace cannot be opened, another process is building in it, the folder is not one of outputs, or something cannot be removed.
pub fn clean(session: &Session, dry_run: bool) -> Result<Cleaned, Error> {
    let workspace = session.workspace()?;
    let target = session.target(&workspace);
    if !target.is_dir() {
        return Ok(Cleaned { target, removed: None });
    }
    // Every build takes this lock. A folder without it may hold anything.
    let lock = target.join(".lock");
    if !lock.is_file() && !is_empty(&target) {
        return Err(Error::NotOutputs(target));
    }
    if dry_run {
        return Ok(Cleaned { removed: Some(measure(&target)), target });
    }
    let mut blocked = || session.reporter.event(&Event::Blocked(Blocked::Workspace));
    let wait = if session.options.no_wait { Wait::No } else { Wait::Forever(&mut blocked) };
    let lock = Lock::acquire(&lock, Mode::Exclusive, wait);
    let lock = lock.map_err(Error::lock(Blocked::Workspace))?;
    let removed = measure(&target);
    for entry in std::fs::read_dir(&target).map_err(Error::remove(&target))? {
        let path = entry.map_err(Error::remove(&target))?.path();
        if path.ends_with(".lock") {
            continue;
        }
        // A link itself is removed, not its target.
        let is_folder = path.symlink_metadata().is_ok_and(|m| m.is_dir());
        let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(Error::remove(&path))?;
    }
    lock.remove();
    // Another kforge may already be using the folder again.
    let _ = std::fs::remove_dir(&target);
    Ok(Cleaned { target, removed: Some(removed) })
}

/// The number of files below a folder and their size in bytes, without the lock file.
fn measure(folder: &Path) -> (u64, u64) {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .flatten()
        .filter(|e| !e.file_type().is_dir() && e.file_name() != ".lock")
        .fold((0, 0), |(n, size), e| (n + 1, size + e.metadata().map_or(0, |m| m.len())))
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}
