//! Plugins: `kforge foo` runs `kforge-foo` from PATH. Built-in commands and aliases take precedence.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use clap::CommandFactory;

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::Cli;
use crate::cli::exit::Exit;
use kforge_foundation::base::diag::closest;

const PREFIX: &str = "kforge-";

/// Replaces this process with the plugin. Returns only if there is no such plugin or if it cannot be started.
pub fn run(context: &Context, words: &[String]) -> CommandResult {
    let Some((name, rest)) = words.split_first() else { return Err(Exit::Usage.into()) };
    let programs = programs(context.session.environment.path());
    let Some(program) = programs.iter().find(|p| p.file_name().is_some_and(|f| *f == *format!("{PREFIX}{name}")))
    else {
        context.console.error(&format!("there is no command `{name}`"));
        let plugins: Vec<String> = programs.iter().filter_map(|p| plugin(p)).collect();
        let aliases = context.session.settings.alias.keys().map(String::as_str);
        context.console.err(&helps(name, aliases.chain(plugins.iter().map(String::as_str))));
        return Err(Exit::Usage.into());
    };
    let mut command = std::process::Command::new(program);
    command.args(rest).current_dir(&context.session.cwd);
    if let Ok(own) = std::env::current_exe() {
        command.env("KFORGE", own);
    }
    let error = command.exec();
    Err(context.fail(&format!("cannot start `{}`: {error}", program.display())).into())
}

/// Help for an unknown command: the built-in command, or the name in `others`, that is most similar, and how to list all commands.
pub fn helps<'o>(name: &str, others: impl Iterator<Item = &'o str>) -> String {
    let command = Cli::command();
    let built_in = command
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .flat_map(|c| std::iter::once(c.get_name()).chain(c.get_visible_aliases()))
        .filter(|n| n.len() > 1);
    let all: Vec<String> = built_in.map(String::from).chain(others.map(String::from)).collect();
    let best = closest(name, all.iter().map(String::as_str));
    let best = best.map(|best| format!("help: did you mean `{best}`?\n")).unwrap_or_default();
    format!("{best}help: `kforge --help` lists the commands\n")
}

/// Every program on PATH that is named like a plugin; of several with the same name, the first.
fn programs(path: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::env::split_paths(path)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().map(|e| e.path()))
        .filter(|p| plugin(p).is_some() && is_program(p))
        .collect();
    let mut seen = std::collections::HashSet::new();
    found.retain(|p| seen.insert(p.file_name().map(ToOwned::to_owned)));
    found
}

fn plugin(path: &std::path::Path) -> Option<String> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX).map(String::from)
}

fn is_program(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
