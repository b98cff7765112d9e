//! `kforge explain`: why a step ran, or would run now; or what a method of the registry is.

use std::collections::BTreeSet;

use super::print_json;
use crate::cli::args::{ExplainArgs, Select};
use crate::cli::exit::Exit;
use crate::cli::session::Context;
use kforge_foundation::base::diag::closest;
use kforge_pipeline::optimize::methods;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::report::{explanation, method};

/// The most steps that are listed where several are meant.
const LISTED: usize = 20;

/// Runs the command.
pub fn run(context: &Context, args: &ExplainArgs) -> Result<Exit, Exit> {
    // A step's id has slashes, a method's has none: what is a method in the registry can only be part of several steps' ids.
    if let Some(method) = methods::registry().get(&args.step) {
        if args.json {
            return print_json(context, &method::document(method));
        }
        context.console.out(&methods::explain(method));
        return Ok(Exit::Done);
    }
    let everything = Select { workspace: true, ..Select::default() };
    context.look(&everything, Goal::Build)?.plan(context, |opened, ready| {
        let explained = ready.with_services(context, opened, |services| {
            let graph = kforge_engine::expanded(ready.graph.clone(), &ready.options, services);
            let id = find(context, &args.step, graph.nodes().map(|n| n.id.as_str()))?;
            let found = kforge_engine::explain(graph, &ready.options, services, &id);
            found.ok_or_else(|| context.fail(&format!("BUG: `{id}` is in the plan and cannot be explained")))
        })?;
        if args.json {
            return print_json(context, &explanation::document(&explained));
        }
        context.console.out(&explanation::text(&explained, args.fields, context.console.verbose()));
        Ok(Exit::Done)
    })
}

/// The id that `text` is, or that alone has it as a part.
pub(super) fn find<'i>(context: &Context, text: &str, ids: impl Iterator<Item = &'i str>) -> Result<String, Exit> {
    let ids: BTreeSet<&str> = ids.collect();
    if ids.contains(text) {
        return Ok(text.to_string());
    }
    let having: Vec<&str> = ids.iter().copied().filter(|id| id.contains(text)).collect();
    let console = &context.console;
    match having.as_slice() {
        [id] => Ok((*id).to_string()),
        [] => {
            console.error(&format!("no step of the plan is or has `{text}`"));
            // An id, or the part of one that has as many segments.
            let parts = text.split('/').count();
            let ends =
                ids.iter().map(|id| id.rsplitn(parts + 1, '/').take(parts).map(str::len).sum::<usize>() + parts - 1);
            let tails: Vec<&str> = ids.iter().zip(ends).map(|(id, n)| &id[id.len().saturating_sub(n)..]).collect();
            let known = methods::registry().entries().iter().map(|e| e.id.as_str());
            if let Some(best) = closest(text, tails.into_iter().chain(ids.iter().copied()).chain(known)) {
                console.err(&format!("help: did you mean `{best}`?\n"));
            }
            console.err("help: `kforge tree` lists every step, docs/methods.md every method\n");
            Err(Exit::NothingSelected)
        }
        several => {
            console.error(&format!(
                "{} steps have `{text}`: expected the id of one, or a part that one alone has",
                several.len()
            ));
            several.iter().take(LISTED).for_each(|id| console.err(&format!("  {id}\n")));
            if several.len() > LISTED {
                console.err(&format!("  and {} more\n", several.len() - LISTED));
            }
            Err(Exit::NothingSelected)
        }
    }
}
