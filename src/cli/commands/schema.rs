//! `kforge schema`: the JSON Schemas of what kforge reads and writes.

use super::print_json;
use crate::base::Diagnostic;
use crate::cli::args::SchemaArgs;
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use crate::report::schemas;

/// Runs the command.
pub fn run(context: &Context, args: &SchemaArgs) -> Result<Exit, Exit> {
    match schemas::schema(&args.name) {
        Some(schema) => print_json(context, &schema),
        None => {
            let unknown = Diagnostic::error("schema.unknown", format!("there is no schema `{}`", args.name))
                .expected(format!("one of {}", schemas::NAMES.map(|n| format!("`{n}`")).join(", ")));
            context.console.diagnostic(&unknown.suggest(&args.name, schemas::NAMES));
            Err(Exit::Usage)
        }
    }
}
