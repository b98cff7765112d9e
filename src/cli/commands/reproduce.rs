//! `kforge reproduce`: builds and packages twice, and reports what differs.

use serde::Serialize;

use super::{CommandResult, print_line};
use crate::cli::args::{MessageFormat, ReproduceArgs};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_foundation::base::count;
use kforge_ops::reproduce::{ByteDifference, ReproduceRequest, Reproduced, reproduce};

/// The result, for programs.
#[derive(Serialize)]
struct ReproducedView<'a> {
    binaries: u64,
    artifacts: u64,
    differences: Vec<DifferenceView<'a>>,
    unpackaged: Option<&'a str>,
}

/// Two files that differ, for programs.
#[derive(Serialize)]
struct DifferenceView<'a> {
    what: &'a str,
    sizes: (Option<u64>, Option<u64>),
    bytes: u64,
    first: u64,
}

/// Runs the command.
pub fn run(context: &Context, args: &ReproduceArgs) -> CommandResult {
    context.interrupts()?;
    let found = reproduce(&context.session, &ReproduceRequest { words: args.select.words() })?;
    match args.message_format {
        MessageFormat::Json => drop(print_line(context, "reproduced", &view(&found))?),
        MessageFormat::Human => say(context, &found),
    }
    Ok(if found.differences.is_empty() && found.unpackaged.is_none() { Exit::Done } else { Exit::NoEvidence })
}

fn say(context: &Context, found: &Reproduced) {
    let console = &context.console;
    for ByteDifference { what, sizes, bytes, first } in &found.differences {
        let line = match sizes {
            (Some(_), Some(_)) => format!("{what} differs in {}, first at byte {first}", count(*bytes, "byte")),
            (None, _) => format!("{what} exists only in the second run"),
            (_, None) => format!("{what} exists only in the first run"),
        };
        console.warn(&line);
    }
    let compared = format!("{} for GPUs and {}", count(found.binaries, "binary"), count(found.artifacts, "artifact"));
    match found.differences.len() {
        0 if found.binaries == 0 && found.artifacts == 0 => {
            console.status("Compared", "no binary for a GPU and no artifact")
        }
        0 => console.status("Reproduced", &format!("{compared}: all bytes are equal")),
        n => console.status("Compared", &format!("{compared}: {} differ", count(n, "file"))),
    }
    if let Some(said) = &found.unpackaged {
        console.status("", "no artifacts were compared, because a run could not package:");
        said.lines().for_each(|line| console.err(&format!("  {line}\n")));
    }
}

fn view(found: &Reproduced) -> ReproducedView<'_> {
    let differences = found.differences.iter();
    ReproducedView {
        binaries: found.binaries,
        artifacts: found.artifacts,
        differences: differences
            .map(|d| DifferenceView { what: &d.what, sizes: d.sizes, bytes: d.bytes, first: d.first })
            .collect(),
        unpackaged: found.unpackaged.as_deref(),
    }
}
