//! The layout of `$KFORGE_HOME`: where each shared store is, and which stale files are removed from it. Knows folders and times; does not know what the stores
//! hold.
//!
//! | name | holds |
//! |---|---|
//! | `cas/xx/HEX` | contents, by digest |
//! | `actions/xx/HEX` | results, by key |
//! | `evidence/HEX/` | observations of devices, by question |
//! | `signed/HEX` | the signed documents of imported bundles, by the digest of the file |
//! | `answers/` | what agents answered: replies, and recorded answers by chain of rounds |
//! | `candidates/HEX.json` | what became of the candidates of a workspace, by its folder |
//! | `toolchains/` | installed tools |
//! | `scratch/` | files that can be computed again: expected outputs |
//! | `locks/` | lock files: `cache`, `keys/xx/HEX`, `devices/NAME` |
//! | `workspaces/` | the workspaces whose journals keep contents alive |
//! | `tmp/` | files being written, on the same file system as the stores so that a rename publishes them |

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::lock::{Lock, LockError, Mode, Wait};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::{write_atomically, write_if_changed};
use kforge_types::record::event::Trouble;

/// The prefix of files being written. Any program may remove one that is older than [`TEMP_AGE`].
pub const TEMP_PREFIX: &str = ".tmp-";

/// The maximum time for writing a file.
pub const TEMP_AGE: Duration = Duration::from_secs(3600);
/// The maximum time between two writes to a step's folder. It is written to when the step starts and when it ends, with at most its time limit in between.
pub const STEP_AGE: Duration = Duration::from_secs(24 * 3600);

/// Backup programs skip a folder that contains this file (bford.info/cachedir).
const CACHEDIR_TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
    # This folder is a cache made by kforge. Everything in it can be recreated, except the evidence of devices, the answers of agents and the records of candidates.\n";

/// A `$KFORGE_HOME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Opens the home at `root`: creates its folders and tag if they are missing, and removes files that dead writers left behind.
    pub fn open(root: &Path) -> io::Result<Home> {
        let home = Home { root: root.to_path_buf() };
        let shared = ["cas", "actions", "evidence", "signed", "answers", "candidates", "toolchains", "scratch"];
        for name in shared.into_iter().chain(["locks", "workspaces", "tmp"]) {
            let folder = root.join(name);
            std::fs::create_dir_all(&folder).map_err(|e| named(e, Doing::Make, &folder))?;
        }
        let tag = root.join("CACHEDIR.TAG");
        write_if_changed(&tag, CACHEDIR_TAG.as_bytes()).map_err(|e| named(e, Doing::Write, &tag))?;
        // If a file cannot be removed now, the next call tries again.
        let _ = home.sweep(SystemTime::now());
        Ok(home)
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Contents by digest.
    pub fn cas(&self) -> PathBuf {
        self.root.join("cas")
    }

    /// Results by key.
    pub fn actions(&self) -> PathBuf {
        self.root.join("actions")
    }

    /// Observations of devices by question.
    pub fn evidence(&self) -> PathBuf {
        self.root.join("evidence")
    }

    /// The file of a signed document with that name.
    pub fn signed(&self, name: &str) -> PathBuf {
        self.root.join("signed").join(name)
    }

    /// Keeps a signed document under its name, synced to disk.
    ///
    /// # Errors
    /// The home cannot be written.
    pub fn keep_signed(&self, name: &str, file: &[u8]) -> io::Result<()> {
        let place = self.signed(name);
        write_atomically(&place, file, true).map_err(|e| named(e, Doing::Write, &place))
    }

    /// The agents' answers.
    pub fn answers(&self) -> PathBuf {
        self.root.join("answers")
    }

    /// What became of candidates, by workspace.
    pub fn candidates(&self) -> PathBuf {
        self.root.join("candidates")
    }

    /// Installed tools.
    pub fn toolchains(&self) -> PathBuf {
        self.root.join("toolchains")
    }

    /// Files that can be computed again.
    pub fn scratch(&self) -> PathBuf {
        self.root.join("scratch")
    }

    /// Lock files.
    pub fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    /// Files being written.
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// `tmp/steps/`: folders of running steps.
    pub fn steps(&self) -> PathBuf {
        self.tmp().join("steps")
    }

    /// The cache lock: shared by builds, exclusive for collection.
    pub fn lock_cache(&self, mode: Mode, wait: Wait<'_>) -> Result<Lock, LockError> {
        Lock::acquire(&self.locks().join("cache"), mode, wait)
    }

    /// A device's lock: exclusive while one process measures on the device. `name` is the driver's UUID of the device. In the file's name, characters other
    /// than letters, digits, `-` and `_` are replaced by `_`.
    pub fn lock_device(&self, name: &str, mode: Mode, wait: Wait<'_>) -> Result<Lock, LockError> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
        Lock::acquire(&self.locks().join("devices").join(name.chars().map(plain).collect::<String>()), mode, wait)
    }

    /// Keeps alive the contents that the journal at `journal` (an absolute path) refers to, as long as the journal exists.
    pub fn register(&self, journal: &Path) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt;
        let bytes = journal.as_os_str().as_bytes();
        let entry = self.root.join("workspaces").join(Digest::of(bytes).hex());
        match std::fs::read(&entry) {
            Ok(old) if old == bytes => Ok(()),
            _ => publish(&self.tmp(), &entry, bytes, 0o644),
        }
    }

    /// The journals of all registered workspaces that still exist, sorted. Unregisters the others.
    pub fn journals(&self) -> io::Result<Vec<PathBuf>> {
        use std::os::unix::ffi::OsStrExt;
        let mut journals = Vec::new();
        for entry in files_in(&self.root.join("workspaces"))? {
            let Ok(bytes) = std::fs::read(&entry) else { continue };
            let journal = PathBuf::from(OsStr::from_bytes(&bytes));
            match journal.try_exists() {
                Ok(true) => journals.push(journal),
                // The journal or its folder was removed. An error of the file system is no reason to unregister it.
                Ok(false) => drop(std::fs::remove_file(&entry)),
                Err(_) => {}
            }
        }
        journals.sort();
        Ok(journals)
    }

    /// Removes files and folders whose writers died: those named with [`TEMP_PREFIX`] and untouched for [`TEMP_AGE`] before `now`, and those of steps untouched
    /// for [`STEP_AGE`]. Returns how many were removed.
    pub fn sweep(&self, now: SystemTime) -> io::Result<u64> {
        let mut swept = 0;
        let mixed = [self.tmp(), self.scratch(), self.toolchains(), self.root.clone()];
        let mixed = mixed.into_iter().map(|folder| (folder, TEMP_PREFIX, TEMP_AGE));
        // This folder holds only folders of steps, and it exists only once a step has run.
        let steps = Some((self.steps(), "", STEP_AGE)).filter(|(folder, ..)| folder.exists());
        for (folder, prefix, most) in mixed.chain(steps) {
            for entry in std::fs::read_dir(&folder).map_err(|e| named(e, Doing::Read, &folder))? {
                let entry = entry?;
                if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
                    continue;
                }
                let path = entry.path();
                if newest(&path).is_some_and(|t| now.duration_since(t).is_ok_and(|age| age > most)) {
                    let gone = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
                    swept += u64::from(gone.is_ok());
                }
            }
        }
        Ok(swept)
    }
}

/// The last modification time of `path` and of everything below it.
fn newest(path: &Path) -> Option<SystemTime> {
    walkdir::WalkDir::new(path).into_iter().filter_map(|e| e.ok()?.metadata().ok()?.modified().ok()).max()
}

/// An operation on a file or folder, for error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Reading it.
    Read,
    /// Writing it.
    Write,
    /// Writing a file in it.
    WriteIn,
    /// Creating it.
    Make,
    /// Renaming it.
    Move,
    /// Removing it.
    Remove,
    /// Removing it because its contents are damaged.
    RemoveCorrupt,
    /// Syncing it to disk.
    Sync,
    /// Taking it into the store.
    Keep,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doing::Read => "read",
            Doing::Write => "write",
            Doing::WriteIn => "write in",
            Doing::Make => "make",
            Doing::Move => "move",
            Doing::Remove => "remove",
            Doing::RemoveCorrupt => "remove the corrupt",
            Doing::Sync => "sync",
            Doing::Keep => "keep",
        })
    }
}

/// The error inside an [`io::Error`] of [`named`].
#[derive(Debug)]
struct FileError {
    doing: Doing,
    path: PathBuf,
    words: String,
    trouble: Option<Trouble>,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} `{}`: {}", self.doing, self.path.display(), self.words)?;
        self.trouble.map_or(Ok(()), |trouble| write!(f, "; {}", trouble.help()))
    }
}

impl std::error::Error for FileError {}

/// An error that names the file and, if the system is at fault, says what to do.
pub fn named(error: io::Error, doing: Doing, path: &Path) -> io::Error {
    let kind = error.kind();
    let trouble = match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Trouble::Full),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Some(Trouble::Refused),
        io::ErrorKind::NotFound if matches!(doing, Doing::Write | Doing::WriteIn) => Some(Trouble::Gone),
        _ => None,
    };
    let words = error.to_string();
    // The path of a temporary file means nothing to the user.
    let words = words.split_once(" at path \"").map_or(words.as_str(), |(words, _)| words).to_string();
    io::Error::new(kind, FileError { doing, path: path.to_owned(), words, trouble })
}

/// The fault of the system that caused an error of [`named`], if one did. Errors with the same cause have the same value.
pub fn trouble(error: &io::Error) -> Option<Trouble> {
    error.get_ref()?.downcast_ref::<FileError>()?.trouble
}

/// Writes `bytes` to the file `to`, replacing an existing one. A reader sees the whole file or none of it, because it is written in `tmp` first, a folder on
/// the same file system.
pub(super) fn publish(tmp: &Path, to: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    // The mode applies only when the file is next opened, so even a read-only file can be written through this handle.
    let mut temp = tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(tmp)
        .map_err(|e| named(e, Doing::WriteIn, tmp))?;
    temp.write_all(bytes).map_err(|e| named(e, Doing::Write, to))?;
    persist(temp, to)
}

/// Gives a finished temporary file its name, creating the folder if necessary.
pub(super) fn persist(temp: tempfile::NamedTempFile, to: &Path) -> io::Result<()> {
    let temp = match temp.persist(to) {
        Ok(_) => return Ok(()),
        Err(e) if e.error.kind() == io::ErrorKind::NotFound => e.file,
        Err(e) => return Err(named(e.error, Doing::Write, to)),
    };
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(|e| named(e, Doing::Make, parent))?;
    }
    temp.persist(to).map(drop).map_err(|e| named(e.error, Doing::Write, to))
}

/// The files directly in a folder, sorted by name; none if the folder does not exist.
pub(super) fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(e) => return Err(named(e, Doing::Read, folder)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| named(e, Doing::Read, folder))?;
        if entry.file_type().is_ok_and(|t| t.is_file()) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The files two levels down, `xx/name`, sorted: the layout of stores with many entries.
pub(super) fn sharded(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut shards = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| named(e, Doing::Read, folder))? {
        let entry = entry.map_err(|e| named(e, Doing::Read, folder))?;
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            shards.push(entry.path());
        }
    }
    shards.sort();
    let mut files = Vec::new();
    for shard in shards {
        files.extend(files_in(&shard)?);
    }
    Ok(files)
}

/// The hash that names a file in a sharded store; none for any other name.
pub(super) fn hash_of(name: &OsStr) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = name.as_encoded_bytes().try_into().ok()?;
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut hash = [0; 32];
    for (byte, [high, low]) in hash.iter_mut().zip(digits.as_chunks().0) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(hash)
}

/// The path `xx/HEX` relative to a store's root.
pub(super) fn shard(digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    Path::new(&hex[..2]).join(&hex)
}

#[cfg(test)]
mod tests;
