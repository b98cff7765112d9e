//! One file a command.

pub mod build;
pub mod worker;

use super::args::{Command, MessageFormat};
use super::exit::Exit;
use super::session::Context;
use crate::plan::Goal;

/// Whether a command's events go to standard output as JSON.
pub(super) fn wants_json(command: &Command) -> bool {
    match command {
        Command::Build(a) | Command::Check(a) | Command::Verify(a) | Command::Bench(a) | Command::Ablate(a) => {
            a.message_format == MessageFormat::Json
        }
        _ => false,
    }
}

/// Runs a command.
pub(super) fn run(context: &Context, command: Command) -> Exit {
    let done = match command {
        Command::Build(args) | Command::Ablate(args) => build::run(context, &args, Goal::Build),
        Command::Check(args) => build::run(context, &args, Goal::Check),
        Command::Verify(args) => build::run(context, &args, Goal::Verify),
        Command::Bench(args) => build::run(context, &args, Goal::Bench),
        _ => Err(Exit::Usage),
    };
    done.unwrap_or_else(|exit| exit)
}
