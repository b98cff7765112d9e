//! `kforge metadata`: the workspace as JSON. Runs nothing and takes no lock.

use super::print_json;
use crate::cli::args::MetadataArgs;
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use crate::cli::session::tools::DEFAULT_CUDA;
use kforge_pipeline::report::metadata::metadata;

/// Runs the command.
pub fn run(context: &Context, args: &MetadataArgs) -> Result<Exit, Exit> {
    if args.format_version != kforge_types::record::FORMAT_VERSION {
        context.console.error(&format!(
            "there is no format {} of metadata: expected {}",
            args.format_version,
            kforge_types::record::FORMAT_VERSION
        ));
        return Err(Exit::Usage);
    }
    let workspace = context.workspace()?;
    let target = context.target(&workspace);
    print_json(context, &metadata(&workspace, &target, DEFAULT_CUDA))
}
