//! Builds a package through an installed kforge, from a program of its own, and prints the champions of its kernels:
//!
//! ```text
//! cargo run --example embed -- PATH_OF_KFORGE PACKAGE_DIR
//! ```
//!
//! This program plans, decides and keeps results. Compilers and kernels run in processes of the installed kforge, `kforge worker`, which must be of the same
//! version: it is asked before the first step, and a different one is refused.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program of its own")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use kforge::base::Severity;
use kforge::config::{Environment, Settings};
use kforge::ops::build::{BuildRequest, Built, Ended, build};
use kforge::ops::{Error, Event, Observer, Session, Worker};
use kforge::plan::Goal;

/// Prints warnings; a program may show more of what happens, or nothing.
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
    // Tools, agents and the home are found by what is handed over here, and by nothing else.
    let environment = Environment::of_process();
    let (settings, found) = Settings::load(&package, &environment, &[]);
    if let Some(wrong) = found.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
        eprintln!("error: {}", wrong.message);
        return ExitCode::FAILURE;
    }
    let session = Session::new(package, Worker::Installed(kforge), environment, settings, Arc::new(Warnings));
    match build(&session, &BuildRequest::new(Goal::Build)) {
        // Only a program that is its own worker is told that nothing has changed.
        Ok(Built::Unchanged(_)) => ExitCode::SUCCESS,
        Ok(Built::Finished(built)) => {
            for champion in &built.champions {
                let standing = if champion.provisional { " (not timed)" } else { "" };
                println!(
                    "{}/{} on {}: `{}`{standing}",
                    champion.package, champion.kernel, champion.target, champion.variant
                );
            }
            println!("{} steps, {} of them executed", built.steps.total, built.steps.executed);
            if built.ended == Ended::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        // The variant says what to do about it; the text is for people.
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
