//! Writes an artifact: its folder, its archive and the statement beside them. Each appears under its name only when it is complete; a process that is killed
//! leaves at most folders whose names begin with [`TEMP_PREFIX`], which the next run removes.

use std::path::Path;

use crate::event::{Blocked, Event};
use crate::package::PackageError;
use crate::{Error, Session};
use kforge_engine::lock::{Lock, Mode};
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::release::artifact::{ArtifactFiles, INDEX, tar};

/// The beginning of the names of folders that are not complete.
const TEMP_PREFIX: &str = ".kforge-package-";

/// The file that is locked while artifacts are written, so that two processes do not write at once.
const LOCK: &str = ".kforge-package.lock";

/// Writes `NAME/`, `NAME.tar` and `NAME.intoto.json` into a folder, in place of earlier ones.
pub(super) fn write(
    session: &Session,
    folder: &Path,
    name: &str,
    files: &ArtifactFiles,
    archive: &[u8],
    statement: &[u8],
) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(Error::write(folder))?;
    let mut blocked = || session.reporter.event(&Event::Blocked(Blocked::Workspace));
    let lock = Lock::acquire(&folder.join(LOCK), Mode::Exclusive, session.wait(&mut blocked));
    let lock = lock.map_err(Error::lock(Blocked::Workspace))?;
    forget(folder)?;
    let place = folder.join(name);
    if !is_equal(&place, files) {
        let temporary =
            tempfile::Builder::new().prefix(TEMP_PREFIX).tempdir_in(folder).map_err(Error::write(folder))?;
        write_folder(&temporary.path().join("new"), files)?;
        if place.exists() {
            if !place.join(INDEX).is_file() {
                return Err(PackageError::Occupied(place).into());
            }
            std::fs::rename(&place, temporary.path().join("old")).map_err(Error::write(&place))?;
        }
        std::fs::rename(temporary.path().join("new"), &place).map_err(Error::write(&place))?;
    }
    for (extension, bytes) in [(tar::EXTENSION, archive), ("intoto.json", statement)] {
        let path = folder.join(format!("{name}.{extension}"));
        write_if_changed(&path, bytes).map_err(Error::write(&path))?;
    }
    lock.remove();
    Ok(())
}

/// Writes files into a new folder.
pub(crate) fn write_folder(folder: &Path, files: &ArtifactFiles) -> Result<(), Error> {
    for (name, bytes) in files.all() {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(Error::write(parent))?;
        std::fs::write(&path, bytes).map_err(Error::write(&path))?;
    }
    Ok(())
}

/// Whether a folder holds these files and no others.
fn is_equal(folder: &Path, files: &ArtifactFiles) -> bool {
    let found = walkdir::WalkDir::new(folder).into_iter().filter(|e| e.as_ref().is_ok_and(|e| !e.file_type().is_dir()));
    let same = |(name, bytes): (&String, &Vec<u8>)| std::fs::read(folder.join(name)).is_ok_and(|found| found == *bytes);
    found.count() == files.all().len() && files.all().iter().all(same)
}

/// Removes what killed processes left.
fn forget(folder: &Path) -> Result<(), Error> {
    for entry in std::fs::read_dir(folder).map_err(Error::read(folder))? {
        let entry = entry.map_err(Error::read(folder))?;
        if entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX) {
            std::fs::remove_dir_all(entry.path()).map_err(Error::write(&entry.path()))?;
        }
    }
    Ok(())
}
