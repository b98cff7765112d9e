//! `kforge clean`: removes what builds have written beside the workspace. The shared cache is `kforge cache`'s.

use std::path::Path;

use super::Ran;
use crate::cli::Context;
use crate::cli::args::CleanArgs;
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_engine::lock::{Lock, LockError, Mode, Wait};
use kforge_foundation::base::count;

/// Runs the command.
pub fn run(context: &Context, args: &CleanArgs) -> Ran {
    let workspace = context.session.workspace()?;
    let target = context.session.target(&workspace);
    let console = &context.console;
    if !target.is_dir() {
        console.status("Removed", &format!("nothing: `{}` is not there", target.display()));
        return Ok(Exit::Done);
    }
    let failed = |e: std::io::Error, path: &Path| context.fail(&format!("cannot remove `{}`: {e}", path.display()));
    if args.dry_run {
        let (files, size) = measure(&target);
        console.status(
            "Summary",
            &format!("{}, {} would be removed from `{}`", count(files, "file"), bytes(size), target.display()),
        );
        return Ok(Exit::Done);
    }
    let mut blocked = || console.status("Blocking", "waiting for another kforge to finish with this workspace");
    let wait = if context.session.options.no_wait { Wait::No } else { Wait::Forever(&mut blocked) };
    let lock = Lock::acquire(&target.join(".lock"), Mode::Exclusive, wait).map_err(|e| match e {
        LockError::Busy(_) => {
            console.error("another kforge works in this workspace, and --no-wait was given");
            Exit::Busy
        }
        e => context.fail(&e.to_string()),
    })?;
    let (files, size) = measure(&target);
    let entries = std::fs::read_dir(&target).map_err(|e| failed(e, &target))?;
    for entry in entries {
        let path = entry.map_err(|e| failed(e, &target))?.path();
        if path.ends_with(".lock") {
            continue;
        }
        // A link is removed, not what it leads to.
        let is_folder = path.symlink_metadata().is_ok_and(|m| m.is_dir());
        let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(|e| failed(e, &path))?;
    }
    lock.remove();
    // Another kforge may have begun anew in it already.
    let _ = std::fs::remove_dir(&target);
    console.status("Removed", &format!("{}, {} total", count(files, "file"), bytes(size)));
    Ok(Exit::Done)
}

/// How many files are below a folder, and their bytes; the lock's file does not count.
fn measure(folder: &Path) -> (u64, u64) {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .flatten()
        .filter(|e| !e.file_type().is_dir() && e.file_name() != ".lock")
        .fold((0, 0), |(n, size), e| (n + 1, size + e.metadata().map_or(0, |m| m.len())))
}
