//! `kforge accept`: writes a champion's source into the package and pins the champion.

use super::CommandResult;
use crate::cli::args::AcceptArgs;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::champion;
use kforge_foundation::base::count;
use kforge_ops::accept::{AcceptRequest, accept};
use kforge_project::workspace::lockfile::happens;

/// Runs the command.
pub fn run(context: &Context, args: &AcceptArgs) -> CommandResult {
    let accepted = accept(
        &context.session,
        &AcceptRequest {
            kernel: args.kernel.clone(),
            packages: args.package.clone(),
            targets: args.target.clone(),
            types: args.types.clone(),
            file: args.file.clone(),
            name: args.name.clone(),
            force: args.force,
            undo: args.undo,
            dry_run: args.dry_run,
        },
    )?;
    let console = &context.console;
    for (path, is_new) in &accepted.files {
        let verb = if *is_new { "is new" } else { "changes" };
        console.err(&format!("  `{path}` {verb}\n"));
    }
    for change in &accepted.pins {
        let text = if args.dry_run { change.clone() } else { happens(change) };
        console.err(&format!("  {text}\n"));
    }
    let all = accepted.files.len() + accepted.pins.len();
    if args.dry_run {
        console.status("Summary", &format!("{}, not written", count(all as u64, "change")));
        return Ok(Exit::Done);
    }
    for accepted in &accepted.champions {
        let place = accepted.source.as_ref().map_or("in kforge.lock".into(), |source| format!("in `{source}`"));
        console.status("Accepted", &champion(accepted, &place));
    }
    if accepted.freed {
        let text = "all its variants are built again; the accepted source stays, and rounds need an agent in kernel.toml again";
        console.status("Freed", &format!("`{}`: {text}", args.kernel));
    }
    if all == 0 {
        console.status("", "nothing changes: it is already accepted");
    }
    Ok(Exit::Done)
}
