//! `kforge optimize`: rounds. Builds what is recorded, decides what the next round is to try, asks for it, records the answer, and begins anew until there is
//! nothing left to ask. It is the only command that asks agents.
//!
//! Nothing is kept between turns but what is on disk: answers in the home, results in the caches. So a run that was killed goes on where it was, and pays for
//! nothing twice.

mod ask;
mod brief;
mod found;
mod remembered;
mod say;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use self::found::Results;
use self::remembered::Memory;
use super::build::{Watch, assemble, execute, interrupts, plain_exit, summary};
use crate::cli::args::OptimizeArgs;
use crate::cli::exit::Exit;
use crate::cli::session::build::{Asked, Packages};
use crate::cli::session::rounds::{About, Recorded, Seat, agent_of};
use crate::cli::session::{Context, Opened};
use kforge_pipeline::optimize::agents::ask::{Clock, Ledger, SystemClock};
use kforge_pipeline::optimize::agents::briefing::Briefing;
use kforge_pipeline::optimize::next::{Allowed, Next, RoundState, next};
use kforge_pipeline::optimize::round::{Branches, branches};
use kforge_pipeline::plan::{Goal, Selection};
use kforge_pipeline::report;
use kforge_pipeline::report::text::Failures;
use kforge_types::model::agent::RULES;
use kforge_types::model::{Arch, Kernel, TuneValue};
use kforge_types::record::answer::{Proposal, Question};
use kforge_types::record::event::Event;

/// What one kernel's rounds come to next.
struct Due {
    recorded: Recorded,
    question: Question,
    /// For agents: what they are told.
    briefing: Briefing,
    /// For `rules`: what they propose.
    proposal: Option<Proposal>,
}

/// Runs the command.
pub fn run(context: &Context, args: &OptimizeArgs) -> Result<Exit, Exit> {
    let began = Instant::now();
    let mut words = args.select.clone();
    words.kernel.extend(args.kernels.iter().cloned());
    let interrupted = interrupts(context)?;
    let (clock, ledger) = (Arc::new(SystemClock::default()), Ledger::default());
    let (ended, asked) = (BTreeSet::new(), BTreeSet::new());
    let mut run = Run { began, interrupted, clock, ledger, ended, asked, failed: None };
    loop {
        let mut opened = context.open()?;
        let selected = context.select_over(&opened.workspace, &words, args.overlay.as_deref())?;
        let asked = Asked {
            selected,
            goal: Goal::Build,
            jobs: args.jobs,
            keep_going: true,
            remeasure: false,
            overlay: args.overlay.clone(),
            write: true,
            looks: false,
        };
        let mut packages = context.packages(&opened, &asked)?;
        packages.with_rounds(args.rounds);
        has_rounds(context, &packages, &asked)?;
        let due = match turn(context, &mut opened, &packages, &asked, &mut run)? {
            Turn::Over(exit) => {
                super::cache::collect_sometimes(context, &opened.home);
                return Ok(exit);
            }
            Turn::Due(due) => due,
        };
        // Nobody else has to wait for an agent: the workspace is not locked meanwhile.
        let answered = ask::answers(context, &opened, &packages, due, &run)?;
        if answered.iter().any(|(_, how)| matches!(how, Err(Exit::Interrupted))) {
            return Ok(Exit::Interrupted);
        }
        for (seat, how) in answered {
            match how {
                Ok(()) => drop(run.asked.insert(seat)),
                Err(exit) => {
                    run.ended.insert(seat);
                    run.failed = Some(exit);
                }
            }
        }
    }
}

/// What is said of a kernel that no round has changed, and none will.
const UNCHANGED: &str = "Unchanged";

/// What one run of the command keeps.
struct Run {
    began: Instant,
    interrupted: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
    /// What agents have spent of their budgets, and when they were asked.
    ledger: Ledger,
    /// What nothing comes next for.
    ended: BTreeSet<Seat>,
    /// What was asked for in the turn before.
    asked: BTreeSet<Seat>,
    /// How asking failed, where it did: the others go on.
    failed: Option<Exit>,
}

/// What one build led to.
enum Turn {
    /// Nobody is to be asked any more.
    Over(Exit),
    /// What is to be asked.
    Due(Vec<Due>),
}

/// Builds what is recorded, and finds what comes next.
fn turn(
    context: &Context,
    opened: &mut Opened,
    packages: &Packages,
    asked: &Asked,
    run: &mut Run,
) -> Result<Turn, Exit> {
    let mut ready = context.ready(opened, packages, asked, &run.interrupted)?;
    super::build::announce(context, run.began);
    let mut watch = Watch { goes_on: true, ..Watch::default() };
    let outcome = execute(context, opened, &mut ready, packages, &mut watch);
    ready.journal.flush().map_err(|e| context.fail(&e.to_string()))?;
    if outcome.interrupted || run.interrupted.load(Ordering::Relaxed) {
        context.console.error("interrupted; what was measured and answered is kept: run the same command to go on");
        return Ok(Turn::Over(Exit::Interrupted));
    }
    let report = assemble(&ready, &outcome);
    if asked.selected.shapes.is_empty() {
        context.remember(opened, packages, &ready, &report);
    }
    let memory = Memory::new(context, opened)?;
    let mut due = Vec::new();
    let mut none = false;
    for recorded in &ready.recorded {
        if !selects(asked, &recorded.seat) || run.ended.contains(&recorded.seat) {
            continue;
        }
        if is_accepted(opened, &recorded.seat) {
            let undo = format!("`kforge accept {} --undo` frees it", recorded.seat.kernel);
            context.console.status(UNCHANGED, &format!("{}: accepted in kforge.lock: {undo}", name(&recorded.seat)));
            run.ended.insert(recorded.seat.clone());
            continue;
        }
        let results = Results::new(&ready, &outcome, &recorded.seat);
        none |= results.champion().is_none() && nothing_is_right(packages, recorded, &results);
        if run.asked.remove(&recorded.seat) {
            ask::tell(context, packages, recorded, &results);
        }
        match comes_next(context, packages, recorded, &results, &memory) {
            Ok(next) => due.push(next),
            Err(why) => {
                // Where nothing was ever tried nothing is optimized.
                let verb = if recorded.answers.is_empty() { UNCHANGED } else { "Optimized" };
                context.console.status(verb, &format!("{}: {why}", name(&recorded.seat)));
                run.ended.insert(recorded.seat.clone());
            }
        }
    }
    let exit = match plain_exit(&outcome, false) {
        // There is no kernel that could be one.
        Exit::Done if none => Exit::NotBuilt,
        exit => exit,
    };
    let exit = run.failed.unwrap_or(exit);
    let told = summary(&outcome.counts, &outcome.verdicts, run.began);
    if due.is_empty() {
        super::build::keep_report(context, opened, &report)?;
        let text = report::text::text(&report, Failures::Told);
        if !context.console.json() && !context.console.quiet() {
            context.console.fitted(&text);
        }
        super::build::champions(context, &ready, &outcome);
        for (agent, spent) in run.ledger.all() {
            context.console.status("Spent", &format!("{agent}: {}", say::amounts(&spent)));
        }
        match exit {
            Exit::Done => context.console.status("Finished", &told),
            _ => context.console.error(&told),
        }
    }
    let success = exit == Exit::Done;
    context.console.event(&Event::BuildFinished { success, steps: outcome.counts, verdicts: outcome.verdicts });
    ready.end();
    std::mem::forget(outcome);
    Ok(if due.is_empty() { Turn::Over(exit) } else { Turn::Due(due) })
}

/// Whether all that was tried in the last round is known to be no kernel, or nothing was there to be tried.
fn nothing_is_right(packages: &Packages, recorded: &Recorded, results: &Results<'_, '_>) -> bool {
    let package = packages.all().find(|p| p.name == recorded.seat.package);
    let kernel = package.and_then(|p| p.kernel(&recorded.seat.kernel));
    let operator = package.zip(kernel).and_then(|(p, k)| p.operator(&k.operator));
    let last = recorded.answers.last().map(|answer| answer.question.round);
    operator.zip(last).is_some_and(|(operator, last)| results.found(operator, last) == RoundState::Wrong)
}

/// Whether kforge.lock says that a seat's champion stays.
fn is_accepted(opened: &Opened, seat: &Seat) -> bool {
    let accepted = opened.workspace.lock.accepted(&seat.package);
    accepted.contains(&(seat.kernel.clone(), seat.types.clone(), seat.target.clone()))
}

/// Whether a seat was selected.
fn selects(asked: &Asked, seat: &Seat) -> bool {
    Selection::takes(&asked.selected.kernels, &seat.kernel) && Selection::takes(&asked.selected.targets, &seat.target)
}

/// Refuses a selection in which nothing has rounds.
fn has_rounds(context: &Context, packages: &Packages, asked: &Asked) -> Result<(), Exit> {
    let kernels =
        || packages.all().flat_map(|p| &p.kernels).filter(|k| Selection::takes(&asked.selected.kernels, &k.name));
    if kernels().any(|kernel| kernel.rounds.is_some()) {
        return Ok(());
    }
    let names: Vec<String> = kernels().map(|kernel| format!("`{}`", kernel.name)).collect();
    context.console.error(&format!("no agent is to improve {}", names.join(", ")));
    context.console.err(
        "help: name one in kernel.toml, `generate = { agent = \"rules\" }`, or one of your own under `[agents]`\n",
    );
    Err(Exit::NothingSelected)
}

/// What comes next for one kernel; why nothing does.
fn comes_next(
    context: &Context,
    packages: &Packages,
    recorded: &Recorded,
    results: &Results<'_, '_>,
    memory: &Memory<'_>,
) -> Result<Due, String> {
    let gone = || "BUG: its declaration is gone".to_string();
    let seat = &recorded.seat;
    let package = packages.all().find(|p| p.name == seat.package).ok_or_else(gone)?;
    let kernel = package.kernel(&seat.kernel).ok_or_else(gone)?;
    let operator = package.operator(&kernel.operator).ok_or_else(gone)?;
    let target = package.targets.get(&seat.target).ok_or_else(gone)?;
    let choices = operator.choices();
    let choice = choices.iter().find(|c| c.label == seat.types).ok_or_else(gone)?;
    let rounds = kernel.rounds.as_ref().ok_or_else(gone)?;
    if target.arch != Arch::Cpu
        && let Some(why) = results.untimed()
    {
        return Err(format!("nothing can be measured: {why}"));
    }
    if target.arch == Arch::Cpu
        && let Some(champion) = results.champion()
    {
        return Err(match results.became(operator, champion) {
            found::Became::Right => "a kernel is right, and nothing is timed on `cpu` by which another could be better",
            _ => "what stands is not known to be wrong, and not known to be right: `cpu` cannot tell",
        }
        .into());
    }
    let by_rules = rounds.agent.value == RULES;
    let last = recorded.answers.last().map_or(0, |answer| answer.question.round);
    let found = results.found(operator, last);
    // Rules write nothing, so that there is nothing to correct.
    let allowed = Allowed { rounds: rounds.rounds, repairs: if by_rules { 0 } else { rounds.repairs } };
    let decision = results.decision(last + 1);
    let (round, attempt) = match next(&recorded.answers, found, allowed, decision.as_ref()) {
        Next::Done(why) if results.champion().is_none() => {
            let refused = recorded.refused.values().next_back().and_then(|why| why.lines().next());
            let last = refused.map(|why| format!(" (the last answer: {why})")).unwrap_or_default();
            return Err(format!("{why}, and no kernel is right{last}: `--rounds {}` goes on", rounds.rounds + 1));
        }
        Next::Done(why) => return Err(why),
        Next::Ask { round, attempt } => (round, attempt),
    };
    let decision = results.decision(round);
    // A repair is of what was tried, whatever would be decided today.
    let methods = match recorded.answers.last().filter(|_| attempt > 0) {
        Some(answer) => answer.question.methods.clone(),
        None => decision.iter().flat_map(|d| &d.methods).map(|m| m.id.clone()).collect(),
    };
    let about = About { package, kernel, operator, choice, target };
    let mut briefing = brief::briefing(about, recorded, results, decision.as_ref(), (round, attempt, rounds.branches));
    let (methods, proposal) = match by_rules {
        // Rules are told nothing.
        true => {
            let found = by_the_rules(context, kernel, (target, choice), results, &methods, rounds.branches)?;
            (found.tries(&methods), Some(Proposal { branches: found.values, ..Proposal::default() }))
        }
        false => {
            memory.add(about, recorded, rounds.exemplars, &mut briefing);
            for what in memory.tells(about, recorded).into_iter().filter(|_| (round, attempt) == (1, 0)) {
                let name = name(seat);
                context
                    .console
                    .warn(&format!("{name}: {what} tells of a shape that is held back, and agents are shown it"));
            }
            (methods, None)
        }
    };
    let question = Question {
        contract: recorded.asked,
        parent: brief::parent_digest(recorded, results),
        methods,
        round,
        attempt,
        agent: agent_of(package, kernel),
    };
    Ok(Due { recorded: recorded.clone(), question, briefing, proposal })
}

/// Variants of the kernel's own with the chosen methods.
fn by_the_rules(
    context: &Context,
    kernel: &Kernel,
    (target, choice): (&kforge_types::model::Target, &kforge_types::model::TypeChoice),
    results: &Results<'_, '_>,
    methods: &[String],
    wanted: u32,
) -> Result<Branches, String> {
    let space = kernel.variants(target, choice).map_err(|d| d.message)?;
    let champion = results.champion().map(|b| b.variant.values.clone());
    let start = kernel.start(target, choice).map_err(|d| d.message)?.map(|v| v.values);
    let parent = champion.or(start).unwrap_or_default();
    let tried: BTreeSet<BTreeMap<String, TuneValue>> =
        results.selected.iter().flat_map(|s| &s.builds).map(|b| b.variant.values.clone()).collect();
    let found = branches(kernel, &space, &parent, methods, wanted as usize, &tried);
    if found.values.is_empty() {
        return Err(match methods {
            [] => "every variant was tried".to_string(),
            _ => format!("no variant that was not tried has {}", listed(methods)),
        });
    }
    if !found.left_out.is_empty() {
        context.console.status("", &format!("no variant has {} beside the others", listed(&found.left_out)));
    }
    Ok(found)
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn name(seat: &Seat) -> String {
    let parts = [seat.package.as_str(), &seat.kernel, &seat.types, &seat.target];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/")
}

fn tried(methods: &[String]) -> String {
    if methods.is_empty() { "no method in particular".into() } else { methods.join(", ") }
}
