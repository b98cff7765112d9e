//! What a command asked of the file system while it made up its mind, so that somebody can tell later whether it would be told the same. Knows paths; does not
//! know what they are for.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Questions and their answers: what was read, what was looked for in vain, whose entries were listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Witness {
    /// Files that are there: what they hold was read, or that they are there counted.
    pub files: HashSet<PathBuf>,
    /// Where nothing is, and something would have counted.
    pub absent: HashSet<PathBuf>,
    /// Folders whose entries counted.
    pub folders: HashSet<PathBuf>,
}

impl Witness {
    /// Whether there is a file at `path`. Something else there counts as looked for in vain.
    pub fn is_file(&mut self, path: &Path) -> bool {
        let there = path.is_file();
        self.saw(path, there);
        there
    }

    /// Takes down an answer that was had otherwise.
    pub fn saw(&mut self, path: &Path, there: bool) {
        let answers = if there { &mut self.files } else { &mut self.absent };
        if !answers.contains(path) {
            answers.insert(path.to_path_buf());
        }
    }

    /// Takes down that a folder's entries counted.
    pub fn listed(&mut self, folder: &Path) {
        if !self.folders.contains(folder) {
            self.folders.insert(folder.to_path_buf());
        }
    }

    /// Adds what another one saw.
    pub fn add(&mut self, other: Witness) {
        for (mine, more) in
            [(&mut self.files, other.files), (&mut self.absent, other.absent), (&mut self.folders, other.folders)]
        {
            // The smaller into the larger: to hash a path costs.
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
