//! The folders of installed artifacts: what is there, and how an artifact gets there as a whole. Knows files; does not know where they come from.
//!
//! An artifact is written into a folder beside its own, whose name begins with [`TEMP_PREFIX`]. It then changes places with what was there in one call of the
//! system. A process that is killed leaves at most such a folder, which the next installation removes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::InstallError;
use crate::Error;
use crate::package::write::write_folder_as;
use crate::verify_artifact::{VerifyArtifactError, read};
use kforge_pipeline::release::artifact::{ArtifactError, ArtifactFiles};

/// The beginning of the names of folders that are not complete.
const TEMP_PREFIX: &str = ".kforge-install-";

/// What a folder holds.
pub(crate) enum Found {
    /// It does not exist.
    Nothing,
    /// Exactly the files of an artifact of the package.
    Artifact(Box<ArtifactFiles>),
    /// Something else, in words.
    Other(String),
}

/// An artifact for a folder.
pub(super) struct Placed<'p> {
    /// The folder of the lockfile.
    pub(super) base: &'p Path,
    /// The folder of the artifact, relative to it.
    pub(super) relative: String,
    /// The files.
    pub(super) files: ArtifactFiles,
    /// The artifact that is there, which it replaces.
    pub(super) replaces: Option<Box<ArtifactFiles>>,
}

/// Checks that no folder above the last part of a relative path is a symbolic link. [`look`] checks the last part.
pub(crate) fn check_links(base: &Path, relative: &str) -> Result<(), InstallError> {
    let above = relative.match_indices('/').map(|(end, _)| &relative[..end]);
    match above.into_iter().find(|part| base.join(part).is_symlink()) {
        Some(link) => Err(InstallError::Link(link.into())),
        None => Ok(()),
    }
}

/// Looks at the folder of a package.
pub(crate) fn look(folder: &Path, package: &str) -> Result<Found, Error> {
    match folder.symlink_metadata() {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Found::Nothing),
        Err(e) => return Err(Error::read(folder)(e)),
        Ok(found) if !found.is_dir() => return Ok(Found::Other("it is no folder".into())),
        Ok(_) => {}
    }
    let files = match read(folder, folder).and_then(|files| files.index().map(|index| (files, index))) {
        Ok((files, index)) if index.package == package => files,
        Ok((_, index)) => {
            return Ok(Found::Other(format!("it is an artifact of `{}`", index.package.escape_default())));
        }
        Err(why) => {
            return Ok(Found::Other(format!(
                "it does not hold exactly the files of an artifact ({why}); move it away"
            )));
        }
    };
    Ok(Found::Artifact(Box::new(files)))
}

/// Writes artifacts into their folders, in place of others. All are complete before the first appears.
pub(super) fn write(artifacts: &[Placed<'_>]) -> Result<(), Error> {
    let mut staged = vec![];
    for one in artifacts {
        check_links(one.base, &one.relative)?;
        let folder = one.base.join(&one.relative);
        let parent = folder.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).map_err(Error::write(parent))?;
        if staged.is_empty() {
            forget(parent)?;
        }
        let beside = tempfile::Builder::new().prefix(TEMP_PREFIX).tempdir_in(parent).map_err(Error::write(parent))?;
        let new = beside.path().join("new");
        write_folder_as(&new, &one.files, &folder)?;
        for name in one.files.all().keys() {
            let path = new.join(name);
            std::fs::File::open(&path).and_then(|file| file.sync_data()).map_err(Error::write(&path))?;
        }
        staged.push((beside, new, folder, one));
    }
    for (_beside, new, folder, one) in &staged {
        let Some(old) = put(new, folder, one.replaces.is_some())? else { continue };
        // The user may have saved a file there after it was looked at, which must not go with the old artifact.
        if !is_still(&old, one)? {
            put(&old, folder, true)?;
            return Err(changed(one));
        }
    }
    Ok(())
}

/// Gives a complete folder its name. If `replaces` is set, it takes the place of the folder that has the name; returns where that one lies then, beside `new`.
pub(crate) fn put(new: &Path, folder: &Path, replaces: bool) -> Result<Option<PathBuf>, Error> {
    let flags = if replaces { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
    match renameat_with(CWD, new, CWD, folder, flags) {
        Ok(()) => Ok(replaces.then(|| new.to_path_buf())),
        // A file system without such calls. Between the two, the folder is not there.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let mut old = new.as_os_str().to_owned();
            old.push("-old");
            let old = PathBuf::from(old);
            if replaces {
                std::fs::rename(folder, &old).map_err(Error::write(folder))?;
            }
            std::fs::rename(new, folder).map_err(Error::write(folder))?;
            Ok(replaces.then_some(old))
        }
        Err(errno) => Err(Error::write(folder)(errno.into())),
    }
}

/// Whether a folder still holds exactly what was found before.
fn is_still(folder: &Path, one: &Placed<'_>) -> Result<bool, Error> {
    match look(folder, &one.files.index().map_err(|why| refused(one, why))?.package)? {
        Found::Artifact(found) => Ok(one.replaces.as_ref() == Some(&found)),
        _ => Ok(false),
    }
}

fn refused(one: &Placed<'_>, why: ArtifactError) -> Error {
    VerifyArtifactError::Files { path: one.relative.clone().into(), why }.into()
}

fn changed(one: &Placed<'_>) -> Error {
    InstallError::Occupied { folder: one.relative.clone(), why: "it was changed during the installation".into() }.into()
}

/// Removes what killed processes left.
fn forget(parent: &Path) -> Result<(), Error> {
    forget_all(parent, TEMP_PREFIX)
}

/// Removes the folders in a folder whose names begin with a prefix.
pub(crate) fn forget_all(parent: &Path, prefix: &str) -> Result<(), Error> {
    for entry in std::fs::read_dir(parent).map_err(Error::read(parent))? {
        let path = entry.map_err(Error::read(parent))?.path();
        let is_left = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
        if is_left && path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            std::fs::remove_dir_all(&path).map_err(Error::write(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_pipeline::release::artifact::files::PackageIdentity;

    fn artifact(package: &str, text: &str) -> ArtifactFiles {
        let files = [("a/b".to_string(), text.as_bytes().to_vec())];
        let identity = PackageIdentity { name: package.into(), version: "1.0.0".into(), license: "MIT".into() };
        ArtifactFiles::new(files.into()).unwrap().indexed(identity).unwrap()
    }

    fn placed<'p>(base: &'p Path, package: &str, text: &str, replaces: Option<&str>) -> Placed<'p> {
        let replaces = replaces.map(|text| Box::new(artifact(package, text)));
        Placed { base, relative: package.into(), files: artifact(package, text), replaces }
    }

    fn says(found: Found) -> String {
        match found {
            Found::Nothing => "nothing".into(),
            Found::Artifact(_) => "artifact".into(),
            Found::Other(why) => why,
        }
    }

    #[test]
    fn only_an_artifact_without_a_change_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("p");
        assert_eq!(says(look(&folder, "p").unwrap()), "nothing");
        write(&[placed(dir.path(), "p", "1", None)]).unwrap();
        assert_eq!(says(look(&folder, "p").unwrap()), "artifact");
        assert!(says(look(&folder, "q").unwrap()).contains("an artifact of `p`"));
        std::fs::write(folder.join("mine"), "").unwrap();
        assert!(says(look(&folder, "p").unwrap()).contains("`mine` is not listed"));
        std::fs::remove_file(folder.join("mine")).unwrap();
        std::fs::write(folder.join("a/b"), "2").unwrap();
        assert!(says(look(&folder, "p").unwrap()).contains("`a/b` is not the file"));
        std::os::unix::fs::symlink(&folder, dir.path().join("link")).unwrap();
        assert!(says(look(&dir.path().join("link"), "p").unwrap()).contains("no folder"));
        std::fs::create_dir(dir.path().join("empty")).unwrap();
        assert!(says(look(&dir.path().join("empty"), "p").unwrap()).contains("does not hold exactly"));
    }

    #[test]
    fn an_artifact_takes_the_place_of_another_and_what_was_killed_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("p");
        std::fs::create_dir_all(dir.path().join(".kforge-install-left/new")).unwrap();
        for (text, replaces) in [("1", None), ("2", Some("1"))] {
            write(&[placed(dir.path(), "p", text, replaces), placed(dir.path(), "q", text, replaces)]).unwrap();
            assert_eq!(std::fs::read_to_string(folder.join("a/b")).unwrap(), text);
        }
        let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["p", "q"]);
        // What appeared there in the meantime is not replaced.
        assert!(write(&[placed(dir.path(), "p", "3", None)]).is_err());
        assert_eq!(std::fs::read_to_string(folder.join("a/b")).unwrap(), "2");
        // Nor what was saved there after it was looked at.
        std::fs::write(folder.join("mine"), "m").unwrap();
        let refused = write(&[placed(dir.path(), "p", "3", Some("2"))]).unwrap_err();
        assert!(matches!(refused, Error::Install(InstallError::Occupied { .. })), "{refused}");
        assert_eq!(std::fs::read_to_string(folder.join("a/b")).unwrap(), "2");
        assert_eq!(std::fs::read_to_string(folder.join("mine")).unwrap(), "m");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("kernels")).unwrap();
        let mut one = placed(dir.path(), "p", "1", None);
        for relative in ["kernels/p", "kernels/a/p"] {
            one.relative = relative.into();
            let refused = write(std::slice::from_ref(&one)).unwrap_err();
            assert!(matches!(refused, Error::Install(InstallError::Link(ref link)) if link == "kernels"), "{refused}");
        }
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
        one.relative = "p".into();
        write(&[one]).unwrap();
    }
}
