//! Builds a package from another program, through an installed kforge, and prints the champions of its kernels:
//!
//! ```text
//! cargo run --example embed -- PATH_OF_KFORGE PACKAGE_DIR
//! ```
//!
//! This program plans, decides and stores results. Compilers and kernels run in processes of the installed kforge, `kforge worker`, which must have the same
//! version. kforge checks this before the first step, and refuses a different version.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program of its own")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use kforge::base::Severity;
use kforge::config::{Environment, Settings};
use kforge::ops::build::{BuildRequest, Built, Ended, build};
use kforge::ops::{Error, Event, Observer, Session, Worker};
use kforge::plan::Goal;

/// Prints warnings. A program may show more events, or none.
struct Warnings;

impl Observer for Warnings {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Warning(warning) => eprintln!("warning: {warning}"),
            Event::Diagnostic(diagnostic) => eprintln!("{:?}: {}", diagnostic.severity, diagnostic.message),
            _ => {}
        }
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(kforge), Some(package)) = (args.next(), args.next()) else {
        eprintln!("usage: embed PATH_OF_KFORGE PACKAGE_DIR");
        return ExitCode::from(2);
    };
    // Tools, agents and the home are found only through the environment that is passed here.
    let environment = Environment::of_process();
    let (settings, found) = Settings::load(&package, &environment, &[]);
    if let Some(wrong) = found.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
        eprintln!("error: {}", wrong.message);
        return ExitCode::FAILURE;
    }
    let session = Session::new(package, Worker::Installed(kforge), environment, settings, Arc::new(Warnings));
    match build(&session, &BuildRequest::new(Goal::Build)) {
        // Only a program that is its own worker can get this answer.
        Ok(Built::Unchanged(_)) => ExitCode::SUCCESS,
        // Only a request for changes can get this answer.
        Ok(Built::Unaffected(_)) => ExitCode::SUCCESS,
        Ok(Built::Finished(built)) => {
            for champion in &built.champions {
                let standing = if champion.provisional { " (not timed)" } else { "" };
                let class = if champion.class == "all" { String::new() } else { format!(" ({})", champion.class) };
                println!(
                    "{}/{} on {}{class}: `{}`{standing}",
                    champion.package, champion.kernel, champion.target, champion.variant
                );
            }
            println!("{} steps, {} of them executed", built.steps.total, built.steps.executed);
            if built.ended == Ended::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        // The variant states what to do about the error; the text is for people.
        Err(Error::Wrong(diagnostics)) => {
            diagnostics.iter().for_each(|diagnostic| eprintln!("error: {}", diagnostic.message));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
