//! `kforge metadata`: the workspace as JSON.

use super::CommandResult;
use super::print_json;
use crate::cli::Context;
use crate::cli::args::MetadataArgs;
use crate::cli::exit::Exit;
use kforge_ops::metadata::metadata;
use kforge_types::record::FORMAT_VERSION;

/// Runs the command.
pub fn run(context: &Context, args: &MetadataArgs) -> CommandResult {
    if args.format_version != FORMAT_VERSION {
        context.console.error(&format!(
            "unknown version {} of the metadata format: expected {FORMAT_VERSION}",
            args.format_version
        ));
        return Err(Exit::Usage.into());
    }
    print_json(context, &metadata(&context.session)?)
}
