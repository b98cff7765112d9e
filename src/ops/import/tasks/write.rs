//! Writes packages: each is complete in a folder beside its place, and then moved there.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::new::{NewError, Surroundings};
use kforge_foundation::base::files::write_atomically;
use kforge_project::workspace::find::MANIFEST;
use kforge_project::workspace::join::EnclosingWorkspace;

/// The root manifest of packages that have none: their folder's. Returns its path if it was written.
pub(in crate::import) fn root(output: &Path, first: &Path) -> Result<Option<PathBuf>, Error> {
    let manifest = output.join(MANIFEST);
    if EnclosingWorkspace::find(first).is_some() || manifest.symlink_metadata().is_ok() {
        return Ok(None);
    }
    write_atomically(&manifest, b"[workspace]\nmembers = []\n", false).map_err(Error::write(&manifest))?;
    Ok(Some(manifest))
}

/// Writes a package: its texts by path, and copies of files. Returns the workspace that it joined.
pub(in crate::import) fn package(
    folder: &Path,
    files: &[(&str, &str)],
    copies: &[(String, PathBuf)],
) -> Result<Option<Surroundings>, Error> {
    let above = folder.parent().unwrap_or(folder);
    std::fs::create_dir_all(above).map_err(Error::write(above))?;
    let unfinished =
        tempfile::Builder::new().prefix(".kforge-import-").tempdir_in(above).map_err(Error::write(above))?;
    for (name, text) in files {
        let path = unfinished.path().join(name);
        let place = path.parent().unwrap_or(unfinished.path());
        std::fs::create_dir_all(place).map_err(Error::write(place))?;
        write_atomically(&path, text.as_bytes(), false).map_err(Error::write(&path))?;
    }
    for (name, from) in copies {
        let path = unfinished.path().join(name);
        let place = path.parent().unwrap_or(unfinished.path());
        std::fs::create_dir_all(place).map_err(Error::write(place))?;
        std::fs::copy(from, &path).map_err(Error::write(&path))?;
    }
    open(unfinished.path()).map_err(Error::write(unfinished.path()))?;
    std::fs::rename(unfinished.path(), folder).map_err(Error::write(folder))?;
    // Its folder has another name now.
    let _ = unfinished.keep();
    let Some(around) = EnclosingWorkspace::find(folder) else { return Ok(None) };
    match around.join(folder) {
        Ok(joined) => Ok(Some(Surroundings { manifest: around.manifest, joined })),
        Err(error) => {
            // All or nothing: a second try must not find the package of the first.
            let _ = std::fs::remove_dir_all(folder);
            Err(NewError::NotJoined(error).into())
        }
    }
}

/// A temporary folder is its owner's alone; a package's is like others.
fn open(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}
