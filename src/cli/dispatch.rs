//! From the words of the command line to a command. Knows which file runs which command, but runs nothing itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches};

use super::args::{Cli, Command, Global, When};
use super::commands;
use super::complete;
use super::console::{Console, Manner, Volume};
use super::context::Context;
use super::events::Listener;
use super::exit::Exit;
use kforge_foundation::base::Digest;
use kforge_foundation::base::diag::closest;
use kforge_foundation::config::{Environment, Settings};
use kforge_ops::{Options, Session, Worker};

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // Workers start often and must start fast, so clap does not parse their arguments. It parses those of people.
    if words.get(1).is_some_and(|w| w == "worker") && !commands::worker::is_of_people(&words[2..]) {
        return commands::worker::run(&words[2..]);
    }
    complete::answer();
    let environment = Environment::of_process();
    match parse(&words, &environment) {
        Ok(cli) => ExitCode::from(of_cli(cli, environment)),
        Err(error) => {
            let error = advised(error, &words);
            // clap prints help to standard output with code 0 and usage errors to standard error with code 2.
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    }
}

/// Options that use a device, overwrite something, or disable a check. No suggestion names them.
const NOT_SUGGESTED: [&str; 9] = [
    "--remeasure",
    "--recheck",
    "--force",
    "--replace",
    "--update",
    "--undo",
    "--allow-unconfined",
    "--allow-untrusted",
    "--allow-unsigned",
];

/// An error of clap with what to write instead, where the words show what was meant.
fn advised(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let is_costly = |tip: &str| NOT_SUGGESTED.iter().any(|option| tip.starts_with(option));
    if let Some(ContextValue::String(tip)) = error.get(ContextKind::SuggestedArg)
        && is_costly(tip)
    {
        error.remove(ContextKind::SuggestedArg);
        // The usage has the option that clap had in mind.
        error.remove(ContextKind::Usage);
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let command = Cli::command();
    let called = words.iter().skip(1).find_map(|word| command.find_subcommand(word.to_str()?));
    let tip = match (called, text(ContextKind::InvalidSubcommand), text(ContextKind::InvalidArg)) {
        (Some(called), Some(path), _) if called.get_name() == "import" => {
            Some(format!("`kforge import cuda {path}` imports the kernels of CUDA C++ sources"))
        }
        (Some(called), None, Some(name)) if !name.starts_with('-') && selects(called) => Some(format!(
            "select kernels with `--kernel {name}`, packages with `-p {name}`, kernels of an operator with `--operator {name}`"
        )),
        _ => None,
    };
    match tip {
        Some(tip) => {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            error
        }
        None => unknown_command(&error, &command, called).unwrap_or(error),
    }
}

/// Whether a command has the options that select kernels.
fn selects(command: &clap::Command) -> bool {
    let has = |name: &str| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    ["kernel", "package", "operator"].into_iter().all(has)
}

/// The error for an unknown command of `help`, worded as if that command itself had been run, or of a command that has commands of its own.
fn unknown_command(error: &clap::Error, all: &clap::Command, called: Option<&clap::Command>) -> Option<clap::Error> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if let Some(called) = called.filter(|called| called.has_subcommands()) {
        let (own, of) = (all.get_name(), called.get_name());
        let names: Vec<&str> = called.get_subcommands().map(clap::Command::get_name).filter(|n| *n != "help").collect();
        let advice = match (of, closest(name, names.iter().copied())) {
            ("config", _) if name == "set" => {
                "settings are set in a file such as `.kforge/config.toml`; `kforge help config` says more".into()
            }
            (_, Some(best)) => format!("did you mean `{own} {of} {best}`?"),
            _ => format!("`{own} {of}` has the commands {}", listed(&names)),
        };
        return Some(clap::Error::raw(
            error.kind(),
            format!("there is no command `{own} {of} {name}`\nhelp: {advice}\n"),
        ));
    }
    let helps = commands::external::helps(name, std::iter::empty());
    Some(clap::Error::raw(error.kind(), format!("there is no command `{name}`\n{helps}")))
}

/// Names for a message: `list` and `get`.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Parses the words and replaces an alias from the settings. Built-in commands take precedence, and an alias is expanded once.
fn parse(words: &[OsString], environment: &Environment) -> Result<Cli, clap::Error> {
    let cli = from_words(words)?;
    let Command::External(external) = &cli.command else { return Ok(cli) };
    let cwd = std::env::current_dir().unwrap_or_default();
    let cwd = cli.global.directory.as_ref().map_or_else(|| cwd.clone(), |directory| cwd.join(directory));
    let (settings, _) = Settings::load(&cwd, environment, &cli.global.config);
    let Some(name) = external.first() else { return Ok(cli) };
    let Some(alias) = settings.alias.get(name) else { return Ok(cli) };
    let at = words.iter().position(|w| w.to_string_lossy() == *name).unwrap_or(1);
    let replaced =
        words[..at].iter().cloned().chain(alias.iter().map(OsString::from)).chain(words[at + 1..].iter().cloned());
    from_words(&replaced.collect::<Vec<_>>())
}

fn from_words(words: &[OsString]) -> Result<Cli, clap::Error> {
    // `kforge -h` names the commands that most people use most of the time.
    let is_short = words.iter().skip(1).map(|word| word.to_str()).eq([Some("-h")]);
    let command = if is_short { short(Cli::command()) } else { Cli::command() };
    Cli::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// The commands that `kforge -h` names, each in a line. The others are in `kforge --help`.
const MAIN: [(&str, &str); 11] = [
    ("new", "Create a package in a new folder"),
    ("import", "Write kernel.toml for kernels that you have"),
    ("build", "Compile, verify and time every variant, and select champions"),
    ("check", "Compile and inspect kernels without running them"),
    ("verify", "Compile kernels and compare their outputs with references"),
    ("run", "Run one variant of a kernel on one shape, or one step"),
    ("report", "Show the results of the last build"),
    ("explain", "Explain why a step ran, or who is champion and why"),
    ("diff", "Show how two variants or revisions of a kernel differ"),
    ("compare", "Compare champions with those of another revision"),
    ("optimize", "Improve kernels over rounds"),
];

/// The command line with its main commands only, for the short help.
pub fn short(command: clap::Command) -> clap::Command {
    let brief = |command: clap::Command| match MAIN.iter().find(|(name, _)| *name == command.get_name()) {
        Some((_, about)) => {
            let names: Vec<String> = command.get_visible_aliases().map(str::to_string).collect();
            command.about(*about).visible_alias(Resettable::Reset).aliases(names)
        }
        None => command.hide(true),
    };
    let command = command.mut_subcommands(brief).disable_help_subcommand(true);
    command.after_help("`kforge --help` lists all commands and options.")
}

fn of_cli(cli: Cli, environment: Environment) -> Exit {
    let began = SystemTime::now();
    let global = cli.global;
    let cwd = match (std::env::current_dir(), &global.directory) {
        (Ok(cwd), Some(directory)) => cwd.join(directory),
        (Ok(cwd), None) => cwd,
        (Err(_), directory) => directory.clone().unwrap_or_else(|| ".".into()),
    };
    let mut flags = global.config.clone();
    if let Some(when) = global.color {
        let word = match when {
            When::Auto => "auto",
            When::Always => "always",
            When::Never => "never",
        };
        flags.push(format!("term.color={word}"));
    }
    let (settings, diagnostics) = Settings::load(&cwd, &environment, &flags);
    let volume = match (global.quiet || settings.flag("term.quiet"), global.verbose) {
        (true, _) => Volume::Quiet,
        (false, 0) => Volume::Normal,
        (false, 1) => Volume::Verbose,
        (false, _) => Volume::Everything,
    };
    let of = |name: &str| (settings.word(name) == Some("always"), settings.word(name) == Some("never"));
    let plain = environment.get("NO_COLOR").is_some() || environment.get("TERM") == Some("dumb");
    let forced = environment.get("CLICOLOR_FORCE").is_some_and(|v| v != "0") && of("term.color") == (false, false);
    let color = if forced { (true, false) } else { of("term.color") };
    let progress = if environment.get("CI").is_some() && of("term.progress") == (false, false) {
        (false, true)
    } else {
        of("term.progress")
    };
    let json = commands::wants_json(&cli.command);
    let diagnostics_as_json = json || commands::prints_a_line(&cli.command);
    let console = Arc::new(Console::new(Manner { volume, json, diagnostics_as_json, color, progress }, plain));
    let listener = Listener { console: console.clone(), global: global.clone(), run: run_id(began) };
    // If this program's path is unknown, no step can be executed; the pool reports that when it starts a worker.
    let worker = Worker::Own(std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")));
    let session = Session {
        began,
        options: options(&global, json),
        ..Session::new(cwd, worker, environment, settings, Arc::new(listener))
    };
    let context = Context { session, global, console };
    if !context.session.cwd.is_dir() {
        return context.fail(&format!("`{}` is not a folder", context.session.cwd.display()));
    }
    if let Err(error) = context.session.check(diagnostics) {
        return context.failed(&error);
    }
    let exit = commands::run(&context, cli.command);
    match context.console.unwritten() {
        Some(error) if exit == Exit::Done => context.fail(&format!("cannot write to standard output: {error}")),
        _ => exit,
    }
}

/// The global options that operations use.
fn options(global: &Global, every_step: bool) -> Options {
    Options {
        manifest_path: global.manifest_path.clone(),
        target_dir: global.target_dir.clone(),
        offline: global.offline || global.frozen,
        locked: global.locked || global.frozen,
        no_wait: global.no_wait,
        allow_unconfined: global.allow_unconfined,
        every_step,
        trust: global.trust.clone(),
    }
}

/// The id of a build in logs.
fn run_id(began: SystemTime) -> String {
    let digest = Digest::of(format!("{began:?} {}", std::process::id()).as_bytes());
    let first = digest.hash()[..8].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    format!("{first:016x}")
}
