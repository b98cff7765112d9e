//! `kforge cache`: keeps the shared cache small and whole.

use std::time::{Duration, SystemTime};

use super::{bytes, count};
use crate::cli::args::CacheCommand;
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use kforge_engine::collect::{self, Collected, Limits, Tally};
use kforge_engine::home::Home;

/// Runs the command.
pub fn run(context: &Context, command: &CacheCommand) -> Result<Exit, Exit> {
    let home = context.home()?;
    match command {
        CacheCommand::Gc => gc(context, &home),
        CacheCommand::Du => du(context, &home),
        CacheCommand::Verify => verify(context, &home),
    }
}

/// What the settings allow.
fn limits(context: &Context) -> Limits {
    Limits {
        max_age: Duration::from_secs(context.settings.number("cache.max-age")),
        max_size: context.settings.number("cache.max-size"),
    }
}

fn gc(context: &Context, home: &Home) -> Result<Exit, Exit> {
    let done = collect::collect(home, limits(context), SystemTime::now()).map_err(|e| context.fail(&e.to_string()))?;
    let report = match done {
        Collected::Busy => {
            context.console.error("a build uses the shared cache: run this again when it has ended");
            return Err(Exit::Busy);
        }
        Collected::Done(report) => report,
    };
    let removed = report.results_removed.bytes + report.contents_removed.bytes;
    context.console.status(
        "Removed",
        &format!(
            "{} and {}, {}; kept {} and {}, {}",
            count(report.results_removed.count, "result"),
            count(report.contents_removed.count, "file"),
            bytes(removed),
            count(report.results_kept.count, "result"),
            count(report.contents_kept.count, "file"),
            bytes(report.results_kept.bytes + report.contents_kept.bytes),
        ),
    );
    Ok(Exit::Done)
}

/// Collects after a build, once a day, if the settings allow it and nobody else is at it. What goes wrong is a warning: the build has ended well.
pub fn collect_sometimes(context: &Context, home: &Home) {
    let now = SystemTime::now();
    // Offline, what is removed may not come back.
    if !context.settings.flag("cache.auto-gc") || context.offline() || !collect::due(home, now) {
        return;
    }
    match collect::collect(home, limits(context), now) {
        Ok(Collected::Done(report)) if context.console.verbose() => {
            let removed = report.results_removed.bytes + report.contents_removed.bytes;
            context.console.status("Collected", &format!("the shared cache: {} removed", bytes(removed)));
        }
        Ok(_) => {}
        Err(e) => context.console.warn(&format!("cannot collect the shared cache: {e}")),
    }
}

fn du(context: &Context, home: &Home) -> Result<Exit, Exit> {
    let usage = collect::usage(home).map_err(|e| context.fail(&e.to_string()))?;
    let rows: [(&str, Tally); 8] = [
        ("contents", usage.contents),
        ("results", usage.results),
        ("evidence", usage.evidence),
        ("answers", usage.answers),
        ("candidates", usage.candidates),
        ("toolchains", usage.toolchains),
        ("scratch", usage.scratch),
        ("total", usage.total()),
    ];
    for (what, tally) in rows {
        context.console.out(&format!("{what:<11}{:>11}  in {}\n", bytes(tally.bytes), count(tally.count, "file")));
    }
    let limit = context.settings.number("cache.max-size");
    context.console.out(&format!("{}; collected beyond {}\n", home.root().display(), bytes(limit)));
    Ok(Exit::Done)
}

fn verify(context: &Context, home: &Home) -> Result<Exit, Exit> {
    let checked = collect::verify(home).map_err(|e| context.fail(&e.to_string()))?;
    let console = &context.console;
    for path in &checked.corrupt {
        console.warn(&format!("removed `{}`: its bytes were not those of its name", path.display()));
    }
    if checked.incomplete_trees + checked.results_removed > 0 {
        console.warn(&format!(
            "removed {} and {} that led to something missing: they are made again when they are needed",
            count(checked.results_removed, "result"),
            count(checked.incomplete_trees, "tree")
        ));
    }
    for path in &checked.evidence_unusable {
        console.warn(&format!("`{}` is damaged or has lost its outputs: it does not answer", path.display()));
    }
    console.status(
        "Checked",
        &format!(
            "{} ({}), {}, {} of evidence",
            count(checked.contents.count, "file"),
            bytes(checked.contents.bytes),
            count(checked.results.count, "result"),
            count(checked.evidence.count, "record")
        ),
    );
    Ok(Exit::Done)
}
