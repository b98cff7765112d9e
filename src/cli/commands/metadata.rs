//! `kforge metadata`: the workspace as JSON. Runs nothing and takes no lock.

use super::Ran;
use super::print_json;
use crate::cli::Context;
use crate::cli::args::MetadataArgs;
use crate::cli::exit::Exit;
use kforge_ops::session::tools::DEFAULT_CUDA;
use kforge_pipeline::report::metadata::metadata;

/// Runs the command.
pub fn run(context: &Context, args: &MetadataArgs) -> Ran {
    if args.format_version != kforge_types::record::FORMAT_VERSION {
        context.console.error(&format!(
            "there is no format {} of metadata: expected {}",
            args.format_version,
            kforge_types::record::FORMAT_VERSION
        ));
        return Err(Exit::Usage.into());
    }
    let workspace = context.session.workspace()?;
    let target = context.session.target(&workspace);
    print_json(context, &metadata(&workspace, &target, DEFAULT_CUDA))
}
