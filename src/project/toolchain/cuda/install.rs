//! Installs locked wheels once for all processes of a machine. Knows folders, locks and pip, but not the contents of wheels.
//!
//! A set of wheels is stored in a folder named by the digest of the set. kforge builds that folder beside its final place under another name, checks it against
//! the lockfile, and renames it when it is complete. A crash therefore leaves only a partial folder, which the next install of the same set removes. Each set
//! has a lock file: a second process waits for the lock and then finds the set installed.

use std::path::{Path, PathBuf};

use super::unpack;
use crate::toolchain::Error;
use crate::toolchain::pip::Pip;
use crate::workspace::lockfile::LockedWheel;
use kforge_foundation::base::{Digest, lock};

/// The progress of an installation, to show to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Another process is installing the same set.
    Waiting,
    /// Wheels are being downloaded.
    Downloading {
        /// The projects of the wheels.
        names: Vec<String>,
        /// Bytes downloaded so far.
        bytes: u64,
        /// Bytes in total.
        total: u64,
    },
    /// A wheel has been checked and is being unpacked.
    Unpacking {
        /// The wheel's project.
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

/// The folder of a set of wheels, whether it exists or not.
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

/// Installs a set of wheels below `toolchains`, unless it is already installed, and returns its folder.
///
/// # Errors
/// A wheel cannot be downloaded, differs from the locked one, or cannot be unpacked; or the set is not installed and `source` is offline.
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
        // A process that ended left this folder. No other process can be using it, because this process holds the set's lock.
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
    // One sync for thousands of files. After the rename, kforge trusts the folder without reading its files.
    rustix::fs::syncfs(std::fs::File::open(&tree).map_err(io)?).map_err(|e| io(e.into()))?;
    std::fs::rename(&tree, &folder).map_err(io)?;
    Ok(folder)
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
