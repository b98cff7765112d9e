//! `kforge build --watch`: builds, waits until a file that the build read changes, and builds again. Prints what happens; `kforge_ops::rebuild` finds what
//! changed.
//!
//! An error of a manifest or a source ends a build and not the watch: it is printed, and the next change is waited for. Ctrl-C while a build runs ends that
//! build and the command, with the code 130. Ctrl-C between builds is how a watch is meant to end, so the code is that of the last build.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{CommandResult, Ending, once};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::words::listed;
use kforge_foundation::base::count;
use kforge_ops::Error;
use kforge_ops::build::BuildRequest;
use kforge_ops::rebuild::Watcher;
use kforge_types::record::event::Event;

/// The most changed files that are named.
const NAMED: usize = 3;

/// Builds until it is interrupted.
pub(super) fn run(
    context: &Context,
    request: &BuildRequest,
    ending: Ending,
    interrupted: &AtomicBool,
) -> CommandResult {
    let mut watcher = Watcher::default();
    loop {
        // Each build is an operation of its own, with its own time.
        let one = context.again();
        watcher.begin();
        let (exit, inputs) = match once(&one, request, ending) {
            Ok(built) => built,
            // Without a manifest there is nothing to wait for, unless a build has found one before.
            Err(Failure::Operation(error)) if watcher.is_idle() && matches!(*error, Error::NoManifest(_)) => {
                return Err(Failure::Operation(error));
            }
            Err(failure) => (one.ended(failure), None),
        };
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
        watcher.ended(&one.session, inputs);
        if watcher.is_idle() || context.console.is_closed() {
            return Ok(exit);
        }
        let files = count(watcher.files() as u64, "file");
        context.console.status("Watching", &format!("{files} for changes; Ctrl-C ends"));
        let Some(changed) = watcher.wait(interrupted) else { return Ok(exit) };
        let names: Vec<String> = changed.iter().map(|path| name(&one.session.cwd, path)).collect();
        context.console.status("Changed", &listed(&names, NAMED).join(", "));
        context.console.event(&Event::FilesChanged { files: names });
    }
}

/// A path as the user would write it.
fn name(cwd: &Path, path: &Path) -> String {
    let below = path.strip_prefix(cwd).ok().filter(|below| !below.as_os_str().is_empty());
    below.map_or_else(|| path.to_path_buf(), PathBuf::from).display().to_string()
}
