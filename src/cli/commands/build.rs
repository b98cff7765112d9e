//! `kforge build`, `check`, `verify`, `bench`, `ablate`: one build with different goals.

mod rebuild;

use std::time::Instant;

use super::{CommandResult, collect, collected};
use crate::cli::args::{BuildArgs, MessageFormat};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::words::{reason, say_champions, say_lacking, short, summary};
use kforge_foundation::base::count;
use kforge_ops::build::{self, BuildRequest, Built, Ended, Finished, Plan, Unchanged, Untried};
use kforge_ops::cache;
use kforge_ops::event::RecordedMessage;
use kforge_ops::rebuild::BuildInputs;
use kforge_ops::session::evidence_policy::EvidencePolicy;
use kforge_ops::session::outdated::Outdated;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::evidence_list::Reused;
use kforge_pipeline::report::ablation::{self, Declared};
use kforge_pipeline::report::arguments::Arguments;
use kforge_pipeline::report::brief::{self, Failed};
use kforge_pipeline::report::text::{Failures, text};
use kforge_types::model::{Arch, Package};
use kforge_types::record::Standing;
use kforge_types::record::event::{Event, StepCounts, VerdictCounts, Why};

/// The most commands that are printed for failures.
const MOST_COMMANDS: usize = 3;

/// What is printed at the end of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The results: one line for each kernel and target; with `-v`, as `kforge report` shows them.
    Report,
    /// The effect of each method.
    Methods,
}

/// Runs the command.
pub fn run(context: &Context, args: &BuildArgs, goal: Goal, ending: Ending) -> CommandResult {
    let request = request(context, args, goal, ending);
    if args.dry_run {
        let plan = build::plan(&context.session, &request)?;
        planned(context, &plan);
        return Ok(Exit::Done);
    }
    let interrupted = context.interrupts()?;
    match args.watch {
        true => rebuild::run(context, &request, ending, &interrupted),
        false => Ok(once(context, &request, ending)?.0),
    }
}

fn request(context: &Context, args: &BuildArgs, goal: Goal, ending: Ending) -> BuildRequest {
    BuildRequest {
        words: args.words(),
        goal,
        jobs: args.jobs,
        keep_going: args.keep_going,
        remeasure: args.remeasure,
        evidence: EvidencePolicy {
            required: args.require_evidence.map(Standing::from),
            recheck: args.recheck.unwrap_or(0),
        },
        base: args.base.clone(),
        changed_since: args.changed_since.clone(),
        overlay: args.overlay.clone(),
        timings: args.timings,
        // A certificate holds the text of a report and no reasons; JSON output needs the events of a plan.
        // A certificate does not say what a build read.
        plans: args.watch
            || ending != Ending::Report
            || context.console.verbose()
            || args.message_format == MessageFormat::Json,
        goes_on: args.watch,
    }
}

/// Builds once. Returns what the build read also, if the request asks for it.
fn once(context: &Context, request: &BuildRequest, ending: Ending) -> Result<(Exit, Option<BuildInputs>), Failure> {
    let began = Instant::now();
    let exit = match build::build(&context.session, request)? {
        Built::Unchanged(unchanged) => {
            answer(context, &unchanged, began);
            collected(context, cache::collect_due(&context.session, &unchanged.home));
            Exit::Done
        }
        Built::Unaffected(affected) => {
            let kernels = count(affected.unaffected, "kernel");
            let text = format!("the changes since {} touch none of {kernels}", short(&affected.base));
            context.console.status("Finished", &text);
            let (steps, verdicts) = (StepCounts::default(), VerdictCounts::default());
            context.console.event(&Event::BuildFinished { success: true, steps, verdicts });
            Exit::Done
        }
        Built::Finished(mut finished) => {
            let inputs = finished.inputs.take();
            let exit = finish(context, &finished, (request.goal, ending), began)?;
            collect(context);
            return Ok((exit, inputs));
        }
    };
    Ok((exit, None))
}

/// Prints for a build that had nothing to do what a build with a plan would print.
fn answer(context: &Context, unchanged: &Unchanged, began: Instant) {
    let answer = &unchanged.answer;
    if !context.console.quiet() {
        for said in &answer.said {
            match said {
                RecordedMessage::Warning(text) => context.console.warn(text),
                RecordedMessage::Diagnostic(rendered) => context.console.err(rendered),
            }
        }
        context.console.fitted(&answer.report);
        say_reused(context, &answer.reused);
        say_outdated(context, &answer.outdated);
    }
    context.console.status("Finished", &summary(&answer.steps, (&answer.verdicts, &answer.unknown), began));
}

fn planned(context: &Context, plan: &Plan) {
    let (console, kinds, plan) = (&context.console, &plan.kinds, &plan.steps);
    let planned = |id: &String, will: bool, why: Option<&Why>| Event::StepPlanned {
        id: id.clone(),
        kind: kinds.get(id).copied(),
        certain: will,
        adds: plan.adds.contains(id),
        why: why.cloned(),
    };
    let line = |word: &str, id: &String| {
        if !console.json() {
            let plus = if plan.adds.contains(id) { " +" } else { "" };
            console.out(&format!("{word} {id}{plus}\n"));
        }
    };
    for (id, why) in &plan.will {
        line("will", id);
        console.event(&planned(id, true, Some(why)));
        if console.verbose() && !console.json() {
            console.out(&format!("     {}\n", reason(why, &Arguments::default())));
        }
    }
    for id in &plan.may {
        line("may ", id);
        console.event(&planned(id, false, None));
    }
    // A step that shares its key with another step runs nothing itself, but the steps that its result adds have names of their own.
    let listed = |id: &String| plan.may.contains(id) || plan.will.iter().any(|(will, _)| will == id);
    for id in plan.adds.iter().filter(|id| !listed(id)) {
        line("adds", id);
        console.event(&planned(id, false, None));
    }
    for (id, why) in plan.unavailable.iter().filter(|_| console.verbose() && !console.json()) {
        console.out(&format!("cannot {id}: {why}\n"));
    }
    let [will, may, fresh, unavailable, adds] =
        [plan.will.len(), plan.may.len(), plan.fresh, plan.unavailable.len(), plan.adds.len()].map(|n| n as u64);
    console.event(&Event::PlanFinished { will, may, fresh, unavailable });
    console.status("Planned", &format!("{will} will run, {may} may, {fresh} fresh, {unavailable} unavailable"));
    if may > 0 {
        console.status("", "may: runs only if its inputs change");
    }
    if adds > 0 {
        console.status("", "+: its result may add further steps");
    }
}

/// The effect of each method of the kernels.
fn methods(finished: &Finished) -> String {
    let package = |name: &str| finished.packages.iter().find(|p: &&Package| p.name == name);
    let methods = |of: &str, kernel: &str| {
        let kernel = package(of).and_then(|p| p.kernel(kernel));
        kernel.map_or_else(Vec::new, |k| k.methods.iter().map(|m| m.id.clone()).collect())
    };
    let emulated =
        |of: &str, target: &str| package(of).and_then(|p| p.targets.get(target)).is_some_and(|t| t.arch == Arch::Cpu);
    ablation::text(&finished.report, &Declared { methods: &methods, emulated: &emulated })
}

/// The report as `kforge report` shows it.
fn details(finished: &Finished) -> String {
    match finished.ended {
        Ended::Interrupted => text(&finished.report.clone().begun(), Failures::Told, None),
        _ => text(&finished.report, Failures::Told, None),
    }
}

/// Prints the commands that show what failed. The results of a partial or interrupted build replace no report, so nothing would show them.
fn say_where_failures_are_shown(context: &Context, finished: &Finished, goal: Goal) {
    if goal != Goal::Build || matches!(finished.ended, Ended::Interrupted) {
        return;
    }
    let failed = brief::failed(&finished.report);
    let shown: Vec<String> = failed
        .iter()
        .take(MOST_COMMANDS)
        .map(|Failed { package, kernel, target }| {
            context.command(&["report", "-p", package, "--kernel", kernel, "--target", target])
        })
        .collect();
    for shown in &shown {
        context.console.err(&format!("  details: {shown}\n"));
    }
    if failed.len() > shown.len() {
        context.console.err("  `kforge report` shows all of them\n");
    }
}

fn finish(context: &Context, finished: &Finished, (goal, ending): (Goal, Ending), began: Instant) -> CommandResult {
    let console = &context.console;
    say_champions(console, &finished.champions);
    if !console.json() && !console.quiet() {
        match ending {
            Ending::Report if console.verbose() => console.fitted(&details(finished)),
            Ending::Report => {
                console.fitted(&finished.text);
                say_where_failures_are_shown(context, finished, goal);
            }
            Ending::Methods => console.fitted(&methods(finished)),
        }
        say_reused(context, &finished.reused);
        say_outdated(context, &finished.outdated);
    }
    if let Some(untried) = &finished.untried {
        console.warn(&not_tried(untried));
    }
    let text = summary(&finished.steps, (&finished.verdicts, &finished.unknown), began);
    let exit = Exit::from(&finished.ended);
    match &finished.ended {
        Ended::Done => console.status("Finished", &text),
        Ended::Interrupted => console.error(&format!("interrupted; {text}")),
        Ended::NoEvidence(lacking) => say_lacking(console, lacking, &text),
        Ended::Contradicted(_) => console.error(&format!("evidence contradicts itself; {text}")),
        Ended::NotBuilt | Ended::Wrong => console.error(&text),
    }
    let untimed = match &finished.timings {
        Some(Ok(path)) => {
            console.status("Timed", &path.display().to_string());
            None
        }
        Some(Err(error)) => Some(context.failed(error)),
        None => None,
    };
    // How the build ended says more than that its timings could not be written.
    let exit = untimed.filter(|_| exit == Exit::Done).unwrap_or(exit);
    let (steps, verdicts) = (finished.steps, finished.verdicts);
    console.event(&Event::BuildFinished { success: exit == Exit::Done, steps, verdicts });
    Ok(exit)
}

/// The steps that were not tried, in one line.
fn not_tried(untried: &Untried) -> String {
    let (steps, verb) = (count(untried.count, "step"), if untried.count == 1 { "was" } else { "were" });
    let after = untried.stopped_by.as_ref().map_or_else(
        || "because a step that they depend on failed".to_string(),
        |id| format!("because the build ended at `{id}`"),
    );
    let hint = if untried.more { "; `--keep-going` continues with steps that do not depend on it" } else { "" };
    format!("{steps} {verb} not tried, {after}{hint}")
}

/// Prints where reused measurements come from and how old they are.
pub(super) fn say_reused(context: &Context, all: &[Reused]) {
    // A clock before 1970 or far in the future gives no meaningful ages.
    let Ok(now) = jiff::Timestamp::try_from(context.session.began) else { return };
    all.iter().for_each(|reused| context.console.status("Reusing", &reused.text(now)));
}

/// Prints where records are that would have been reused if their inputs had not changed.
pub(super) fn say_outdated(context: &Context, all: &[Outdated]) {
    all.iter().for_each(|outdated| context.console.status("Unused", &outdated.text()));
}
