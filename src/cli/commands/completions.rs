//! `kforge completions`: a script with which a shell completes commands, options and the names of the workspace.

use clap_complete::Shell;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::CompletionsArgs;
use crate::cli::complete::VARIABLE;
use crate::cli::exit::Exit;

/// Runs the command.
pub fn run(context: &Context, args: &CompletionsArgs) -> CommandResult {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        other => return Err(context.fail(&format!("there are no completions for {other}")).into()),
    };
    let mut script = Vec::new();
    // The script calls the kforge on PATH, so that it also serves an update.
    if let Err(error) = shell.write_registration(VARIABLE, "kforge", "kforge", "kforge", &mut script) {
        return Err(context.fail(&error.to_string()).into());
    }
    context.console.out(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
