//! `kforge schema`: the JSON Schemas of what kforge reads and writes.

use super::CommandResult;
use super::print_json;
use crate::cli::Context;
use crate::cli::args::SchemaArgs;
use crate::cli::exit::Exit;
use kforge_pipeline::release;
use kforge_pipeline::report::schemas;

/// Runs the command. The parser of the command line has rejected unknown names.
pub fn run(context: &Context, args: &SchemaArgs) -> CommandResult {
    let found = schemas::schema(&args.name).or_else(|| release::schema(&args.name));
    print_json(context, &found.ok_or(Exit::Usage)?)
}
