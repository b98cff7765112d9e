//! Limits on what a child and everything that it starts may use together. Knows `/proc` and folders; does not end any process. The system only has limits for
//! one process, and a child that starts other processes, or writes many files, stays within each of those limits.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Rule, family};

/// How often the resource use of a child and its descendants is checked.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Limits on what a child and everything that it starts may use together. They are checked periodically, so the processes may briefly exceed them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Maximum number of processes. [`super::run`] counts the descendants of *this* process, with orphans, because this process adopts them
    /// ([`family::adopt_orphans`]). These limits are therefore only for a process that has one child at a time. [`super::Talker::exchange_in`] counts the
    /// descendants of its child.
    pub processes: usize,
    /// Maximum bytes of memory that these processes hold together.
    pub memory: u64,
    /// The folder in which the child writes.
    pub folder: PathBuf,
    /// Maximum total bytes of the files in the folder.
    pub bytes: u64,
    /// Maximum number of files and folders in the folder.
    pub files: usize,
}

impl Room {
    /// Which of these limits the descendants of a process exceed now.
    pub(super) fn exceeded(&self, of: u32) -> Option<Rule> {
        let all = family::descendants(of);
        if all.len() > self.processes {
            return Some(Rule::Processes);
        }
        if all.into_iter().map(resident).sum::<u64>() > self.memory {
            return Some(Rule::Memory);
        }
        match taken(&self.folder, self.files, self.bytes) {
            (files, _) if files > self.files => Some(Rule::Files),
            (_, bytes) if bytes > self.bytes => Some(Rule::FileBytes),
            _ => None,
        }
    }
}

/// Bytes of memory that a process holds; 0 if it has ended.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let words =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(|line| line.split_whitespace().next());
    words.and_then(|kibibytes| kibibytes.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The number of files and folders below a folder, and the bytes that they take on the disk. Stops counting beyond either limit. Does not follow links.
fn taken(folder: &Path, most_files: usize, most_bytes: u64) -> (usize, u64) {
    let (mut files, mut bytes) = (0, 0);
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        // An entry that was removed in the meantime takes no space.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            files += 1;
            bytes += metadata.blocks() * 512;
            if files > most_files || bytes > most_bytes {
                return (files, bytes);
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    (files, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_at_any_depth_and_links_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/c"), [1; 10_000]).unwrap();
        std::os::unix::fs::symlink("/usr", dir.path().join("a/usr")).unwrap();
        let (files, bytes) = taken(dir.path(), 100, 1 << 30);
        assert_eq!(files, 4);
        assert!((10_000..100_000).contains(&bytes), "{bytes}");
        assert_eq!(taken(dir.path(), 2, 1 << 30).0, 3);
    }

    #[test]
    fn what_a_process_holds_is_known_until_it_ends() {
        assert!(resident(std::process::id()) > 100_000);
        assert_eq!(resident(u32::MAX), 0);
    }
}
