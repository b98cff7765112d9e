//! `kforge fetch` and `kforge toolchain`: installs what kforge.lock names, and lists what is installed.

use std::path::Path;

use super::Ran;
use crate::cli::Context;
use crate::cli::args::{FetchArgs, ToolchainCommand};
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_foundation::base::count;
use kforge_ops::session::build::Asked;
use kforge_ops::session::tools::install;
use kforge_pipeline::plan::Goal;
use kforge_project::toolchain::{Cuda, Group};
use kforge_project::workspace::select::Words;

/// Runs `kforge toolchain`.
pub fn run(context: &Context, command: &ToolchainCommand) -> Ran {
    match command {
        ToolchainCommand::Install(args) => fetch(context, args),
        ToolchainCommand::List => list(context),
    }
}

/// Runs `kforge fetch`.
pub fn fetch(context: &Context, args: &FetchArgs) -> Ran {
    let mut opened = context.session.open()?;
    let selected = context.session.select(&opened.workspace, &Words { workspace: true, ..Words::default() })?;
    let asked = Asked {
        selected,
        goal: Goal::Check,
        jobs: None,
        keep_going: true,
        remeasure: false,
        overlay: None,
        write: true,
        looks: false,
    };
    let packages = context.session.packages(&opened, &asked)?;
    // kforge.lock may change: a build may not run meanwhile.
    let _lock = context.session.lock(&opened)?;
    let mut cudas: Vec<Cuda> = Vec::new();
    let mut refused = false;
    let found = context.session.cudas(&mut opened, &packages, &asked, &mut refused)?;
    for cuda in found.into_values() {
        // Why it cannot be resolved was said, with pip's words.
        let cuda = cuda.map_err(|why| if refused { Exit::NotBuilt } else { context.fail(&why) })?;
        if !cudas.contains(&cuda) {
            cudas.push(cuda);
        }
    }
    let libraries = context.session.libraries(&mut opened, &packages, &asked)?;
    let toolchains = opened.home.toolchains();
    let mut groups = vec![Group::Compile, Group::Disassemble];
    if args.nvcc {
        groups.push(Group::Nvcc);
    }
    for cuda in &cudas {
        for group in &groups {
            install(
                cuda,
                *group,
                &toolchains,
                context.session.offline(),
                context.session.environment.all(),
                &context.session.reporter,
            )
            .map_err(|missing| context.fail(&missing.to_string()))?;
        }
    }
    let several = |n: usize, one: &str, more: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {more}")),
    };
    let parts = [several(cudas.len(), "toolchain", "toolchains"), several(libraries.len(), "library", "libraries")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        context.console.status("Finished", "nothing to fetch: no package has a GPU target or a library from PyPI");
    } else {
        context.console.status("Fetched", &format!("{} into {}", parts.join(" and "), toolchains.display()));
    }
    Ok(Exit::Done)
}

/// What is installed: a set of wheels a folder.
fn list(context: &Context) -> Ran {
    let home = context.session.home()?;
    let toolchains = home.toolchains();
    let fail = |e: std::io::Error| context.fail(&format!("cannot read `{}`: {e}", toolchains.display()));
    let mut folders: Vec<_> = std::fs::read_dir(&toolchains).map_err(fail)?.flatten().map(|e| e.path()).collect();
    folders.retain(|f| f.join("wheels.txt").is_file());
    folders.sort();
    for folder in &folders {
        let wheels = std::fs::read_to_string(folder.join("wheels.txt")).map_err(fail)?;
        let size = size_of(folder);
        context.console.out(&format!("{}  {}\n", folder.display(), bytes(size)));
        for line in wheels.lines() {
            let mut words = line.split(' ');
            if let (Some(name), Some(version)) = (words.next(), words.next()) {
                context.console.out(&format!("  {name} {version}\n"));
            }
        }
    }
    context.console.status("Found", &format!("{} installed", count(folders.len() as u64, "toolchain")));
    Ok(Exit::Done)
}

fn size_of(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|e| e.file_type().is_file());
    files.filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
}
