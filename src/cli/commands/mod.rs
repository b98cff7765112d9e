//! One file per command.

pub mod accept;
pub mod affected;
pub mod bindings;
pub mod bots;
pub mod build;
pub mod cache;
pub mod candidates;
pub mod ci;
pub mod clean;
pub mod compare;
pub mod completions;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod edit;
pub mod evidence;
pub mod explain;
pub mod export;
pub mod external;
pub mod import;
pub mod install;
pub mod locate;
pub mod man;
pub mod metadata;
pub mod new;
pub mod optimize;
pub mod package;
pub mod publish;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod schema;
#[cfg(feature = "serve")]
pub mod serve;
pub mod toolchain;
pub mod tree;
pub mod update;
pub mod verify_artifact;
pub mod worker;

use std::io::IsTerminal;
use std::path::Path;

use self::build::Ending;
use super::args::{Command, CompareFormat, MessageFormat};
use super::context::Context;
use super::exit::{Exit, Failure};
use super::words::bytes;
use kforge_engine::collect::Report;
use kforge_ops::Error;
use kforge_ops::cache as shared;
use kforge_pipeline::plan::Goal;

/// How a command ended.
pub(in crate::cli) type CommandResult = Result<Exit, Failure>;

/// Whether a command prints its events to standard output as JSON.
pub(super) fn wants_json(command: &Command) -> bool {
    match command {
        Command::Build(a) | Command::Check(a) | Command::Verify(a) | Command::Bench(a) | Command::Ablate(a) => {
            a.message_format == MessageFormat::Json
        }
        Command::Optimize(a) => a.message_format == MessageFormat::Json,
        _ => false,
    }
}

/// Whether a command that sends no events prints its result to standard output as one line of JSON with a `reason`; its diagnostics are then lines also.
pub(super) fn prints_a_line(command: &Command) -> bool {
    let format = match command {
        Command::Affected(args) => args.format,
        Command::Bindings(args) => args.message_format,
        Command::Install(args) => args.message_format,
        Command::Package(args) => args.message_format,
        Command::Publish(args) => args.message_format,
        Command::Reproduce(args) => args.message_format,
        Command::VerifyArtifact(args) => args.message_format,
        Command::Compare(args) => return args.message_format == CompareFormat::Json,
        Command::Diff(args) => args.message_format,
        _ => return false,
    };
    format == MessageFormat::Json
}

/// Runs a command.
pub(super) fn run(context: &Context, command: Command) -> Exit {
    let done = match command {
        Command::Build(args) => build::run(context, &args, Goal::Build, Ending::Report),
        Command::Ablate(args) => build::run(context, &args, Goal::Build, Ending::Methods),
        Command::Check(args) => build::run(context, &args, Goal::Check, Ending::Report),
        Command::Verify(args) => build::run(context, &args, Goal::Verify, Ending::Report),
        Command::Bench(args) => build::run(context, &args, Goal::Bench, Ending::Report),
        Command::Optimize(args) => optimize::run(context, &args),
        Command::Accept(args) => accept::run(context, &args),
        Command::Export(command) => export::run(context, &command),
        Command::Candidates(args) => candidates::run(context, &args),
        Command::Report(args) => report::run(context, &args),
        Command::Explain(args) => explain::run(context, &args),
        Command::Diff(args) => diff::run(context, &args),
        Command::Metadata(args) => metadata::run(context, &args),
        Command::Tree(args) => tree::run(context, &args),
        Command::Run(args) => run::run(context, &args),
        Command::New(args) => new::new(context, &args),
        Command::Init(args) => new::init(context, &args),
        Command::Import(command) => import::run(context, &command),
        Command::Add(args) => edit::add(context, &args),
        Command::Remove(args) => edit::remove(context, &args),
        Command::Clean(args) => clean::run(context, &args),
        Command::Fetch(args) => toolchain::fetch(context, &args),
        Command::Update(args) => update::run(context, &args),
        Command::Doctor(args) => doctor::run(context, &args),
        Command::Toolchain(command) => toolchain::run(context, &command),
        Command::Cache(command) => cache::run(context, &command),
        Command::Package(args) => package::run(context, &args),
        Command::Publish(args) => publish::run(context, &args),
        Command::Install(args) => install::run(context, &args),
        Command::Reproduce(args) => reproduce::run(context, &args),
        Command::VerifyArtifact(args) => verify_artifact::run(context, &args),
        Command::Bindings(args) => bindings::run(context, &args),
        Command::Compare(args) => compare::run(context, &args),
        Command::Affected(args) => affected::run(context, &args),
        Command::Ci(args) => ci::run(context, &args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(context, &args),
        Command::Evidence(command) => evidence::run(context, &command),
        Command::Config(command) => config::run(context, &command),
        Command::LocateProject(args) => locate::run(context, &args),
        Command::Completions(args) => completions::run(context, &args),
        Command::Man(args) => man::run(context, &args),
        Command::Schema(args) => schema::run(context, &args),
        Command::Version => {
            context.console.out(&format!("kforge {}\n", env!("CARGO_PKG_VERSION")));
            Ok(Exit::Done)
        }
        // `dispatch` handles the arguments of workers that kforge starts before it parses anything.
        Command::Worker(args) => bots::run(context, &args),
        Command::External(words) => external::run(context, &words),
    };
    done.unwrap_or_else(|failure| context.ended(failure))
}

/// Collects the shared cache after a build, once a day. An error is a warning only, because the build has succeeded.
fn collect(context: &Context) {
    collected(context, shared::collect_sometimes(&context.session));
}

/// Reports what was collected after a build.
fn collected(context: &Context, done: Result<Option<Report>, Error>) {
    match done {
        Ok(Some(report)) if context.console.verbose() => {
            let removed = report.results_removed.bytes + report.contents_removed.bytes;
            context.console.status("Collected", &format!("the shared cache: {} removed", bytes(removed)));
        }
        Ok(_) => {}
        Err(e) => context.console.warn(&format!("cannot collect the shared cache: {e}")),
    }
}

/// The passphrase of a key's file, if there is a terminal to ask on.
fn passphrase(key: &Path) -> Option<String> {
    let is_there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    is_there.then(|| rpassword::prompt_password(format!("Passphrase of `{}`: ", key.display())).ok()).flatten()
}

/// A line of `--message-format json`.
#[derive(serde::Serialize)]
struct Line<'a, T: serde::Serialize> {
    reason: &'a str,
    #[serde(flatten)]
    value: &'a T,
}

/// Prints an object to standard output as a line of JSON, with the reason for which it is there.
fn print_line(context: &Context, reason: &str, value: &impl serde::Serialize) -> CommandResult {
    let line = serde_json::to_string(&Line { reason, value }).map_err(|e| context.fail(&e.to_string()))?;
    context.console.out(&format!("{line}\n"));
    Ok(Exit::Done)
}

/// Prints a value to standard output as a JSON document.
fn print_json(context: &Context, value: &impl serde::Serialize) -> CommandResult {
    let text = serde_json::to_string_pretty(value).map_err(|e| context.fail(&e.to_string()))?;
    context.console.out(&format!("{text}\n"));
    Ok(Exit::Done)
}
