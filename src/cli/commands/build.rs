//! `kforge build`, `check`, `verify`, `bench`, `ablate`: one build to different ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::prelude::*;

use super::failures::{self, Teller};
use crate::cli::args::BuildArgs;
use crate::cli::exit::Exit;
use crate::cli::session::build::{Asked, Packages, Ready};
use crate::cli::session::certificate::Held;
use crate::cli::session::outdated::Outdated;
use crate::cli::session::places::Places;
use crate::cli::session::{Context, Opened};
use kforge_engine::{Blobs, BuildOutcome};
use kforge_foundation::base::{Digest, count};
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::holdings::{Reused, reused};
use kforge_pipeline::report::ablation::{self, Declared};
use kforge_pipeline::report::text::Failures;
use kforge_pipeline::report::{self, Report, StepView};
use kforge_types::model::Arch;
use kforge_types::record::event::{Event, StepCounts, StepFinished, VerdictCounts, Why};
use kforge_types::record::params::Selection;
use kforge_types::record::{Outcome, StepKind, Unknown, Verdict};

mod untried;

/// What a build ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// What was found, as `kforge report` shows it.
    Report,
    /// What each method buys.
    Methods,
}

/// Runs the command.
pub fn run(context: &Context, args: &BuildArgs, goal: Goal, ending: Ending) -> Result<Exit, Exit> {
    let began = Instant::now();
    // A certificate holds the text of a report.
    let question = context.question(args, goal).filter(|_| ending == Ending::Report);
    if let Some(held) = question.as_ref().and_then(|q| context.certified(q)) {
        return Ok(answer(context, held, began));
    }
    let mut opened = context.open()?;
    let selected = context.select_over(&opened.workspace, &args.select, args.overlay.as_deref())?;
    let interrupted = interrupts(context)?;
    let asked = Asked {
        selected,
        goal,
        jobs: args.jobs,
        keep_going: args.keep_going,
        remeasure: args.remeasure,
        overlay: args.overlay.clone(),
        write: !args.dry_run,
        looks: false,
    };
    let packages = context.packages(&opened, &asked)?;
    let mut ready = context.ready(&mut opened, &packages, &asked, &interrupted)?;
    if args.dry_run {
        return Ok(dry_run(context, &opened, &ready));
    }
    announce(context, began);
    let said = context.console.said();
    let mut watch = Watch { timed: args.timings.then(Vec::new), goes_on: false };
    let outcome = execute(context, &opened, &mut ready, &packages, &mut watch);
    ready.journal.flush().map_err(|e| context.fail(&e.to_string()))?;
    ready.sweep_lost(&outcome);
    let report = assemble(&ready, &outcome);
    // What was looked at on some shapes only says too little, and so does what was cut short.
    if goal == Goal::Build && asked.selected.shapes.is_empty() && !outcome.interrupted {
        context.remember(&opened, &packages, &ready, &report);
    }
    let text = match ending {
        Ending::Report if outcome.interrupted => report::text::text(&report.clone().begun(), Failures::Told),
        Ending::Report => report::text::text(&report, Failures::Told),
        Ending::Methods => methods(&packages, &report),
    };
    let (outdated, seen) = ready.outdated(&opened, &outcome);
    let exit = finish(context, &opened, (args, goal), &ready, &outcome, (&report, &text, &outdated), began)?;
    if let Some(steps) = watch.timed {
        super::timings::write(context, &opened, &ready, &outcome, steps, began.elapsed())?;
    }
    // What the engine complained of may not come again.
    if let (Exit::Done, Some(question), Some(witness)) = (exit, question, &ready.witness)
        && said == context.console.said()
    {
        ready.keep_committed(&outcome).map_err(|e| context.fail(&e.to_string()))?;
        let mut witness = witness.clone();
        witness.add(seen);
        context.certify(question, &opened, witness, &outcome, (text, said, outdated));
    }
    // Collection waits for no build, this one included: its locks go first.
    ready.end();
    std::mem::forget(outcome);
    super::cache::collect_sometimes(context, &opened.home);
    Ok(exit)
}

/// Says that a build begins.
pub(super) fn announce(context: &Context, began: Instant) {
    let run = format!(
        "{:016x}",
        Digest::of(format!("{began:?} {}", std::process::id()).as_bytes()).hash()[..8]
            .iter()
            .fold(0u64, |n, b| n << 8 | u64::from(*b))
    );
    context.console.event(&Event::BuildStarted {
        format_version: kforge_types::record::FORMAT_VERSION,
        kforge: env!("CARGO_PKG_VERSION").into(),
        run,
    });
}

/// Says what a build that does nothing would say, without planning it.
fn answer(context: &Context, held: Held, began: Instant) -> Exit {
    let answer = &held.answer;
    if !context.console.quiet() {
        answer.said.iter().for_each(|text| context.console.err(text));
        context.console.fitted(&answer.report);
        say_reused(context, &answer.reused);
        say_outdated(context, &answer.outdated);
    }
    context.console.status("Finished", &summary(&answer.steps, &answer.verdicts, began));
    let home = held.home.clone();
    // As after a build that planned: its locks go first.
    drop(held);
    super::cache::collect_sometimes(context, &home);
    Exit::Done
}

/// Sets a flag on the first Ctrl-C; the second ends this process, and with it every child.
pub fn interrupts(context: &Context) -> Result<Arc<AtomicBool>, Exit> {
    let flag = Arc::new(AtomicBool::new(false));
    let second = || -> std::io::Result<()> {
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(())
    };
    second().map_err(|e| context.fail(&format!("cannot listen for signals: {e}")))?;
    Ok(flag)
}

fn dry_run(context: &Context, opened: &Opened, ready: &Ready<'_>) -> Exit {
    let graph = ready.graph.clone();
    let kinds: HashMap<String, StepKind> = graph.nodes().map(|n| (n.id.clone(), n.kind)).collect();
    let plan = ready.with_services(context, opened, |services| kforge_engine::dry_run(graph, &ready.options, services));
    let console = &context.console;
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
            console.out(&format!("     {}\n", reason(why)));
        }
    }
    for id in &plan.may {
        line("may ", id);
        console.event(&planned(id, false, None));
    }
    // What such a step would run, one with the same key does; what its result adds has names of its own.
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
        console.status("", "+: its result decides which further steps there are");
    }
    Exit::Done
}

/// What each method of the selected kernels buys.
fn methods(packages: &Packages, report: &Report) -> String {
    let package = |name: &str| packages.all().find(|p| p.name == name);
    let methods = |of: &str, kernel: &str| {
        let kernel = package(of).and_then(|p| p.kernel(kernel));
        kernel.map_or_else(Vec::new, |k| k.methods.iter().map(|m| m.id.clone()).collect())
    };
    let emulated =
        |of: &str, target: &str| package(of).and_then(|p| p.targets.get(target)).is_some_and(|t| t.arch == Arch::Cpu);
    ablation::text(report, &Declared { methods: &methods, emulated: &emulated })
}

/// Why a step runs, in a line.
pub fn reason(why: &Why) -> String {
    let shown = |value: &Option<String>| value.as_ref().map(|v| report::explanation::shown(v, false));
    match (&why.field, shown(&why.before), shown(&why.after)) {
        (Some(field), Some(before), Some(after)) => format!("{}: {field} was {before}, is {after}", why.code),
        (Some(field), None, Some(after)) => format!("{}: {field} is now {after}", why.code),
        (Some(field), Some(before), None) => format!("{}: {field} was {before}, is gone", why.code),
        (Some(field), None, None) => format!("{}: {field}", why.code),
        (None, ..) => why.code.clone(),
    }
}

/// How a build is watched.
#[derive(Default)]
pub(super) struct Watch {
    /// Its steps as they ended, where they are wanted.
    pub(super) timed: Option<Vec<StepFinished>>,
    /// Whether it is one of several, after which more is tried.
    pub(super) goes_on: bool,
}

/// Builds, saying what is done.
pub(super) fn execute(
    context: &Context,
    opened: &Opened,
    ready: &mut Ready<'_>,
    packages: &Packages,
    watch: &mut Watch,
) -> BuildOutcome {
    // The engine takes it, and gives it back in the outcome.
    let graph = std::mem::take(&mut ready.graph);
    let ready = &*ready;
    let console = &context.console;
    let mut total = graph.len() as u64;
    let mut ended = 0u64;
    let mut running: BTreeMap<String, StepKind> = BTreeMap::new();
    let mut said: BTreeMap<(StepKind, String), u32> = BTreeMap::new();
    let places = Places::new(&graph, &ready.journal, &*ready.leaves);
    let steps = graph.nodes().map(|node| (node.kind, &node.labels));
    let mut teller = Teller::new(context, packages.all()).going_on(watch.goes_on).awaiting(steps);
    let mut on_event = |event: Event| {
        let event = places.event(event);
        match &event {
            Event::StepStarted { id, kind } => {
                running.insert(id.clone(), *kind);
                let what = headline(id);
                // One line a kind and kernel, not one a step; each step with -v.
                let count = said.entry((*kind, what.clone())).or_default();
                *count += 1;
                if console.verbose() {
                    console.status(kind.verb(), id);
                } else if *count == 1 && kind.lane().is_some() {
                    console.status(kind.verb(), &what);
                }
            }
            Event::StepFinished(step) => {
                running.remove(&step.id);
                ended += 1;
                total = total.max(ended);
                teller.tell(step);
                if console.everything() && step.kind == StepKind::Compile {
                    console.err(&unsaid(&log_of(ready, &step.id), step));
                }
                if let Some(timed) = watch.timed.as_mut().filter(|_| step.started_ms.is_some()) {
                    timed.push((**step).clone());
                }
            }
            Event::Diagnostic { message, .. } => console.warn(message),
            _ => {}
        }
        let first =
            running.iter().next().map(|(id, kind)| format!("{} {id}", kind.verb().to_lowercase())).unwrap_or_default();
        let more = if running.len() > 1 { format!(" and {} more", running.len() - 1) } else { String::new() };
        console.progress("Building", ended, total, &format!("{first}{more}"));
        console.event(&event);
    };
    let outcome = ready.with_services(context, opened, |services| {
        kforge_engine::build(graph, &ready.options, services, &mut on_event)
    });
    console.finish();
    teller.rest();
    outcome
}

/// What the compiler said in a compile step, now or when it last ran.
fn log_of(ready: &Ready<'_>, id: &str) -> String {
    let log = ready.journal.last(id).and_then(|row| row.result?.outputs.get("log").copied());
    let bytes = log.and_then(|digest| ready.leaves.get(&digest).ok().flatten()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Of a log what no note of the step has said.
fn unsaid(log: &str, step: &StepFinished) -> String {
    let said = |line: &str| step.notes.iter().any(|n| n.message.lines().any(|l| l.trim() == line.trim()));
    failures::indented(
        &log.lines().filter(|line| !line.trim().is_empty() && !said(line)).collect::<Vec<_>>().join("\n"),
    )
}

/// What a status line names: package and kernel or operator.
fn headline(id: &str) -> String {
    id.split('/').take(2).collect::<Vec<_>>().join("/")
}

/// A step that ended, as reports see it.
pub(super) fn view<'s>(node: &'s kforge_engine::Node, done: &'s kforge_engine::Done) -> StepView<'s> {
    StepView {
        id: &node.id,
        kind: node.kind,
        labels: &node.labels,
        outcome: &done.outcome,
        result: done.result.as_ref(),
        evidence: done.evidence.as_ref(),
    }
}

pub(super) fn assemble(ready: &Ready<'_>, outcome: &BuildOutcome) -> Report {
    let views: Vec<StepView<'_>> =
        outcome.graph.nodes().zip(&outcome.steps).map(|(node, done)| view(node, done)).collect();
    // Every judgement is looked at, and there may be tens of thousands: read side by side.
    let judged = |view: &&StepView<'_>| {
        matches!(view.kind, StepKind::Judge | StepKind::Search | StepKind::Select | StepKind::Bench)
    };
    let wanted: Vec<Digest> =
        views.iter().filter(judged).filter_map(|v| v.result).flat_map(|r| r.outputs.values().copied()).collect();
    let leaves = &ready.leaves;
    let ahead: HashMap<Digest, Option<Vec<u8>>> =
        wanted.into_par_iter().map(|digest| (digest, leaves.get(&digest).ok().flatten())).collect();
    let read = |digest: &Digest| match ahead.get(digest) {
        Some(bytes) => bytes.clone(),
        None => leaves.get(digest).ok().flatten(),
    };
    let places = Places::new(&outcome.graph, &ready.journal, &*ready.leaves);
    let reader = report::assemble::Reader { read: &read, places: &|id, text| places.text(id, text) };
    let mut report = report::assemble(&views, &|id| ready.names(id), &reader);
    report::rounds::add(&mut report, &views, &ready.tried(), &reader);
    report
}

/// Keeps a report where `kforge report` finds it.
pub(super) fn keep_report(context: &Context, opened: &Opened, report: &Report) -> Result<(), Exit> {
    let json = serde_json::to_vec_pretty(report).map_err(|e| context.fail(&e.to_string()))?;
    let place = opened.target.join("report.json");
    kforge_foundation::base::files::write_if_changed(&place, &json)
        .map_err(|e| context.fail(&format!("cannot write `{}`: {e}", place.display())))?;
    super::report::whole(context, opened)
}

fn finish(
    context: &Context,
    opened: &Opened,
    (args, goal): (&BuildArgs, Goal),
    ready: &Ready<'_>,
    outcome: &BuildOutcome,
    (report, text, outdated): (&Report, &str, &[Outdated]),
    began: Instant,
) -> Result<Exit, Exit> {
    let console = &context.console;
    champions(context, ready, outcome);
    let interrupted = ready.options.interrupted.load(Ordering::Relaxed) || outcome.interrupted;
    // What a shorter or an interrupted build found does not take the place of what a whole one did.
    if goal == Goal::Build {
        match interrupted {
            true => super::report::cut_short(context, opened),
            false => keep_report(context, opened, report)?,
        }
    }
    if !console.json() && !console.quiet() {
        console.fitted(text);
        // What was just observed here needs no age.
        let fresh = outcome.steps.iter().filter(|done| done.outcome == Outcome::Fresh);
        say_reused(context, &reused(fresh.filter_map(|done| done.evidence.as_ref())));
        say_outdated(context, outdated);
    }
    let exit = match exit_of(args, outcome, interrupted) {
        Exit::Done | Exit::Wrong | Exit::Slower | Exit::NoEvidence if ready.lacks_toolchain() => Exit::NotBuilt,
        exit => exit,
    };
    if let Some(text) = untried::untried(outcome) {
        console.warn(&text);
    }
    let text = summary(&outcome.counts, &outcome.verdicts, began);
    match exit {
        Exit::Done => console.status("Finished", &text),
        Exit::Interrupted => console.error(&format!("interrupted; {text}")),
        Exit::NoEvidence => {
            console.error(&format!("evidence from a device was required and is missing; {text}"));
            lacking(outcome).iter().for_each(|(id, why)| console.err(&format!("  {id}: {why}\n")));
        }
        _ => console.error(&text),
    }
    console.event(&Event::BuildFinished {
        success: exit == Exit::Done,
        steps: outcome.counts,
        verdicts: outcome.verdicts,
    });
    Ok(exit)
}

/// Says where answers of devices came from, and how old they are.
fn say_reused(context: &Context, all: &[Reused]) {
    // A clock before 1970 or far beyond it has no ages to tell.
    let Ok(now) = jiff::Timestamp::try_from(context.began) else { return };
    all.iter().for_each(|reused| context.console.status("Reusing", &reused.text(now)));
}

/// Says where records lie that would have answered, were what is built what it was.
fn say_outdated(context: &Context, all: &[Outdated]) {
    all.iter().for_each(|outdated| context.console.status("Unused", &outdated.text()));
}

/// How many steps ended how, in a line.
pub(super) fn summary(c: &StepCounts, v: &VerdictCounts, began: Instant) -> String {
    let mut parts = vec![format!("{}: {} executed, {} fresh", count(c.total, "step"), c.executed, c.fresh)];
    for (n, what) in [(c.unavailable, "unavailable"), (c.skipped, "skipped"), (c.failed, "failed")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    format!(
        "{}; verdicts: {} pass, {} fail, {} unknown; {:.1} s",
        parts.join(", "),
        v.pass,
        v.fail,
        v.unknown,
        began.elapsed().as_secs_f64()
    )
}

/// Events of champions.
pub(super) fn champions(context: &Context, ready: &Ready<'_>, outcome: &BuildOutcome) {
    if !context.console.json() {
        return;
    }
    for (node, done) in outcome.graph.nodes().zip(&outcome.steps).filter(|(n, _)| n.kind == StepKind::Select) {
        let Some(names) = ready.names(&node.id) else { continue };
        let digest = done.result.as_ref().and_then(|r| r.outputs.get("selection"));
        let bytes = digest.and_then(|d| ready.leaves.get(d).ok().flatten());
        let Some(selection) = bytes.and_then(|b| serde_json::from_slice::<Selection>(&b).ok()) else { continue };
        for champion in selection.champions {
            let Some(variant) = champion.variant.and_then(|v| names.variants.get(&v).cloned()) else { continue };
            context.console.event(&Event::Champion {
                package: node.labels.package.clone(),
                kernel: node.labels.kernel.clone().unwrap_or_default(),
                target: node.labels.target.clone().unwrap_or_default(),
                class: names.classes.get(&champion.class).cloned().unwrap_or(champion.class),
                variant,
                provisional: champion.provisional,
            });
        }
    }
}

/// The exit code of a build that requires no evidence.
pub(super) fn plain_exit(outcome: &BuildOutcome, interrupted: bool) -> Exit {
    exit_of(&BuildArgs::default(), outcome, interrupted)
}

/// Whether a kernel is wrong, or an operator cannot tell.
fn is_wrong(outcome: &BuildOutcome) -> bool {
    failing(outcome).next().is_some()
}

/// The steps that say what is wrong, and their words. What is made for comparison only is no wrong kernel.
pub(super) fn failing(outcome: &BuildOutcome) -> impl Iterator<Item = (&kforge_engine::Node, &str)> {
    outcome.graph.nodes().zip(&outcome.steps).filter(|(node, _)| !node.advisory).filter_map(|(node, done)| {
        match done.result.as_ref()?.verdict.as_ref()? {
            Verdict::Fail(why) => Some((node, why.as_str())),
            _ => None,
        }
    })
}

/// The exit code: several reasons at once give the first of 101, 100, 103.
fn exit_of(args: &BuildArgs, outcome: &BuildOutcome, interrupted: bool) -> Exit {
    if interrupted || outcome.interrupted {
        return Exit::Interrupted;
    }
    if outcome.counts.failed > 0 {
        return Exit::NotBuilt;
    }
    if is_wrong(outcome) {
        return Exit::Wrong;
    }
    if args.require_evidence && !lacking(outcome).is_empty() { Exit::NoEvidence } else { Exit::Done }
}

/// Where a device should have answered: the steps that have no observation, and the judgements that theirs does not decide.
fn lacking(outcome: &BuildOutcome) -> Vec<(&str, String)> {
    let on_device = |n: &kforge_engine::Node| n.kind.observes_device() && n.resources.device.is_some();
    let targets: BTreeSet<_> = outcome.graph.nodes().filter(|n| on_device(n)).map(|n| &n.labels.target).collect();
    // A profile decides neither a verdict nor a champion nor what a method buys, and a device's peaks do not: without them it is only not known what bounds a
    // kernel.
    let decides = |n: &kforge_engine::Node| on_device(n) && !matches!(n.kind, StepKind::Profile | StepKind::Peaks);
    let lacks = |node: &kforge_engine::Node, done: &kforge_engine::Done| match (&done.result, &done.outcome) {
        // A kernel that nobody has written yet has no evidence of anything.
        (None, Outcome::Unavailable(why)) if node.kind == StepKind::Generate => Some(why.clone()),
        (None, why) if decides(node) => Some(match why {
            Outcome::Unavailable(why) | Outcome::Failed(why) => why.clone(),
            Outcome::Skipped(why) => format!("skipped: {why}"),
            Outcome::Executed | Outcome::Fresh => "nothing was observed".into(),
        }),
        (Some(result), _)
            if node.kind == StepKind::Judge && !node.advisory && targets.contains(&node.labels.target) =>
        {
            match &result.verdict {
                // Where nothing was observed, the step that should have is listed itself.
                Some(Verdict::Unknown(why)) if !matches!(why, Unknown::NoDevice(_)) => Some(why.to_string()),
                _ => None,
            }
        }
        _ => None,
    };
    let steps = outcome.graph.nodes().zip(&outcome.steps);
    steps.filter_map(|(node, done)| Some((node.id.as_str(), lacks(node, done)?))).collect()
}
