//! The folders of installed artifacts: what is there, and how an artifact gets there as a whole. Knows files; does not know where they come from.
//!
//! An artifact is written into a folder beside its own, whose name begins with [`TEMP_PREFIX`]. It then changes places with what was there in one call of the
//! system. A process that is killed leaves at most such a folder, which the next installation removes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::Error;
use crate::package::write::write_folder;
use crate::verify_artifact::read;
use kforge_pipeline::release::artifact::ArtifactFiles;

/// The beginning of the names of folders that are not complete.
const TEMP_PREFIX: &str = ".kforge-install-";

/// What a folder holds.
pub(super) enum Found {
    /// It does not exist.
    Nothing,
    /// Exactly the files of an artifact of the package.
    Artifact(Box<ArtifactFiles>),
    /// Something else, in words.
    Other(String),
}

/// An artifact for a folder.
pub(super) struct Placed {
    /// The folder.
    pub(super) folder: PathBuf,
    /// The files.
    pub(super) files: ArtifactFiles,
    /// Whether an artifact is there, which it replaces.
    pub(super) replaces: bool,
}

/// Looks at the folder of a package.
pub(super) fn look(folder: &Path, package: &str) -> Result<Found, Error> {
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
pub(super) fn write(artifacts: &[Placed]) -> Result<(), Error> {
    let mut staged = vec![];
    for Placed { folder, files, replaces } in artifacts {
        let parent = folder.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(Error::write(parent))?;
        if staged.is_empty() {
            forget(parent)?;
        }
        let beside = tempfile::Builder::new().prefix(TEMP_PREFIX).tempdir_in(parent).map_err(Error::write(parent))?;
        let new = beside.path().join("new");
        write_folder(&new, files)?;
        for name in files.all().keys() {
            let path = new.join(name);
            std::fs::File::open(&path).and_then(|file| file.sync_data()).map_err(Error::write(&path))?;
        }
        staged.push((beside, new, folder, *replaces));
    }
    for (_beside, new, folder, replaces) in &staged {
        put(new, folder, *replaces)?;
    }
    Ok(())
}

/// Gives a complete folder its name. If `replaces` is set, it changes places with the folder that has the name.
pub(crate) fn put(new: &Path, folder: &Path, replaces: bool) -> Result<(), Error> {
    let flags = if replaces { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
    match renameat_with(CWD, new, CWD, folder, flags) {
        Ok(()) => Ok(()),
        // A file system without such calls. Between the two, the folder is not there.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            if replaces {
                std::fs::rename(folder, new.with_file_name("old")).map_err(Error::write(folder))?;
            }
            std::fs::rename(new, folder).map_err(Error::write(folder))
        }
        Err(errno) => Err(Error::write(folder)(errno.into())),
    }
}

/// Removes the folders that killed processes left.
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

    fn placed(folder: &Path, package: &str, text: &str, replaces: bool) -> Placed {
        Placed { folder: folder.into(), files: artifact(package, text), replaces }
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
        write(&[placed(&folder, "p", "1", false)]).unwrap();
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
        for (text, replaces) in [("1", false), ("2", true)] {
            write(&[placed(&folder, "p", text, replaces), placed(&dir.path().join("q"), "q", text, replaces)]).unwrap();
            assert_eq!(std::fs::read_to_string(folder.join("a/b")).unwrap(), text);
        }
        let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["p", "q"]);
        // What appeared there in the meantime is not replaced.
        assert!(write(&[placed(&folder, "p", "3", false)]).is_err());
        assert_eq!(std::fs::read_to_string(folder.join("a/b")).unwrap(), "2");
    }
}
