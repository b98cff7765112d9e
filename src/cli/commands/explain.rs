//! `kforge explain`: explains why a step ran or would run now, who is champion of a kernel and why, or what a method is and who uses it.

use super::{CommandResult, print_json};
use crate::cli::args::ExplainArgs;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_ops::explain::{ExplainRequest, Explained, explain};
use kforge_pipeline::optimize::methods;
use kforge_pipeline::report::{choice, explanation, kernel, method};

/// Runs the command.
pub fn run(context: &Context, args: &ExplainArgs) -> CommandResult {
    let console = &context.console;
    let request = ExplainRequest { what: args.step.clone(), words: args.select.words() };
    match explain(&context.session, &request)? {
        Explained::Method { id, entry, uses } if args.json => {
            return print_json(context, &method::document(&id, entry, &uses));
        }
        Explained::Method { id, entry, uses } => {
            let registered = entry.map(methods::explain).unwrap_or_default();
            let between = if registered.is_empty() || uses.is_empty() { "" } else { "\n" };
            console.out(&format!("{registered}{between}{}", method::uses(&id, &uses)));
        }
        Explained::Step(step, choices, _) if args.json => {
            return print_json(context, &explanation::document(&step, &choices));
        }
        Explained::Step(step, choices, arguments) => {
            console.out_fitted(&explanation::text(&step, &arguments, args.fields, console.verbose()));
            console.out_fitted(&choice::text(&choices));
            if let Some(legend) = choice::legend(&choices) {
                console.out_fitted(&format!("  {legend}\n"));
            }
        }
        Explained::Kernel(kernels) if args.json => return print_json(context, &kernels),
        Explained::Kernel(kernels) => console.out_fitted(&kernel::text(&kernels, Some(jiff::Timestamp::now()))),
    }
    Ok(Exit::Done)
}
