//! `kforge optimize`: rounds that improve kernels.

use std::time::Instant;

use super::{CommandResult, collect};
use crate::cli::Context;
use crate::cli::agent_progress::amounts;
use crate::cli::args::OptimizeArgs;
use crate::cli::exit::Exit;
use crate::cli::words::{say_champions, say_lacking, summary};
use kforge_ops::build::Ended;
use kforge_ops::optimize::{Finished, OptimizeRequest, Optimized, optimize};
use kforge_pipeline::report;
use kforge_pipeline::report::text::Failures;
use kforge_types::record::Standing;
use kforge_types::record::event::Event;

/// Runs the command.
pub fn run(context: &Context, args: &OptimizeArgs) -> CommandResult {
    let began = Instant::now();
    let mut words = args.select.words();
    words.kernels.extend(args.kernels.iter().cloned());
    context.interrupts()?;
    let request = OptimizeRequest {
        words,
        rounds: args.rounds,
        jobs: args.jobs,
        require_evidence: args.require_evidence.map(Standing::from),
        base: args.base.clone(),
        overlay: args.overlay.clone(),
    };
    let exit = match optimize(&context.session, &request)? {
        Optimized::Interrupted { asking: true } => {
            context.console.error("interrupted; answers are kept: run the same command to continue");
            return Ok(Exit::Interrupted);
        }
        Optimized::Interrupted { asking: false } => {
            context.console.error("interrupted; measurements and answers are kept: run the same command to continue");
            Exit::Interrupted
        }
        Optimized::Finished(finished) => finish(context, &finished, began),
    };
    collect(context);
    Ok(exit)
}

fn finish(context: &Context, finished: &Finished, began: Instant) -> Exit {
    let console = &context.console;
    if !console.json() && !console.quiet() {
        console.fitted(&report::text::text(&finished.report, Failures::Told, None));
    }
    say_champions(console, &finished.champions);
    for (agent, spent) in &finished.spent {
        console.status("Spent", &format!("{agent}: {}", amounts(spent)));
    }
    let exit = Exit::from(&finished.ended);
    let told = summary(&finished.steps, (&finished.verdicts, &finished.unknown), began);
    match &finished.ended {
        Ended::Done => console.status("Finished", &told),
        Ended::NoEvidence(lacking) => say_lacking(console, lacking, &told),
        _ => console.error(&told),
    }
    let (steps, verdicts) = (finished.steps, finished.verdicts);
    console.event(&Event::BuildFinished { success: exit == Exit::Done, steps, verdicts });
    exit
}
