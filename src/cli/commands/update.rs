//! `kforge update`: resolves toolchains and libraries again, or pins champions.

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::UpdateArgs;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::update::{UpdateRequest, What, update};

/// Runs the command.
pub fn run(context: &Context, args: &UpdateArgs) -> CommandResult {
    let what = if args.champions { What::Champions } else { What::Toolchains };
    let changes = update(&context.session, UpdateRequest { what, dry_run: args.dry_run })?;
    let counted = count(changes as u64, "change");
    match (changes, args.dry_run) {
        (0, _) => context.console.status("Unchanged", "kforge.lock is up to date"),
        (_, true) => context.console.status("Summary", &format!("kforge.lock: {counted}, not written")),
        (_, false) => context.console.status("Updated", &format!("kforge.lock: {counted}")),
    }
    Ok(Exit::Done)
}
