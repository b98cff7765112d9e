//! Records what a command asked the file system before a decision, so that a later command can check whether the answers are still the same. Does not know what
//! the paths are for.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Questions and their answers: the files that were read, the paths where no file was found, and the folders that were listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Witness {
    /// Files that exist. Their contents were read, or their existence mattered.
    pub files: HashSet<PathBuf>,
    /// Paths where no file exists but where a file would have mattered.
    pub absent: HashSet<PathBuf>,
    /// Folders whose entries mattered.
    pub folders: HashSet<PathBuf>,
}

impl Witness {
    /// Whether there is a file at `path`. Anything else there counts as not found.
    pub fn is_file(&mut self, path: &Path) -> bool {
        let there = path.is_file();
        self.saw(path, there);
        there
    }

    /// Records an answer that was obtained elsewhere.
    pub fn saw(&mut self, path: &Path, there: bool) {
        let answers = if there { &mut self.files } else { &mut self.absent };
        if !answers.contains(path) {
            answers.insert(path.to_path_buf());
        }
    }

    /// Records that a folder's entries mattered.
    pub fn listed(&mut self, folder: &Path) {
        if !self.folders.contains(folder) {
            self.folders.insert(folder.to_path_buf());
        }
    }

    /// Adds what another witness recorded.
    pub fn add(&mut self, other: Witness) {
        for (mine, more) in
            [(&mut self.files, other.files), (&mut self.absent, other.absent), (&mut self.folders, other.folders)]
        {
            // Extend the larger set with the smaller one, because hashing a path is expensive.
            let smaller = if mine.len() < more.len() { std::mem::replace(mine, more) } else { more };
            mine.extend(smaller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mut witness = Witness::default();
        assert!(witness.is_file(&file));
        assert!(!witness.is_file(dir.path()), "a folder is no file");
        witness.listed(dir.path());
        let mut all = Witness::default();
        all.add(witness);
        assert_eq!(all.files, [file].into());
        assert_eq!((all.absent, all.folders), ([dir.path().to_path_buf()].into(), [dir.path().to_path_buf()].into()));
    }
}
