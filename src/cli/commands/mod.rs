//! One file a command.

pub mod accept;
pub mod build;
pub mod cache;
pub mod candidates;
pub mod clean;
pub mod compare;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod edit;
pub mod evidence;
pub mod explain;
pub mod export;
pub mod external;
pub mod failures;
pub mod locate;
pub mod metadata;
pub mod new;
pub mod optimize;
pub mod report;
pub mod run;
pub mod schema;
pub mod templates;
pub mod timings;
pub mod toolchain;
pub mod tree;
pub mod update;
pub mod worker;

use self::build::Ending;
use super::args::{Command, MessageFormat};
use super::exit::Exit;
use super::session::Context;
use kforge_foundation::base::count;
use kforge_pipeline::plan::Goal;

/// Whether a command's events go to standard output as JSON.
pub(super) fn wants_json(command: &Command) -> bool {
    match command {
        Command::Build(a) | Command::Check(a) | Command::Verify(a) | Command::Bench(a) | Command::Ablate(a) => {
            a.message_format == MessageFormat::Json
        }
        Command::Optimize(a) => a.message_format == MessageFormat::Json,
        _ => false,
    }
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
        Command::Metadata(args) => metadata::run(context, &args),
        Command::Tree(args) => tree::run(context, &args),
        Command::Run(args) => run::run(context, &args),
        Command::New(args) => new::new(context, &args),
        Command::Init(args) => new::init(context, &args),
        Command::Add(args) => edit::add(context, &args),
        Command::Remove(args) => edit::remove(context, &args),
        Command::Clean(args) => clean::run(context, &args),
        Command::Fetch(args) => toolchain::fetch(context, &args),
        Command::Update(args) => update::run(context, &args),
        Command::Doctor => doctor::run(context),
        Command::Toolchain(command) => toolchain::run(context, &command),
        Command::Cache(command) => cache::run(context, &command),
        Command::Compare(args) => compare::run(context, &args),
        Command::Evidence(command) => evidence::run(context, &command),
        Command::Config(command) => config::run(context, &command),
        Command::LocateProject(args) => locate::run(context, &args),
        Command::Completions(args) => completions::run(context, &args),
        Command::Schema(args) => schema::run(context, &args),
        Command::Version => {
            context.console.out(&format!("kforge {}\n", env!("CARGO_PKG_VERSION")));
            Ok(Exit::Done)
        }
        // `dispatch` hands a worker's words over before anything is parsed.
        Command::Worker(_) => Err(Exit::Usage),
        Command::External(words) => external::run(context, &words),
    };
    done.unwrap_or_else(|exit| exit)
}

/// A document for standard output.
fn print_json(context: &Context, value: &impl serde::Serialize) -> Result<Exit, Exit> {
    let text = serde_json::to_string_pretty(value).map_err(|e| context.fail(&e.to_string()))?;
    context.console.out(&format!("{text}\n"));
    Ok(Exit::Done)
}

/// Bytes for people: `4.5 MiB`.
fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!((bytes(0), bytes(1023), bytes(1536)), ("0 B".into(), "1023 B".into(), "1.5 KiB".into()));
        assert_eq!(bytes(5 << 40), "5.0 TiB");
    }
}
