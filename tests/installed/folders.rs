//! Where tests keep their workspaces and homes: in memory where that is large enough and lets programs run, else below the target folder. Creating and deleting
//! thousands of small files on a disk takes a third of the time of these tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

/// File systems in memory are mounted here.
const MEMORY: &str = "/dev/shm";
/// The least room there, in bytes.
const LEAST_ROOM: u64 = 2 << 30;
/// What names of folders in memory begin with; the id of the process that created one follows.
const PREFIX: &str = "kforge-test-";

/// An empty folder.
pub(crate) fn folder() -> TempDir {
    tempfile::Builder::new().prefix(&prefix()).tempdir_in(base()).unwrap()
}

/// What the names of this process's folders begin with.
pub(crate) fn prefix() -> String {
    format!("{PREFIX}{}-", std::process::id())
}

/// The folder in which all folders are created.
fn base() -> &'static Path {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    BASE.get_or_init(|| {
        let usable = is_usable(Path::new(MEMORY));
        let base = PathBuf::from(if usable { MEMORY } else { env!("CARGO_TARGET_TMPDIR") });
        for base in [&base, Path::new(env!("CARGO_TARGET_TMPDIR"))] {
            remove_abandoned(base);
        }
        base
    })
}

/// Whether the folder is writable, has enough room, and programs in it can be run: kernels for `cpu` are loaded from there.
fn is_usable(memory: &Path) -> bool {
    let room = rustix::fs::statvfs(memory).map(|found| found.f_bavail * found.f_frsize);
    let flags = rustix::fs::statvfs(memory).map(|found| found.f_flag);
    let may_run = flags.is_ok_and(|flags| !flags.contains(rustix::fs::StatVfsMountFlags::NOEXEC));
    room.is_ok_and(|room| room >= LEAST_ROOM) && may_run && tempfile::tempdir_in(memory).is_ok()
}

/// Removes what earlier tests left that were killed, and folders that they used to the end.
fn remove_abandoned(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
