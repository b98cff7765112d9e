//! `kforge fetch` and `kforge toolchain`: install what kforge.lock names, and list what is installed.

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::{FetchArgs, ToolchainCommand};
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_foundation::base::count;
use kforge_ops::toolchain::{self, FetchRequest};

/// Runs `kforge toolchain`.
pub fn run(context: &Context, command: &ToolchainCommand) -> CommandResult {
    match command {
        ToolchainCommand::Install(args) => fetch(context, args),
        ToolchainCommand::List => list(context),
    }
}

/// Runs `kforge fetch`.
pub fn fetch(context: &Context, args: &FetchArgs) -> CommandResult {
    let fetched = toolchain::fetch(&context.session, FetchRequest { nvcc: args.nvcc })?;
    let several = |n: usize, one: &str, more: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {more}")),
    };
    let parts =
        [several(fetched.toolchains, "toolchain", "toolchains"), several(fetched.libraries, "library", "libraries")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        context.console.status("Finished", "nothing to fetch: no package has a GPU target or a library from PyPI");
    } else {
        context.console.status("Fetched", &format!("{} into {}", parts.join(" and "), fetched.folder.display()));
    }
    Ok(Exit::Done)
}

/// Lists the installed toolchains; each folder holds one set of wheels.
fn list(context: &Context) -> CommandResult {
    let installed = toolchain::list(&context.session)?;
    for toolchain in &installed {
        context.console.out(&format!("{}  {}\n", toolchain.folder.display(), bytes(toolchain.bytes)));
        for (project, version) in &toolchain.wheels {
            context.console.out(&format!("  {project} {version}\n"));
        }
    }
    context.console.status("Found", &format!("{} installed", count(installed.len() as u64, "toolchain")));
    Ok(Exit::Done)
}
