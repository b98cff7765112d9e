//! Changes several files together: all of them or none, even after a crash. Knows texts and paths, but not their meaning.
//!
//! Before kforge touches the first file, it writes all changes to one pending file in kforge's home, never in the workspace, which may belong to another user.
//! The next command that opens the workspace and finds the pending file applies its changes, so a process that is killed between two files leaves nothing half
//! done. The pending file also records what each file held before. If another process has changed any of the files since, kforge drops all the changes.

use std::io;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use kforge_foundation::base::Digest;
use kforge_foundation::base::files::{write_atomically, write_if_changed};

/// A file and its new contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// The digest of the contents before the change; none if the file does not exist.
    pub before: Option<Digest>,
    /// The new contents.
    pub text: String,
}

impl Change {
    /// A change from the present contents of a file.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn of(root: &Path, path: &str, text: String) -> io::Result<Self> {
        Ok(Change { path: path.into(), before: digest(&root.join(path))?, text })
    }

    /// Whether the new contents differ from the contents before.
    pub fn changes(&self) -> bool {
        self.before != Some(Digest::of(self.text.as_bytes()))
    }
}

/// Writes the changes, in order. `pending` is the path of the pending file.
///
/// # Errors
/// If the pending file could not be written, nothing was changed. If a later write failed, the next process that opens the workspace applies the changes.
pub fn write(root: &Path, pending: &Path, changes: &[Change]) -> io::Result<()> {
    if changes.iter().any(Change::changes) {
        if let Some(folder) = pending.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write_atomically(pending, &serde_json::to_vec_pretty(changes)?, true)?;
        finish(root, pending)?;
    }
    Ok(())
}

/// Whether a process began to write changes and did not finish.
pub fn is_pending(pending: &Path) -> bool {
    pending.exists()
}

/// Applies the changes that another process began and did not finish. Returns the files that others have changed since; if there are any, no change is applied.
///
/// # Errors
/// A file cannot be read or written, or a change names a path outside the workspace.
pub fn finish(root: &Path, pending: &Path) -> io::Result<Vec<String>> {
    let bytes = match std::fs::read(pending) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(e) => return Err(e),
    };
    let changes: Vec<Change> = serde_json::from_slice(&bytes)?;
    if let Some(change) = changes.iter().find(|change| !is_inside(root, &change.path)) {
        let why = format!("`{}` names `{}`, which is outside the workspace; remove it", pending.display(), change.path);
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut foreign = vec![];
    for change in &changes {
        let now = digest(&root.join(&change.path))?;
        if now != change.before && now != Some(Digest::of(change.text.as_bytes())) {
            foreign.push(change.path.clone());
        }
    }
    if foreign.is_empty() {
        for change in &changes {
            write_if_changed(&root.join(&change.path), change.text.as_bytes())?;
        }
    }
    match std::fs::remove_file(pending) {
        // Another process has already removed the pending file.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(foreign),
        done => done.map(|()| foreign),
    }
}

/// Whether a path stays in the workspace, links included.
fn is_inside(root: &Path, path: &str) -> bool {
    let mut at = root.to_path_buf();
    Path::new(path).components().all(|part| {
        at.push(part);
        matches!(part, Component::Normal(_)) && !at.is_symlink()
    })
}

fn digest(path: &Path) -> io::Result<Option<Digest>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(Digest::of(&bytes))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(root: &Path) -> Vec<Change> {
        std::fs::write(root.join("b"), "old b").unwrap();
        let of = |path: &str, text: &str| Change::of(root, path, text.into()).unwrap();
        vec![of("a", "new a"), of("b", "new b"), of("c/d", "new d")]
    }

    fn pending(root: &Path) -> std::path::PathBuf {
        root.join("pending.json")
    }

    fn read(root: &Path, path: &str) -> Option<String> {
        std::fs::read_to_string(root.join(path)).ok()
    }

    #[test]
    fn a_process_that_was_killed_after_any_file_leaves_nothing_half_done() {
        for done in 0..=3 {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path();
            let changes = changes(root);
            // The state after a process was killed when it had written `done` files.
            write_atomically(&pending(root), &serde_json::to_vec(&changes).unwrap(), true).unwrap();
            changes[..done]
                .iter()
                .for_each(|c| assert!(write_if_changed(&root.join(&c.path), c.text.as_bytes()).is_ok()));
            assert_eq!(finish(root, &pending(root)).unwrap(), Vec::<String>::new());
            for change in &changes {
                assert_eq!(read(root, &change.path).as_ref(), Some(&change.text));
            }
            assert!(!pending(root).exists());
        }
    }

    #[test]
    fn what_others_changed_meanwhile_is_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let changes = changes(root);
        write_atomically(&pending(root), &serde_json::to_vec(&changes).unwrap(), true).unwrap();
        std::fs::write(root.join("b"), "theirs").unwrap();
        assert_eq!(finish(root, &pending(root)).unwrap(), ["b"]);
        assert_eq!((read(root, "a"), read(root, "b")), (None, Some("theirs".into())));
        assert_eq!(finish(root, &pending(root)).unwrap(), Vec::<String>::new(), "given up once and for all");
    }

    #[test]
    fn nothing_is_written_outside_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("work");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), root.join("link")).unwrap();
        for path in ["../out", "/tmp/out", "a/../../out", "link/out"] {
            let change = Change { path: path.into(), before: None, text: String::new() };
            std::fs::write(pending(&root), serde_json::to_vec(&[change]).unwrap()).unwrap();
            assert!(
                finish(&root, &pending(&root)).unwrap_err().to_string().contains("is outside the workspace"),
                "{path}"
            );
        }
    }

    #[test]
    fn what_is_so_already_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, &pending(root), &changes(root)).unwrap();
        let again: Vec<Change> = ["a", "b"].map(|p| Change::of(root, p, format!("new {p}")).unwrap()).into();
        assert!(!again.iter().any(Change::changes));
        write(root, &pending(root), &again).unwrap();
        assert_eq!(read(root, "b").as_deref(), Some("new b"));
    }
}
