//! `kforge affected`: the kernels that a change touches.

use super::{CommandResult, print_line};
use crate::cli::args::{AffectedArgs, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_ops::affected::{AffectedRequest, affected};

/// Runs the command.
pub fn run(context: &Context, args: &AffectedArgs) -> CommandResult {
    context.interrupts()?;
    let request = AffectedRequest { base: args.base.clone(), words: args.select.words() };
    let found = affected(&context.session, &request)?;
    if args.format == MessageFormat::Json {
        return print_line(context, "affected", &found);
    }
    context.console.out(&found.text());
    context.console.status("Affected", &found.summary());
    Ok(Exit::Done)
}
