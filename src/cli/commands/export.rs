//! `kforge export`: exports the recorded attempts of rounds, for example as training data, and results in the forms of other programs.

use super::CommandResult;
use std::collections::{BTreeMap, BTreeSet};

use crate::cli::args::{ExportCommand, ExportT4, ExportTraces, ExportTrajectories, LineWord};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::export::t4::{T4Request, t4};
use kforge_ops::export::traces::{TracesRequest, traces};
use kforge_ops::export::{Destination, LineForm, TrajectoriesRequest};
use kforge_pipeline::release::trajectory::filter::{Balance, Filter};

/// How many places a warning names.
const SHOWN: usize = 4;

/// Runs the command.
pub fn run(context: &Context, command: &ExportCommand) -> CommandResult {
    match command {
        ExportCommand::Trajectories(args) => trajectories(context, args),
        ExportCommand::FlashinferTrace(args) => flashinfer_trace(context, args),
        ExportCommand::T4(args) => tuning(context, args),
    }
}

/// The documents, and what none of them holds.
fn tuning(context: &Context, args: &ExportT4) -> CommandResult {
    let request = T4Request { words: args.select.words(), output: args.folder.clone() };
    let done = t4(&context.session, &request)?;
    left_out(context, "no result", &done.left_out);
    let what = format!(
        "{} in {} to `{}`",
        count(done.results, "result"),
        count(done.files.len() as u64, "document"),
        args.folder.display()
    );
    context.console.status("Exported", &what);
    Ok(Exit::Done)
}

/// What has no place in a format, by reason.
fn left_out(context: &Context, what: &str, all: &BTreeMap<String, BTreeSet<String>>) {
    for (why, places) in all {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let shown = match places.len() {
            n if n > SHOWN => format!("{} and {} more", places[..SHOWN].join(", "), n - SHOWN),
            _ => places.join(", "),
        };
        context.console.warn(&format!("{what} of {shown}: {why}"));
    }
}

/// What was written, and what has no place in the form.
fn flashinfer_trace(context: &Context, args: &ExportTraces) -> CommandResult {
    let request = TracesRequest { words: args.select.words(), output: args.folder.clone() };
    let done = traces(&context.session, &request)?;
    left_out(context, "no trace", &done.left_out);
    if !done.blobs.is_empty() {
        let files = count(done.blobs.len() as u64, "file");
        context.console.warn(&format!(
            "{files} with inputs of workloads stay where they are, such as `{}`: copy them from the dataset",
            done.blobs.iter().next().map_or("", String::as_str)
        ));
    }
    let what = format!(
        "{} with {} of the dataset, {} and {} to `{}`",
        count(done.definitions, "definition"),
        count(done.files, "file"),
        count(done.solutions, "new solution"),
        count(done.traces, "trace"),
        args.folder.display()
    );
    context.console.status("Exported", &what);
    Ok(Exit::Done)
}

fn trajectories(context: &Context, args: &ExportTrajectories) -> CommandResult {
    let balance = args.balance.map(|most| most.map_or(Balance::Fewest, |most| Balance::AtMost(most.get())));
    let request = TrajectoriesRequest {
        words: args.select.words(),
        output: args.output.clone(),
        form: match args.form {
            LineWord::Trajectory => LineForm::Trajectory,
            LineWord::Sft => LineForm::Conversation,
        },
        filter: Filter { correct: args.correct, runtime: args.runtime, dedup: args.dedup, balance },
        discount: args.discount,
    };
    let exported = kforge_ops::export::trajectories(&context.session, &request)?;
    match exported.to {
        Destination::Lines(lines) => context.console.out(&lines),
        Destination::File(path) => {
            let what = match exported.count == exported.recorded {
                true => count(exported.count, "attempt"),
                false => format!("{} of {}", exported.count, count(exported.recorded, "attempt")),
            };
            context.console.status("Exported", &format!("{what} to `{}`", path.display()));
        }
    }
    Ok(Exit::Done)
}
