//! The folder of the service: taken only if it is the service's, so that nothing of others is removed or opened to others. Knows no rows.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use kforge_engine::lock::{Lock, LockError, Mode, Wait};

use super::refusal::StartError;

/// The lock file. It is the first file of the folder, so it also says that the folder is the service's.
const LOCK: &str = "kforge-serve.lock";

/// Takes the folder for this process, and creates it if there is none. A folder with files that are not the service's is refused.
pub(super) fn take(folder: &Path) -> Result<Lock, StartError> {
    let storage = |error| StartError::storage(folder)(error);
    create(folder).map_err(storage)?;
    let is_empty = std::fs::read_dir(folder).map_err(storage)?.next().is_none();
    if !is_empty && !folder.join(LOCK).is_file() {
        return Err(StartError::NotOurs(folder.into()));
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(storage)?;
    let lock = Lock::acquire(&folder.join(LOCK), Mode::Exclusive, Wait::No).map_err(|error| match error {
        LockError::Busy(_) | LockError::Interrupted(_) => StartError::Busy(folder.into()),
        LockError::Io { path, source } => StartError::Storage { path, source },
    })?;
    match lock.is_held() {
        true => Ok(lock),
        false => Err(StartError::NoLocks(folder.into())),
    }
}

/// Creates a folder that only this user may enter, if there is none, and those above it. Syncs what it creates.
pub(super) fn create(folder: &Path) -> io::Result<()> {
    let missing: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .map(Path::to_path_buf)
        .collect();
    for path in missing.iter().rev() {
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            // Another process created it at the same time.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}
