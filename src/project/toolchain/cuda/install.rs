//! Installs locked wheels once for all processes of a machine. Knows folders, locks and pip; does not know what is in the wheels.
//!
//! A set of wheels is stored in a folder named by the digest of the set. kforge builds it beside that folder under another name, checks it against the
//! lockfile, and renames it when it is complete, so that a crash leaves only what the next install of the same set removes. A lock file per set makes a second
//! process wait and find the work done.

use std::path::{Path, PathBuf};

use super::unpack;
use crate::toolchain::Error;
use crate::toolchain::pip::Pip;
use crate::workspace::lockfile::LockedWheel;
use kforge_foundation::base::{Digest, lock};

/// What an installation is doing, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Another process installs the same.
    Waiting,
    /// Bytes that are there of those there will be.
    Downloading {
        /// The wheels' projects.
        names: Vec<String>,
        /// So far.
        bytes: u64,
        /// In all.
        total: u64,
    },
    /// A wheel is checked and unpacked.
    Unpacking {
        /// Its project.
        name: String,
    },
}

/// Where wheels may come from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// The user's indexes.
    Pip(&'a Pip),
    /// Nowhere: `--offline`.
    Offline,
}

/// The folder of a set of wheels, whether it is there or not.
pub fn folder_of(wheels: &[LockedWheel], toolchains: &Path) -> PathBuf {
    toolchains.join(name_of(wheels))
}

fn name_of(wheels: &[LockedWheel]) -> String {
    Digest::of(listing(wheels).as_bytes()).hex()[..32].to_string()
}

fn listing(wheels: &[LockedWheel]) -> String {
    let mut lines: Vec<String> =
        wheels.iter().map(|w| format!("{} {} {} {}\n", w.name, w.version, w.file, w.digest)).collect();
    lines.sort();
    lines.concat()
}

/// Installs a set of wheels below `toolchains`, unless it is there, and gives its folder.
///
/// # Errors
/// A wheel cannot be had, is not what was locked, or cannot be unpacked; or it is not there and `source` is offline.
pub fn install_wheels(
    wheels: &[LockedWheel],
    toolchains: &Path,
    source: Source<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, Error> {
    let name = name_of(wheels);
    let folder = toolchains.join(&name);
    if folder.is_dir() {
        return Ok(folder);
    }
    let Source::Pip(pip) = source else {
        return Err(Error::Offline(wheels.to_vec()));
    };
    let io = |source| Error::Install { folder: toolchains.to_owned(), source };
    let _lock =
        lock::exclusive(&toolchains.join(format!(".{name}.lock")), || progress(Progress::Waiting)).map_err(io)?;
    if folder.is_dir() {
        return Ok(folder);
    }
    let prefix = format!(".installing-{name}-");
    for entry in std::fs::read_dir(toolchains).map_err(io)? {
        let entry = entry.map_err(io)?;
        // Left by a process that ended: whoever installs this set holds the lock, and that is us.
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            std::fs::remove_dir_all(entry.path()).map_err(io)?;
        }
    }
    let work = tempfile::Builder::new().prefix(&prefix).tempdir_in(toolchains).map_err(io)?;
    let (download, tree) = (work.path().join("download"), work.path().join("tree"));
    std::fs::create_dir(&download).map_err(io)?;
    std::fs::create_dir(&tree).map_err(io)?;
    let names: Vec<String> = wheels.iter().map(|w| w.name.clone()).collect();
    let total = wheels.iter().map(|w| w.digest.size).sum();
    pip.download(wheels, &download, &mut |bytes| {
        progress(Progress::Downloading { names: names.clone(), bytes: bytes.min(total), total });
    })?;
    for wheel in wheels {
        progress(Progress::Unpacking { name: wheel.name.clone() });
        let file = download.join(&wheel.file);
        unpack::verify(&file, wheel)?;
        unpack::unpack(&file, &tree)?;
        std::fs::remove_file(&file).map_err(io)?;
    }
    std::fs::write(tree.join("wheels.txt"), listing(wheels)).map_err(io)?;
    // One sync for thousands of files: after the rename the folder is believed without a look inside.
    rustix::fs::syncfs(std::fs::File::open(&tree).map_err(io)?).map_err(|e| io(e.into()))?;
    std::fs::rename(&tree, &folder).map_err(io)?;
    Ok(folder)
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
