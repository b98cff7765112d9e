//! `kforge schema`: the JSON Schemas of what kforge reads and writes.

use super::print_json;
use crate::base::Diagnostic;
use crate::cli::args::SchemaArgs;
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use crate::release;
use crate::report::schemas;

/// Runs the command.
pub fn run(context: &Context, args: &SchemaArgs) -> Result<Exit, Exit> {
    let names = || schemas::NAMES.into_iter().chain(release::SCHEMAS);
    match schemas::schema(&args.name).or_else(|| release::schema(&args.name)) {
        Some(schema) => print_json(context, &schema),
        None => {
            let unknown = Diagnostic::error("schema.unknown", format!("there is no schema `{}`", args.name))
                .expected(format!("one of {}", names().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")));
            context.console.diagnostic(&unknown.suggest(&args.name, names()));
            Err(Exit::Usage)
        }
    }
}
