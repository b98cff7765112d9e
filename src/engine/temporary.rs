//! Temporary folders that outlive no process for long: each is locked by its owner, and whoever creates the next one removes those that nobody owns any more.
//! Knows the system's temporary folder and locks; does not know what the folders are for.
//!
//! | decision | because |
//! |---|---|
//! | a lock file in the folder says that its owner lives | a process id may be another process by now, and a lock ends with its process however that ends |
//! | contents are in a folder beside the lock file | nothing that is written there can take the place of the lock file |
//! | only real folders of the same user are removed, and only those that look exactly as they were made: the name, the mode, the entries | the system's temporary folder is shared: others can put links into it, and the user can have folders of similar names |
//! | the lock file gets its name when it is locked | whoever sees it would otherwise take a new folder for an abandoned one |
//! | a folder without a lock file is removed after a day if it is empty | its owner may be about to lock it |

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::lock::{Lock, LockError, Mode, Wait};

/// The lock file in each folder.
const LOCK: &str = "lock";
/// Its name until it is locked.
const UNLOCKED: &str = "lock.new";
/// The folder with the contents.
const CONTENTS: &str = "files";
/// How many random characters end a name.
const RANDOM: usize = 6;
/// The mode with which folders are made.
const MODE: u32 = 0o700;
/// How long a folder without a lock file stays.
const UNLOCKED_AGE: Duration = Duration::from_secs(24 * 3600);

/// What a temporary folder is for, which is the beginning of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// An artifact that is verified, and its rebuild.
    Artifact,
    /// An artifact whose champions run again.
    Rerun,
    /// Two builds that are compared.
    Reproduce,
}

impl Purpose {
    const ALL: [Purpose; 3] = [Purpose::Artifact, Purpose::Rerun, Purpose::Reproduce];

    fn prefix(self) -> &'static str {
        match self {
            Purpose::Artifact => ".kforge-artifact-",
            Purpose::Rerun => ".kforge-rerun-",
            Purpose::Reproduce => ".kforge-reproduce-",
        }
    }
}

/// A temporary folder, removed when it is dropped. If its process is killed, the next [`Temporary::create`] of the same user removes it.
#[derive(Debug)]
pub struct Temporary {
    // Dropped in this order: what is removed is still locked.
    folder: TempDir,
    _lock: Lock,
}

impl Temporary {
    /// Creates an empty folder in the system's temporary folder, and removes those there whose processes were killed.
    ///
    /// # Errors
    /// The folder cannot be created or locked.
    pub fn create(purpose: Purpose) -> io::Result<Temporary> {
        let parent = std::env::temp_dir();
        sweep(&parent, SystemTime::now());
        Self::create_in(&parent, purpose)
    }

    fn create_in(parent: &Path, purpose: Purpose) -> io::Result<Temporary> {
        let mut named = tempfile::Builder::new();
        named.prefix(purpose.prefix()).rand_bytes(RANDOM).permissions(Permissions::from_mode(MODE));
        let folder = named.tempdir_in(parent)?;
        std::fs::create_dir(folder.path().join(CONTENTS))?;
        let unlocked = folder.path().join(UNLOCKED);
        let lock = Lock::acquire(&unlocked, Mode::Exclusive, Wait::No).map_err(|error| match error {
            LockError::Io { source, .. } => source,
            LockError::Busy(_) | LockError::Interrupted(_) => io::ErrorKind::WouldBlock.into(),
        })?;
        // A lock belongs to the open file, whatever its name.
        std::fs::rename(unlocked, folder.path().join(LOCK))?;
        Ok(Temporary { folder, _lock: lock })
    }

    /// The folder for contents.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(CONTENTS)
    }
}

/// Removes the folders that no living process owns. What cannot be read or removed stays: it is only litter.
fn sweep(parent: &Path, now: SystemTime) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = |purpose: Purpose| {
            let rest = name.as_encoded_bytes().strip_prefix(purpose.prefix().as_bytes());
            rest.is_some_and(|rest| rest.len() == RANDOM && rest.iter().all(u8::is_ascii_alphanumeric))
        };
        if Purpose::ALL.into_iter().any(is_ours) {
            forget(&entry.path(), now);
        }
    }
}

/// Removes one folder if it is this user's and no living process owns it.
fn forget(folder: &Path, now: SystemTime) {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = folder.symlink_metadata() else { return };
    let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o7777 == MODE;
    let Some(names) = is_ours.then(|| names(folder)).flatten() else { return };
    if names.iter().any(|name| ![LOCK, UNLOCKED, CONTENTS].contains(&name.as_str())) {
        return;
    }
    if names.iter().any(|name| name == LOCK) {
        // On a file system without locks, nothing says whether the owner lives.
        if let Some(_held) = Lock::of_existing(&folder.join(LOCK)) {
            let _ = std::fs::remove_dir_all(folder);
        }
        return;
    }
    let age = found.modified().ok().and_then(|then| now.duration_since(then).ok());
    if age.is_some_and(|age| age > UNLOCKED_AGE) {
        // Neither call removes anything that has contents.
        let _ = std::fs::remove_dir(folder.join(CONTENTS));
        let _ = std::fs::remove_dir(folder);
    }
}

/// The names in a folder; none if it cannot be read.
fn names(folder: &Path) -> Option<Vec<String>> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(parent: &Path) -> usize {
        std::fs::read_dir(parent).unwrap().count()
    }

    #[test]
    fn a_folder_is_removed_with_its_owner_or_after_it() {
        let parent = tempfile::tempdir().unwrap();
        let living = Temporary::create_in(parent.path(), Purpose::Artifact).unwrap();
        std::fs::write(living.path().join("a"), "a").unwrap();
        sweep(parent.path(), SystemTime::now());
        assert!(living.path().join("a").exists(), "its owner lives");
        // A process that is killed drops its locks and nothing else.
        let Temporary { folder, _lock } = Temporary::create_in(parent.path(), Purpose::Reproduce).unwrap();
        let left = folder.keep();
        drop(_lock);
        std::fs::write(left.join(CONTENTS).join("b"), "b").unwrap();
        assert_eq!(folders(parent.path()), 2);
        sweep(parent.path(), SystemTime::now());
        assert!(!left.exists() && living.path().exists());
        drop(living);
        assert_eq!(folders(parent.path()), 0);
    }

    #[test]
    fn processes_at_once_do_not_remove_each_others_folders() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        sweep(parent.path(), SystemTime::now());
                        let own = Temporary::create_in(parent.path(), Purpose::Artifact).unwrap();
                        sweep(parent.path(), SystemTime::now());
                        std::fs::write(own.path().join("a"), "a").unwrap();
                        assert!(own.path().join("a").exists());
                    }
                });
            }
        });
        sweep(parent.path(), SystemTime::now());
        assert_eq!(folders(parent.path()), 0);
    }

    /// A folder as a killed process leaves it, under a name.
    fn left(parent: &Path, name: &str) -> PathBuf {
        let Temporary { folder, _lock } = Temporary::create_in(parent, Purpose::Artifact).unwrap();
        let path = parent.join(name);
        std::fs::rename(folder.keep(), &path).unwrap();
        path
    }

    #[test]
    fn what_is_linked_or_young_or_differs_from_what_is_made_stays() {
        let (parent, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = left(elsewhere.path(), ".kforge-artifact-target");
        std::os::unix::fs::symlink(&target, parent.path().join(".kforge-artifact-linked")).unwrap();
        let of = |name: &str| left(parent.path(), name);
        let (more, open, named, lengthy) = (
            of(".kforge-artifact-aaaaaa"),
            of(".kforge-rerun-bbbbbb"),
            of("kforge-rerun-cccccc"),
            of(".kforge-artifact-1.2.0"),
        );
        std::fs::write(more.join("mine"), "mine").unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        // A lock file that is a link is no lock of ours, and nothing appears where it leads.
        let linked = of(".kforge-rerun-dddddd");
        std::fs::remove_file(linked.join(LOCK)).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("new"), linked.join(LOCK)).unwrap();
        sweep(parent.path(), SystemTime::now() + 2 * UNLOCKED_AGE);
        for stays in [&more, &open, &named, &lengthy, &linked, &target] {
            assert!(stays.join(CONTENTS).exists(), "{}", stays.display());
        }
        assert!(!elsewhere.path().join("new").exists());
        let made = of(".kforge-artifact-eeeeee");
        sweep(parent.path(), SystemTime::now());
        assert!(!made.exists());
    }

    #[test]
    fn a_folder_without_a_lock_goes_after_a_day_unless_it_holds_something() {
        let parent = tempfile::tempdir().unwrap();
        let of = |name: &str| {
            let folder = left(parent.path(), name);
            std::fs::remove_file(folder.join(LOCK)).unwrap();
            folder
        };
        let (empty, full) = (of(".kforge-rerun-aaaaaa"), of(".kforge-rerun-bbbbbb"));
        std::fs::write(full.join(CONTENTS).join("a"), "a").unwrap();
        sweep(parent.path(), SystemTime::now());
        assert!(empty.exists());
        sweep(parent.path(), SystemTime::now() + 2 * UNLOCKED_AGE);
        assert!(!empty.exists() && full.join(CONTENTS).join("a").exists());
    }
}
