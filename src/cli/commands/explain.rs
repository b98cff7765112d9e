//! `kforge explain`: explains why a step ran or would run now, or describes a method of the registry.

use super::{CommandResult, print_json};
use crate::cli::args::ExplainArgs;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_ops::explain::{Explained, explain};
use kforge_pipeline::optimize::methods;
use kforge_pipeline::report::{explanation, method};

/// Runs the command.
pub fn run(context: &Context, args: &ExplainArgs) -> CommandResult {
    let console = &context.console;
    match explain(&context.session, &args.step)? {
        Explained::Method(method) if args.json => return print_json(context, &method::document(method)),
        Explained::Method(method) => console.out(&methods::explain(method)),
        Explained::Step(step) if args.json => return print_json(context, &explanation::document(&step)),
        Explained::Step(step) => console.out(&explanation::text(&step, args.fields, console.verbose())),
    }
    Ok(Exit::Done)
}
