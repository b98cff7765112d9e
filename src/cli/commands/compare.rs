//! `kforge compare`: the regression gate.

use super::{CommandResult, print_line};
use crate::cli::args::{CompareArgs, CompareFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use kforge_ops::compare::{CompareRequest, Compared, compare, write_page};
use kforge_pipeline::release::comparison::Change;
use kforge_types::record::Standing;

/// Runs the command.
pub fn run(context: &Context, args: &CompareArgs) -> CommandResult {
    context.interrupts()?;
    let compared = compare(
        &context.session,
        &CompareRequest {
            base: args.base.clone(),
            head: args.head.clone(),
            words: args.select.words(),
            margin: args.margin,
            remeasure: args.remeasure,
            require_evidence: args.require_evidence.map(Standing::from),
            jobs: args.jobs,
        },
    )?;
    match args.message_format {
        CompareFormat::Human => context.console.out_fitted(&compared.comparison.text()),
        CompareFormat::Markdown => context.console.out(&compared.comparison.markdown()),
        CompareFormat::Json => drop(print_line(context, "compared", &compared.comparison)?),
    }
    if let Some(place) = &args.html {
        let path = write_page(&context.session, &compared.comparison, place.as_deref())?;
        context.console.status("Wrote", &path.display().to_string());
    }
    Ok(exit(context, args, &compared))
}

/// The exit code. If several reasons apply, the first of 101, 100, 4, 102, 103 wins.
fn exit(context: &Context, args: &CompareArgs, compared: &Compared) -> Exit {
    let Compared { comparison: found, timed } = compared;
    let text = format!("{}: {}", found.title(), found.conclusion());
    let is_wrong = !found.wrong.is_empty();
    for unbuilt in &found.unbuilt {
        match unbuilt.failed {
            true => context.console.error(&unbuilt.to_string()),
            false => context.console.warn(&unbuilt.to_string()),
        }
    }
    if found.unbuilt.iter().any(|unbuilt| unbuilt.failed) {
        let wrong = if is_wrong { "a kernel is wrong, and " } else { "" };
        context.console.error(&format!("{wrong}some kernels could not be built; {text}"));
        context.console.err("help: `--target` selects the targets to compare\n");
        return Exit::NotBuilt;
    }
    if is_wrong {
        context.console.error(&format!("a kernel is wrong; {text}"));
        return Exit::Wrong;
    }
    if !timed {
        let why = "nothing can be compared: the selection has no target on a device, and `cpu` is not timed";
        context.console.error(why);
        return Exit::NothingSelected;
    }
    if found.rows.is_empty() {
        context.console.error(&format!(
            "nothing was compared: {} and {} share no kernel that is timed on a device target",
            found.head, found.base
        ));
        return Exit::NothingSelected;
    }
    let open = found.count(Change::Undecided) + found.count(Change::Unknown);
    if found.count(Change::Slower) > 0 {
        context.console.error(&format!("slower than allowed; {text}"));
        Exit::Slower
    } else if args.require_evidence.is_some() && open > 0 {
        context.console.error(&format!("evidence was required and is missing or undecided; {text}"));
        Exit::NoEvidence
    } else {
        context.console.status("Compared", &text);
        Exit::Done
    }
}
