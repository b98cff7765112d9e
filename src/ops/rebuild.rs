//! When to build again: after a file that the last build read has changed. Knows what the build read and looks at it; builds nothing.
//!
//! It looks at the files five times a second instead of asking the system for notices. A build knows exactly what it read, and where it looked in vain, so
//! there is little to look at, and the state of a file is what the stat cache compares anyway. Notices would need a watch on each folder, because editors
//! replace files, and there are none on network file systems and in many containers.
//!
//! | what was built | what is looked at |
//! |---|---|
//! | a plan was made | what planning asked for: manifests, sources, headers, references, bundles, and absent files; only those of the workspace and packages |
//! | nothing, because of an error | the same of the build before it, and every file of the workspace that may be a manifest, a source or a bundle |
//!
//! Files that change while a build runs count too: they are compared with what was there before it. A change is reported once nothing changes any more, so a
//! file that is written in several parts gives one build, if the pauses are short.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::session::build::Ready;
use crate::session::{Opened, Session};
use kforge_engine::stamps::{Snapshot, is_passing};
use kforge_foundation::base::Witness;
use kforge_project::workspace::root_folder;

/// The time between two looks.
const POLL: Duration = Duration::from_millis(200);

/// How long nothing may change before a build.
const QUIET: Duration = Duration::from_millis(200);

/// A build begins although something still changes, if it has changed for this long.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most files of a workspace that are looked at if no build says which matter.
const MOST_FILES: usize = 20_000;

/// What a build read of its workspace: files, folders, and paths without a file.
pub type BuildInputs = BTreeSet<PathBuf>;

/// What a build read. Outputs, the home and the files of git are left out.
pub(crate) fn inputs(session: &Session, opened: &Opened, ready: &Ready<'_>, overlay: Option<&Path>) -> BuildInputs {
    let (root, target, home) = (&opened.workspace.root, &opened.target, &session.settings.home);
    let in_git = |path: &Path| path.components().any(|part| part.as_os_str() == ".git");
    let is_own = |path: &&PathBuf| path.starts_with(root) && !path.starts_with(target) && !path.starts_with(home);
    let asked = |witness: &Witness| -> Vec<PathBuf> {
        witness.files.iter().chain(&witness.absent).chain(&witness.folders).cloned().collect()
    };
    let planned = asked(&ready.witness);
    let mut all: BuildInputs = planned.iter().filter(is_own).cloned().collect();
    all.extend(ready.leaves.files().cloned());
    all.extend(asked(&opened.workspace.witness));
    all.extend(overlay.map(|path| session.cwd.join(path)));
    all.retain(|path| !in_git(path));
    all
}

/// Watches what builds read.
#[derive(Debug, Default)]
pub struct Watcher {
    paths: BuildInputs,
    /// The folder of the workspace, if no build says which of its files matter.
    folder: Option<PathBuf>,
    /// What was there before the build.
    before: Snapshot,
    /// What was there after it.
    after: Snapshot,
    began: Option<SystemTime>,
}

impl Watcher {
    /// A build begins.
    pub fn begin(&mut self) {
        self.began = Some(SystemTime::now());
        self.before = self.look();
    }

    /// The build has ended. `inputs` is what it read; none if no plan could be made.
    pub fn ended(&mut self, session: &Session, inputs: Option<BuildInputs>) {
        self.folder = match inputs {
            Some(inputs) => {
                self.paths = inputs;
                None
            }
            // The manifest itself may have an error, or be gone for a moment.
            None => session.manifest().ok().map(|manifest| root_folder(&manifest)).or_else(|| self.folder.take()),
        };
        self.after = self.look();
    }

    /// The number of files that are watched.
    pub fn files(&self) -> usize {
        self.after.files()
    }

    /// Whether there is anything to watch.
    pub fn is_idle(&self) -> bool {
        self.paths.is_empty() && self.folder.is_none()
    }

    /// Waits until something has changed since the build began to read, and then until nothing changes any more. Returns the paths; none if `interrupted` was
    /// set.
    pub fn wait(&self, interrupted: &AtomicBool) -> Option<Vec<PathBuf>> {
        loop {
            let mut now = self.look();
            let mut changed = self.changed(&now);
            let since = Instant::now();
            while !changed.is_empty() {
                if !pause(QUIET, interrupted) {
                    return None;
                }
                let next = self.look();
                let is_quiet = next == now;
                changed = self.changed(&next);
                now = next;
                if is_quiet || since.elapsed() > PATIENCE {
                    break;
                }
            }
            if !changed.is_empty() {
                return Some(changed);
            }
            if !pause(POLL, interrupted) {
                return None;
            }
        }
    }

    fn changed(&self, now: &Snapshot) -> Vec<PathBuf> {
        let mut all: BTreeSet<PathBuf> = self.after.differing(now).into_iter().collect();
        // While the build ran: against what was known before it, or by the time of writing.
        all.extend(self.before.differing(&self.after));
        all.extend(self.began.iter().flat_map(|began| self.after.written_since(*began, &self.before)));
        // A new file of a workspace is in no earlier look.
        if self.folder.is_some() {
            let began = self.began.unwrap_or(SystemTime::UNIX_EPOCH);
            all.extend(now.written_since(began, &self.after));
        }
        all.into_iter().collect()
    }

    fn look(&self) -> Snapshot {
        let walked = self.folder.iter().flat_map(|folder| files_below(folder));
        Snapshot::of(self.paths.iter().cloned().chain(walked))
    }
}

/// The endings of files that a build may read. Other files, such as a log of the watch itself, are not watched.
const READ: [&str; 15] =
    ["toml", "cu", "cuh", "h", "hh", "hpp", "hxx", "inl", "inc", "c", "cc", "cpp", "cxx", "py", "kfe"];

/// The files of a workspace that a build may read, without hidden ones and outputs.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let skip = |entry: &walkdir::DirEntry| {
        entry.depth() > 0 && (is_passing(entry.file_name()) || entry.file_name() == "target")
    };
    let all = walkdir::WalkDir::new(folder).into_iter().filter_entry(|entry| !skip(entry)).flatten();
    let is_read = |path: &Path| path.extension().and_then(|e| e.to_str()).is_some_and(|e| READ.contains(&e));
    let files = all.filter(|entry| entry.file_type().is_file() && is_read(entry.path()));
    files.map(walkdir::DirEntry::into_path).take(MOST_FILES).collect()
}

/// Waits; returns false if `interrupted` is set.
fn pause(time: Duration, interrupted: &AtomicBool) -> bool {
    let slice = Duration::from_millis(20);
    let end = Instant::now() + time;
    while Instant::now() < end {
        if interrupted.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(slice);
    }
    !interrupted.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A watcher of a file that a build has read.
    fn watcher(path: &Path) -> Watcher {
        let mut watcher = Watcher { paths: [path.to_path_buf()].into(), ..Watcher::default() };
        watcher.begin();
        watcher.after = watcher.look();
        watcher
    }

    #[test]
    fn a_file_that_is_written_in_parts_is_one_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cu");
        std::fs::write(&path, "0").unwrap();
        let watcher = watcher(&path);
        let writer = std::thread::spawn({
            let path = path.clone();
            move || {
                for part in 1..5 {
                    std::fs::write(&path, "x".repeat(part * 10)).unwrap();
                    std::thread::sleep(Duration::from_millis(80));
                }
            }
        });
        assert_eq!(watcher.wait(&AtomicBool::new(false)), Some(vec![path.clone()]));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 40, "the last part was written before the wait ended");
        writer.join().unwrap();
    }

    #[test]
    fn a_change_while_the_build_runs_counts_and_an_interrupt_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cu");
        std::fs::write(&path, "0").unwrap();
        let mut watched = watcher(&path);
        std::fs::write(&path, "changed").unwrap();
        watched.after = watched.look();
        assert_eq!(watched.wait(&AtomicBool::new(false)), Some(vec![path.clone()]));
        watched.before = watched.after.clone();
        let interrupted = Arc::new(AtomicBool::new(false));
        let other = interrupted.clone();
        let waiting = std::thread::spawn(move || watched.wait(&other));
        interrupted.store(true, Ordering::Relaxed);
        assert_eq!(waiting.join().unwrap(), None);
    }

    #[test]
    fn without_a_plan_every_file_of_the_workspace_counts_except_outputs() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("target/kforge")).unwrap();
        for name in ["kernel.toml", ".hidden.cu", "log", "target/kforge/k.cu"] {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(files_below(dir.path()), [at("kernel.toml")]);
        let mut watcher = Watcher { folder: Some(dir.path().to_path_buf()), ..Watcher::default() };
        watcher.begin();
        watcher.after = watcher.look();
        std::fs::write(at("new.cu"), "").unwrap();
        assert_eq!(watcher.wait(&AtomicBool::new(false)), Some(vec![at("new.cu")]));
    }
}
