//! `kforge clean`: removes what builds have written beside the workspace.

use super::CommandResult;
use crate::cli::args::CleanArgs;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_foundation::base::count;
use kforge_ops::clean::clean;

/// Runs the command.
pub fn run(context: &Context, args: &CleanArgs) -> CommandResult {
    let cleaned = clean(&context.session, args.dry_run)?;
    let (console, target) = (&context.console, cleaned.target.display());
    match cleaned.removed {
        None => console.status("Removed", &format!("nothing: `{target}` is not there")),
        Some((files, size)) => {
            let what = format!("{}, {}", count(files, "file"), bytes(size));
            match args.dry_run {
                true => console.status("Summary", &format!("{what} would be removed from `{target}`")),
                false => console.status("Removed", &format!("{what} total")),
            }
        }
    }
    Ok(Exit::Done)
}
