//! `kforge man`: manual pages, made from the declarations of the command line.

use clap::CommandFactory;

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::{Cli, ManArgs};
use crate::cli::exit::Exit;

/// Runs the command.
pub fn run(context: &Context, args: &ManArgs) -> CommandResult {
    let folder = context.session.cwd.join(&args.folder);
    let written = std::fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(Cli::command(), &folder));
    written.map_err(|e| context.fail(&format!("cannot write manual pages to `{}`: {e}", args.folder.display())))?;
    context.console.status("Wrote", &format!("manual pages to {}", args.folder.display()));
    Ok(Exit::Done)
}
