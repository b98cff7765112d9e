//! `kforge diff`: how two variants of a kernel differ, or a kernel at two revisions.

use super::{CommandResult, print_line};
use crate::cli::args::{DiffArgs, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_ops::diff::{DiffRequest, diff};
use kforge_pipeline::report::difference_text::{heading, rest, sources};

/// Runs the command.
pub fn run(context: &Context, args: &DiffArgs) -> CommandResult {
    context.interrupts()?;
    let request = DiffRequest {
        kernel: args.kernel.clone(),
        a: args.a.clone(),
        b: args.b.clone(),
        base: args.base.clone(),
        packages: args.package.clone(),
        targets: args.target.clone(),
        shapes: args.shape.clone(),
    };
    let console = &context.console;
    for (at, found) in diff(&context.session, &request)?.iter().enumerate() {
        if args.message_format == MessageFormat::Json {
            print_line(context, "diffed", found)?;
            continue;
        }
        if at > 0 {
            console.out("\n");
        }
        console.out_fitted(&heading(found));
        // Lines of a source are not broken.
        console.out(&sources(found));
        console.out_fitted(&rest(found));
    }
    Ok(Exit::Done)
}
