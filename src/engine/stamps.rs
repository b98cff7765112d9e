//! The state of files and folders at a moment, to find out what has changed since. Reads metadata and the names in folders; never contents. Does not know what
//! the paths are for.
//!
//! The state of a file is that of the stat cache ([`super::stat`]): size, times and inode. That of a folder is the names in it without hidden ones and backups,
//! so that the files that editors make for a moment are no change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::stat::{Stat, ns_of};

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// Nothing, or nothing that can be looked at.
    Nothing,
    /// A file.
    File(Stat),
    /// A folder with these names in it.
    Folder(BTreeSet<OsString>),
}

impl Seen {
    fn at(path: &Path) -> Seen {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
                Seen::Folder(entries.map(|entry| entry.file_name()).filter(|name| !is_passing(name)).collect())
            }
            Ok(found) => Seen::File(Stat::of(&found)),
            Err(_) => Seen::Nothing,
        }
    }
}

/// Whether a name is that of a hidden file, or of one that an editor makes while it writes another one.
pub fn is_passing(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    // vim creates a file named `4913` to find out whether it may write in a folder.
    name.starts_with('.') || name.starts_with('#') || name.ends_with('~') || name == "4913"
}

/// What was at paths at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    seen: BTreeMap<PathBuf, Seen>,
}

impl Snapshot {
    /// What is at these paths now.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Snapshot {
        Snapshot { seen: paths.into_iter().map(|path| (path.clone(), Seen::at(&path))).collect() }
    }

    /// The paths at which something else was at the other moment. A path that only one of the two contains does not count.
    pub fn differing(&self, other: &Snapshot) -> Vec<PathBuf> {
        let differs = |(path, seen): &(&PathBuf, &Seen)| other.seen.get(*path).is_some_and(|known| known != *seen);
        self.seen.iter().filter(differs).map(|(path, _)| path.clone()).collect()
    }

    /// The paths that the other does not know, with files that were written at that moment or later.
    pub fn written_since(&self, moment: SystemTime, other: &Snapshot) -> Vec<PathBuf> {
        let moment = ns_of(moment);
        let is_new = |(path, seen): &(&PathBuf, &Seen)| {
            !other.seen.contains_key(*path) && matches!(seen, Seen::File(stat) if !stat.older_than(moment))
        };
        self.seen.iter().filter(is_new).map(|(path, _)| path.clone()).collect()
    }

    /// The number of files among them.
    pub fn files(&self) -> usize {
        self.seen.values().filter(|seen| matches!(seen, Seen::File(_))).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_edit_a_new_file_and_a_removed_one_are_changes_and_the_files_of_editors_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let paths = || [at("a.cu"), at("absent.h"), dir.path().to_path_buf()];
        std::fs::write(at("a.cu"), "1").unwrap();
        let before = Snapshot::of(paths());
        assert_eq!((before.files(), before.differing(&Snapshot::of(paths()))), (1, vec![]));
        for name in [".a.cu.swp", "a.cu~", "4913", "#a.cu#"] {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(before.differing(&Snapshot::of(paths())), Vec::<PathBuf>::new());
        // Another size shows even within one tick of the clock.
        std::fs::write(at("a.cu"), "22").unwrap();
        assert_eq!(before.differing(&Snapshot::of(paths())), [at("a.cu")]);
        std::fs::write(at("absent.h"), "").unwrap();
        let now = Snapshot::of(paths());
        assert_eq!(before.differing(&now), [dir.path().to_path_buf(), at("a.cu"), at("absent.h")]);
        std::fs::remove_file(at("a.cu")).unwrap();
        assert!(now.differing(&Snapshot::of(paths())).contains(&at("a.cu")));
    }

    #[test]
    fn of_paths_that_were_not_known_those_count_that_were_written_since() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cu");
        std::fs::write(&path, "1").unwrap();
        let (known, now) = (Snapshot::default(), Snapshot::of([path.clone()]));
        let earlier = SystemTime::now() - Duration::from_secs(60);
        assert_eq!(now.written_since(earlier, &known), [path]);
        assert_eq!(now.written_since(SystemTime::now() + Duration::from_secs(60), &known), Vec::<PathBuf>::new());
        assert_eq!(now.written_since(earlier, &now), Vec::<PathBuf>::new());
    }
}
