//! `kforge completions`: a script that completes kforge's words in a shell.

use clap::CommandFactory;

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::{Cli, CompletionsArgs};
use crate::cli::exit::Exit;

/// Runs the command.
pub fn run(context: &Context, args: &CompletionsArgs) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kforge", &mut script);
    context.console.out(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
