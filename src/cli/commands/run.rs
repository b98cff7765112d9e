//! `kforge run`: runs one variant of a kernel on one shape, on `cpu`, or any single step, and shows the result.

use super::{CommandResult, collect};
use crate::cli::Context;
use crate::cli::args::RunArgs;
use crate::cli::exit::Exit;
use crate::cli::failures;
use kforge_ops::run::{self, Judged, Output, RunRequest, RunResult, StepEnd, What};
use kforge_pipeline::report::single::{Single, text};
use kforge_pipeline::report::step_text::{compiled, inspected};
use kforge_types::record::{Outcome, Verdict};

/// Runs the command.
pub fn run(context: &Context, args: &RunArgs) -> CommandResult {
    // The id of a step contains slashes; the name of a kernel does not.
    let what = match args.what.contains('/') {
        true => What::Step(args.what.clone()),
        false => What::Kernel { name: args.what.clone(), shape: args.shape.clone(), variant: args.variant.clone() },
    };
    context.interrupts()?;
    let request = RunRequest { what, package: args.package.clone(), overlay: args.overlay.clone() };
    let exit = match run::run(&context.session, &request)? {
        RunResult::Judged(judged) => show(context, &judged),
        RunResult::Step(step) => ended(context, &step),
    };
    collect(context);
    Ok(exit)
}

/// Prints the outcome of a step that has no elements to show, in one line, with the step's notes.
fn ended(context: &Context, step: &StepEnd) -> Exit {
    let console = &context.console;
    let text = match &step.outcome {
        Outcome::Executed => "executed".into(),
        Outcome::Fresh => "fresh: its result was known".into(),
        Outcome::Unavailable(why) => format!("unavailable: {why}"),
        Outcome::Skipped(root) => format!("skipped: `{root}` gave no result"),
        Outcome::Failed(why) => format!("failed: {why}"),
    };
    console.out(&format!("{} {text}\n", step.id));
    match &step.output {
        Some(Output::Compiled(facts, params)) => console.out_fitted(&compiled(facts, params)),
        Some(Output::Inspected(inspection)) => console.out_fitted(&inspected(inspection)),
        Some(Output::Gone) => console.out_fitted("  its result is gone from the store\n"),
        None => {}
    }
    step.notes.iter().for_each(|note| console.out(&failures::indented(note)));
    match &step.verdict {
        Some(Verdict::Fail(why)) => {
            console.out(&format!("  fail: {why}\n"));
            Exit::Wrong
        }
        _ if step.failed => Exit::NotBuilt,
        _ => Exit::Done,
    }
}

/// Prints the judgement of a variant, with the elements that decided it.
fn show(context: &Context, judged: &Judged) -> Exit {
    let labels = &judged.labels;
    let mut heading = vec![format!("{}/{}", labels.package, labels.kernel.as_deref().unwrap_or_default())];
    heading.extend(labels.variant.iter().filter(|v| !v.is_empty()).cloned());
    heading.push(format!("on {}", labels.target.as_deref().unwrap_or_default()));
    heading.push(format!("at {}", labels.shape.as_deref().unwrap_or_default()));
    let single = Single {
        heading: heading.join(" "),
        judgement: &judged.judgement,
        noted: judged.noted.iter().map(String::as_str).collect(),
        observation: judged.observation.as_ref(),
        problem: judged.problem.as_ref(),
    };
    context.console.out_fitted(&text(&single));
    if matches!(judged.judgement.verdict, Verdict::Fail(_)) { Exit::Wrong } else { Exit::Done }
}
