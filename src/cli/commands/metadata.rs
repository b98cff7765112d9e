//! `kforge metadata`: the workspace as JSON.

use super::CommandResult;
use super::print_json;
use crate::cli::Context;
use crate::cli::args::MetadataArgs;
use crate::cli::exit::Exit;
use kforge_ops::metadata::metadata;
use kforge_pipeline::report::metadata::Metadata;
use kforge_types::record::FORMAT_VERSION;

/// Runs the command.
pub fn run(context: &Context, args: &MetadataArgs) -> CommandResult {
    // What changed in version 2 is not in this document.
    if !(1..=FORMAT_VERSION).contains(&args.format_version) {
        context.console.error(&format!(
            "unknown version {} of the metadata format: expected 1 or {FORMAT_VERSION}",
            args.format_version
        ));
        return Err(Exit::Usage.into());
    }
    let found = metadata(&context.session)?;
    print_json(context, &Metadata { format_version: args.format_version, ..found })
}
