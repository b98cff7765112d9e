//! Writes an artifact: its folder, its archive and the statement beside them; and removes them. Each appears under its name only when it is complete; a process that is killed
//! leaves at most folders whose names begin with [`TEMP_PREFIX`], which the next run removes.

use std::path::{Path, PathBuf};

use crate::event::{Blocked, Event};
use crate::install::place::{Found, look, put};
use crate::package::PackageError;
use crate::{Error, Session};
use kforge_engine::lock::{Lock, Mode};
use kforge_pipeline::release::artifact::files::Index;
use kforge_pipeline::release::artifact::{ArtifactFiles, INDEX, tar};

/// The beginning of the names of folders that are not complete.
const TEMP_PREFIX: &str = ".kforge-package-";

/// The extension of the statement beside an archive.
const STATEMENT: &str = "intoto.json";

/// The file that is locked while artifacts are written, so that two processes do not write at once.
const LOCK: &str = ".kforge-package.lock";

/// Writes `NAME/`, `NAME.tar` and `NAME.intoto.json` into a folder, in place of earlier ones. All of them are complete before the first appears.
pub(super) fn write(
    session: &Session,
    folder: &Path,
    name: &str,
    files: &ArtifactFiles,
    archive: &[u8],
    statement: &[u8],
) -> Result<(), Error> {
    let is_new = !folder.exists();
    std::fs::create_dir_all(folder).map_err(Error::write(folder))?;
    let mut blocked = || session.reporter.event(&Event::Blocked(Blocked::Workspace));
    let lock = Lock::acquire(&folder.join(LOCK), Mode::Exclusive, session.wait(&mut blocked));
    let lock = lock.map_err(Error::lock(Blocked::Workspace))?;
    let written = write_locked(folder, name, files, [(tar::EXTENSION, archive), (STATEMENT, statement)]);
    lock.remove();
    if written.is_err() && is_new {
        // It is empty unless another process writes there.
        let _ = std::fs::remove_dir(folder);
    }
    written
}

/// The same by the holder of the lock. `beside` are the files beside the folder by their extensions.
fn write_locked(folder: &Path, name: &str, files: &ArtifactFiles, beside: [(&str, &[u8]); 2]) -> Result<(), Error> {
    forget(folder)?;
    let place = folder.join(name);
    let package = files.index().map_err(|why| PackageError::Files { package: name.into(), why })?.package;
    let replaces = match look(&place, &package)? {
        Found::Artifact(found) if *found == *files => None,
        Found::Artifact(_) => Some(true),
        Found::Nothing => Some(false),
        Found::Other(why) => return Err(PackageError::Occupied { folder: place, why }.into()),
    };
    let temporary = tempfile::Builder::new().prefix(TEMP_PREFIX).tempdir_in(folder).map_err(Error::write(folder))?;
    let new = temporary.path().join("new");
    if replaces.is_some() {
        write_folder_as(&new, files, &place)?;
    }
    let mut staged: Vec<(PathBuf, PathBuf)> = vec![];
    for (extension, bytes) in beside {
        let path = folder.join(format!("{name}.{extension}"));
        if replaces.is_none() && std::fs::read(&path).is_ok_and(|known| known == bytes) {
            continue;
        }
        let own = temporary.path().join(extension);
        // The file that is to be written is named, not the temporary one.
        std::fs::write(&own, bytes).map_err(Error::write(&path))?;
        staged.push((own, path));
    }
    // What is beside an earlier folder goes first, the statement before the archive that it is about, so that a killed process leaves no two that do not belong
    // together.
    for (_, path) in staged.iter().rev() {
        remove_file(path)?;
    }
    if let Some(replaces) = replaces {
        put(&new, &place, replaces)?;
    }
    for (own, path) in staged {
        std::fs::rename(own, &path).map_err(Error::write(&path))?;
    }
    Ok(())
}

/// Removes what [`write()`] wrote into a folder, and the folder if it is then empty. Leaves everything else in it, such as installed artifacts, whose folders have
/// other names.
pub(crate) fn remove_artifacts(session: &Session, folder: &Path) -> Result<(), Error> {
    if !folder.is_dir() {
        return Ok(());
    }
    let mut blocked = || session.reporter.event(&Event::Blocked(Blocked::Workspace));
    let lock = Lock::acquire(&folder.join(LOCK), Mode::Exclusive, session.wait(&mut blocked));
    let lock = lock.map_err(Error::lock(Blocked::Workspace))?;
    forget(folder)?;
    for entry in std::fs::read_dir(folder).map_err(Error::read(folder))? {
        let place = entry.map_err(Error::read(folder))?.path();
        let Some(name) = place.file_name().and_then(|name| name.to_str()) else { continue };
        let index = std::fs::read(place.join(INDEX)).ok();
        let index = index.and_then(|bytes| serde_json::from_slice::<Index>(&bytes).ok());
        if index.is_none_or(|index| file_stem(&index) != name) {
            continue;
        }
        // The folder shows which files beside it are of an artifact, so it goes last.
        for extension in [tar::EXTENSION, STATEMENT] {
            remove_file(&folder.join(format!("{name}.{extension}")))?;
        }
        std::fs::remove_dir_all(&place).map_err(Error::remove(&place))?;
    }
    lock.remove();
    // It may hold something else.
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

/// The name of an artifact's folder, and that of its archive without the extension.
pub(super) fn file_stem(index: &Index) -> String {
    format!("{}-{}", index.package, index.version)
}

fn remove_file(place: &Path) -> Result<(), Error> {
    match std::fs::remove_file(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::remove(place)(error)),
        _ => Ok(()),
    }
}

/// Writes files into a new folder.
pub(crate) fn write_folder(folder: &Path, files: &ArtifactFiles) -> Result<(), Error> {
    write_folder_as(folder, files, folder)
}

/// The same for a folder that gets another name when it is complete. Errors name the files by that name.
pub(crate) fn write_folder_as(folder: &Path, files: &ArtifactFiles, named: &Path) -> Result<(), Error> {
    for (name, bytes) in files.all() {
        let (path, named) = (folder.join(name), named.join(name));
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(Error::write(named.parent().unwrap_or(&named)))?;
        std::fs::write(&path, bytes).map_err(Error::write(&named))?;
    }
    Ok(())
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
