//! `kforge export`: exports the recorded attempts of rounds, for example as training data.

use super::CommandResult;
use crate::cli::args::{ExportCommand, ExportTrajectories};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::export::{Destination, TrajectoriesRequest};

/// Runs the command.
pub fn run(context: &Context, command: &ExportCommand) -> CommandResult {
    match command {
        ExportCommand::Trajectories(args) => trajectories(context, args),
    }
}

fn trajectories(context: &Context, args: &ExportTrajectories) -> CommandResult {
    let request = TrajectoriesRequest { words: args.select.words(), output: args.output.clone() };
    let exported = kforge_ops::export::trajectories(&context.session, &request)?;
    match exported.to {
        Destination::Lines(lines) => context.console.out(&lines),
        Destination::File(path) => {
            let what = count(exported.count, "attempt");
            context.console.status("Exported", &format!("{what} to `{}`", path.display()));
        }
    }
    Ok(Exit::Done)
}
