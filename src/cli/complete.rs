//! Completion in a shell. The script that `kforge completions` prints calls this program with `COMPLETE=SHELL` and the words so far; the names of the workspace
//! are then completed like commands and options.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::Resettable;
use clap::{Command, CommandFactory, Parser};
use clap_complete::{CompleteEnv, CompletionCandidate};

use super::args::Cli;
use kforge_foundation::config::{Environment, Settings};
use kforge_ops::event::Silent;
use kforge_ops::names::{self, Names};
use kforge_ops::{Options, Session, Worker};

/// The variable that asks for completion and names the shell.
pub(super) const VARIABLE: &str = "COMPLETE";

/// Answers a shell that asks for completion and ends the process; returns if none asks.
pub(super) fn answer() {
    CompleteEnv::with_factory(command).var(VARIABLE).bin("kforge").complete();
}

/// The command line. Short names of commands are understood and not offered: of two names of a command, only the first is.
fn command() -> Command {
    Cli::command().mut_subcommands(|command| {
        let short: Vec<String> = command.get_visible_aliases().map(str::to_string).collect();
        command.visible_alias(Resettable::Reset).aliases(short)
    })
}

/// The global options that say where a workspace is.
#[derive(Debug, Default, Parser)]
#[command(ignore_errors = true, disable_help_flag = true, disable_version_flag = true)]
struct Place {
    #[arg(short = 'C', global = true)]
    directory: Option<PathBuf>,
    #[arg(long, global = true)]
    manifest_path: Option<PathBuf>,
}

/// The words of the command line, which a shell passes after `--`.
fn words() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip_while(|word| word != "--").skip(1)
}

/// A session for the words that are completed. It warns of nothing, uses no network, waits for nobody, and writes no lockfile.
fn session() -> Option<Session> {
    let place = Place::try_parse_from(words()).unwrap_or_default();
    let cwd = std::env::current_dir().ok()?;
    let cwd = place.directory.map_or_else(|| cwd.clone(), |directory| cwd.join(directory));
    let environment = Environment::of_process();
    let (settings, _) = Settings::load(&cwd, &environment, &[]);
    let manifest_path = place.manifest_path;
    let options = Options { manifest_path, offline: true, locked: true, no_wait: true, ..Options::default() };
    let worker = Worker::Own(std::env::current_exe().ok()?);
    Some(Session { options, ..Session::new(cwd, worker, environment, settings, Arc::new(Silent)) })
}

fn listed(of: impl FnOnce(Names) -> BTreeSet<String>) -> Vec<CompletionCandidate> {
    let names = session().map(|session| of(names::names(&session))).unwrap_or_default();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The packages of the workspace.
pub(super) fn packages() -> Vec<CompletionCandidate> {
    listed(|names| names.packages)
}

/// Its kernels.
pub(super) fn kernels() -> Vec<CompletionCandidate> {
    listed(|names| names.kernels)
}

/// Its operators.
pub(super) fn operators() -> Vec<CompletionCandidate> {
    listed(|names| names.operators)
}

/// Its shapes.
pub(super) fn shapes() -> Vec<CompletionCandidate> {
    listed(|names| names.shapes)
}

/// Its targets.
pub(super) fn targets() -> Vec<CompletionCandidate> {
    listed(|names| names.targets)
}

/// The variants of the kernels that the command line names. Of a large space, the first ones are offered.
pub(super) fn variants() -> Vec<CompletionCandidate> {
    let words: Vec<String> = words().map(|word| word.to_string_lossy().into_owned()).collect();
    let of = |session: Session| names::variants(&session, &|kernel| words.iter().any(|word| word == kernel));
    session().map(of).unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

/// The branches and tags of the repository.
pub(super) fn revisions() -> Vec<CompletionCandidate> {
    session()
        .map(|session| names::revisions(&session))
        .unwrap_or_default()
        .into_iter()
        .map(CompletionCandidate::new)
        .collect()
}

/// Kernels, and steps once a word has a slash: a plan has many of them, and making it takes a moment.
pub(super) fn kernels_or_steps(current: &OsStr) -> Vec<CompletionCandidate> {
    matching(current, |names| names.kernels)
}

/// Kernels and methods, and steps once a word has a slash.
pub(super) fn what_to_explain(current: &OsStr) -> Vec<CompletionCandidate> {
    matching(current, |names| names.kernels.into_iter().chain(names.methods).collect())
}

fn matching(current: &OsStr, of: impl FnOnce(Names) -> BTreeSet<String>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let Some(session) = session() else { return vec![] };
    let known = names::names(&session);
    let all: Vec<String> = match current.contains('/') {
        true => names::steps(&session),
        // With a slash at its end, the name of a package leads to the names of its steps.
        false => known.packages.iter().map(|name| format!("{name}/")).chain(of(known.clone())).collect(),
    };
    all.into_iter().filter(|name| name.starts_with(current.as_ref())).map(CompletionCandidate::new).collect()
}
