//! `kforge cache`: collects, measures and checks the shared cache.

use super::CommandResult;
use crate::cli::args::CacheCommand;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_engine::collect::Tally;
use kforge_foundation::base::count;
use kforge_ops::Error;
use kforge_ops::cache;

/// Runs the command.
pub fn run(context: &Context, command: &CacheCommand) -> CommandResult {
    match command {
        CacheCommand::Gc => gc(context),
        CacheCommand::Du => du(context),
        CacheCommand::Verify => verify(context),
    }
}

fn gc(context: &Context) -> CommandResult {
    let report = match cache::collect(&context.session) {
        Err(Error::Busy(_)) => {
            context.console.error("a build uses the shared cache: run this command again after it ends");
            return Err(Exit::Busy.into());
        }
        done => done?,
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

fn du(context: &Context) -> CommandResult {
    let usage = cache::usage(&context.session)?;
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
    let (home, limit) = (&context.session.settings.home, context.session.settings.number("cache.max-size"));
    context.console.out(&format!("{}; collected beyond {}\n", home.display(), bytes(limit)));
    Ok(Exit::Done)
}

fn verify(context: &Context) -> CommandResult {
    let checked = cache::verify(&context.session)?;
    let console = &context.console;
    for path in &checked.corrupt {
        console.warn(&format!("removed `{}`: its content does not match its digest", path.display()));
    }
    if checked.incomplete_trees + checked.results_removed > 0 {
        console.warn(&format!(
            "removed {} and {} that referred to missing content: a build makes them again when it needs them",
            count(checked.results_removed, "result"),
            count(checked.incomplete_trees, "tree")
        ));
    }
    for path in &checked.evidence_unusable {
        console.warn(&format!("`{}` is damaged or has lost its outputs, so it is not used", path.display()));
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
