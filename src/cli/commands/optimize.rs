//! `kforge optimize`: rounds. Builds what is recorded, decides what the next round is to try, asks for it, records the answer, and begins anew until there is
//! nothing left to ask. It is the only command that asks agents.
//!
//! Nothing is kept between turns but what is on disk: answers in the home, results in the caches. So a run that was killed goes on where it was, and pays for
//! nothing twice.

mod brief;
mod found;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use self::brief::About;
use self::found::{Became, Results};
use super::build::{Watch, assemble, execute, interrupts, plain_exit, summary};
use crate::cli::args::OptimizeArgs;
use crate::cli::exit::Exit;
use crate::cli::session::build::{Asked, Packages};
use crate::cli::session::rounds::{Recorded, Seat, agent_of};
use crate::cli::session::{Context, Opened};
use crate::engine::answers::Answers;
use crate::model::agent::RULES;
use crate::model::{Agent, Arch, Kernel, Package, TuneValue};
use crate::optimize::agents::ask::{AskError, AskEvent, Asking, Surroundings, SystemClock};
use crate::optimize::agents::briefing::Briefing;
use crate::optimize::next::{Allowed, Next, next};
use crate::optimize::round::branches;
use crate::plan::{Goal, Selection};
use crate::record::answer::{ANSWER_FORMAT, Answer, Proposal, Question};
use crate::record::event::Event;
use crate::report;
use crate::report::text::Failures;

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
    let mut run = Run { began, interrupted, spent: BTreeMap::new(), ended: BTreeSet::new(), asked: BTreeSet::new() };
    loop {
        let mut opened = context.open()?;
        let selected = context.select(&opened.workspace, &words)?;
        let asked = Asked {
            selected,
            goal: Goal::Build,
            jobs: args.jobs,
            keep_going: true,
            remeasure: false,
            overlay: args.overlay.clone(),
            write: true,
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
        for due in due {
            answer(context, &opened, &packages, due, &mut run)?;
        }
    }
}

/// What one run of the command keeps.
struct Run {
    began: Instant,
    interrupted: Arc<AtomicBool>,
    /// By agent: requests, tokens, money.
    spent: BTreeMap<String, (u64, u64, f64)>,
    /// What nothing comes next for.
    ended: BTreeSet<Seat>,
    /// What was asked for in the turn before.
    asked: BTreeSet<Seat>,
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
    ready.journal.flush().map_err(|e| context.fail(&format!("cannot write the journal: {e}")))?;
    if outcome.interrupted || run.interrupted.load(Ordering::Relaxed) {
        context.console.error("interrupted; what was measured and answered is kept: run the same command to go on");
        return Ok(Turn::Over(Exit::Interrupted));
    }
    let mut due = Vec::new();
    for recorded in &ready.recorded {
        if !selects(asked, &recorded.seat) || run.ended.contains(&recorded.seat) {
            continue;
        }
        if is_accepted(opened, &recorded.seat) {
            let undo = format!("`kforge accept {} --undo` frees it", recorded.seat.kernel);
            context.console.status("Optimized", &format!("{}: accepted in kforge.lock: {undo}", name(&recorded.seat)));
            run.ended.insert(recorded.seat.clone());
            continue;
        }
        let results = Results::new(&ready, &outcome, &recorded.seat);
        if run.asked.remove(&recorded.seat) {
            tell(context, packages, recorded, &results);
        }
        match comes_next(context, packages, recorded, &results) {
            Ok(next) => due.push(next),
            Err(why) => {
                context.console.status("Optimized", &format!("{}: {why}", name(&recorded.seat)));
                run.ended.insert(recorded.seat.clone());
            }
        }
    }
    let exit = plain_exit(&outcome, false);
    let told = summary(&outcome.counts, &outcome.verdicts, run.began);
    if due.is_empty() {
        let report = assemble(&ready, &outcome);
        let text = report::text::text(&report, Failures::Told);
        if !context.console.json() && !context.console.quiet() {
            context.console.fitted(&text);
        }
        super::build::champions(context, &ready, &outcome);
        for (agent, (requests, tokens, money)) in &run.spent {
            context.console.status("Spent", &costs(agent, *requests, *tokens, *money));
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

/// Says what became of the last attempt's variants, a line each.
fn tell(context: &Context, packages: &Packages, recorded: &Recorded, results: &Results<'_, '_>) {
    let package = packages.all().find(|p| p.name == recorded.seat.package);
    let kernel = package.and_then(|p| p.kernel(&recorded.seat.kernel));
    let operator = package.zip(kernel).and_then(|(p, k)| p.operator(&k.operator));
    let (Some(operator), Some(last)) = (operator, recorded.attempts.last()) else { return };
    let written = last.written.as_ref().map(|kernel| &kernel.source);
    for (build, became) in results.of_round(operator, last.round) {
        if build.written.as_ref().map(|w| &w.kernel.source) != written {
            continue;
        }
        let first = |text: &str| text.lines().next().unwrap_or_default().to_string();
        let (verb, how) = match became {
            Became::Right => ("Right", String::new()),
            Became::Undecided => ("Undecided", String::new()),
            Became::Refused(why) => ("Refused", first(&why)),
            Became::Wrong(how) => ("Wrong", first(&how)),
            Became::Hidden => ("Wrong", "at a shape that is held back".into()),
            Became::Idle => ("Idle", "it serves no shape".into()),
        };
        let colon = if how.is_empty() { "" } else { ": " };
        context.console.status(verb, &format!("{}{colon}{how}", build.label));
    }
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
    let by_rules = rounds.agent.value == RULES;
    let last = recorded.answers.last().map_or(0, |answer| answer.question.round);
    let found = results.found(operator, last);
    // Rules write nothing, so that there is nothing to correct.
    let allowed = Allowed { rounds: rounds.rounds, repairs: if by_rules { 0 } else { rounds.repairs } };
    let decision = results.decision(last + 1);
    let (round, attempt) = match next(&recorded.answers, found, allowed, decision.as_ref()) {
        Next::Done(why) => return Err(why),
        Next::Ask { round, attempt } => (round, attempt),
    };
    let decision = results.decision(round);
    // A repair is of what was tried, whatever would be decided today.
    let methods = match recorded.answers.last().filter(|_| attempt > 0) {
        Some(answer) => answer.question.methods.clone(),
        None => decision.iter().flat_map(|d| &d.methods).map(|m| m.id.clone()).collect(),
    };
    let question = Question {
        contract: recorded.asked,
        parent: brief::parent_digest(recorded, results),
        methods: methods.clone(),
        round,
        attempt,
        agent: agent_of(package, kernel),
    };
    let about = About { kernel, operator, choice, target, recorded };
    let briefing = brief::briefing(about, results, decision.as_ref(), (round, attempt, rounds.branches));
    let held = operator.shapes.iter().filter(|s| s.role == crate::model::ShapeRole::Holdout);
    let revealed = briefing.reveals(held.map(|s| s.name.as_str()));
    if !by_rules && !revealed.is_empty() {
        return Err(format!("what an agent would be told names what is held back: {}", revealed.join(", ")));
    }
    let proposal = match by_rules {
        false => None,
        true => Some(by_the_rules(context, kernel, (target, choice), results, &methods, rounds.branches)?),
    };
    Ok(Due { recorded: recorded.clone(), question, briefing, proposal })
}

/// Variants of the kernel's own with the chosen methods.
fn by_the_rules(
    context: &Context,
    kernel: &Kernel,
    (target, choice): (&crate::model::Target, &crate::model::TypeChoice),
    results: &Results<'_, '_>,
    methods: &[String],
    wanted: u32,
) -> Result<Proposal, String> {
    let space = kernel.variants(target, choice).map_err(|d| d.message)?;
    let champion = results.champion().map(|b| b.variant.values.clone());
    let start = kernel.start(target, choice).map_err(|d| d.message)?.map(|v| v.values);
    let parent = champion.or(start).unwrap_or_default();
    let tried: BTreeSet<BTreeMap<String, TuneValue>> =
        results.selected.iter().flat_map(|s| &s.builds).map(|b| b.variant.values.clone()).collect();
    let found = branches(kernel, &space, &parent, methods, wanted as usize, &tried);
    if found.values.is_empty() {
        return Err(format!("no variant that was not tried has {}", listed(methods)));
    }
    if !found.left_out.is_empty() {
        context.console.status("", &format!("no variant has {} beside the others", listed(&found.left_out)));
    }
    Ok(Proposal { branches: found.values, ..Proposal::default() })
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Asks, and records what was answered.
fn answer(context: &Context, opened: &Opened, packages: &Packages, due: Due, run: &mut Run) -> Result<(), Exit> {
    let Due { recorded, question, briefing, proposal } = due;
    run.asked.insert(recorded.seat.clone());
    let (round, attempt) = (question.round, question.attempt);
    let what = match attempt {
        0 => format!("{}: round {round}: {}", name(&recorded.seat), tried(&question.methods)),
        _ => format!("{}: round {round}: repair {attempt}", name(&recorded.seat)),
    };
    context.console.status("Optimizing", &what);
    let store = Answers::new(&opened.home);
    let answer = match proposal {
        Some(proposal) => Answer {
            format: ANSWER_FORMAT,
            question,
            answered_at: jiff::Timestamp::now().to_string(),
            advice: None,
            proposal: Some(proposal),
            refused: None,
            exchanges: vec![],
        },
        None => {
            let member = packages.member(&recorded.seat.package).ok_or(Exit::Bug)?;
            let package = &member.package;
            let kernel = package.kernel(&recorded.seat.kernel).ok_or(Exit::Bug)?;
            let (coder, judge) = agents(package, kernel).ok_or(Exit::Bug)?;
            let mut asking = Asking::new(Surroundings {
                answers: store.clone(),
                agents: &package.agents,
                environment: &context.environment,
                offline: context.offline(),
                interrupted: &run.interrupted,
                folder: &member.folder,
                clock: Arc::new(SystemClock::default()),
            });
            let asked =
                asking.ask(&question, &briefing, judge, coder, &mut |event| say(context, &event, &mut run.spent));
            asked.map_err(|why| match why {
                AskError::Interrupted => {
                    context.console.error("interrupted; what was answered is kept: run the same command to go on");
                    Exit::Interrupted
                }
                why => context.fail(&format!("{what}: {why}")),
            })?
        }
    };
    let stands = store.put(&recorded.chain, &answer);
    let stands = stands.map_err(|e| context.fail(&format!("cannot record the answer: {e}")))?;
    if let Some(why) = &stands.refused {
        context.console.warn(&format!("{what}: no answer was of use: {why}"));
    }
    Ok(())
}

/// Who writes and who judges.
fn agents<'p>(package: &'p Package, kernel: &Kernel) -> Option<(&'p Agent, Option<&'p Agent>)> {
    let rounds = kernel.rounds.as_ref()?;
    let coder = package.agent(&rounds.agent.value)?;
    let judge = match &rounds.judge {
        None => Some(coder),
        // The rules judge nothing in words.
        Some(name) if name.value == RULES => None,
        Some(name) => package.agent(&name.value),
    };
    Some((coder, judge))
}

fn say(context: &Context, event: &AskEvent, spent: &mut BTreeMap<String, (u64, u64, f64)>) {
    let console = &context.console;
    match event {
        AskEvent::Asking { role, agent } => console.status("Asking", &format!("{agent} ({})", role.name())),
        AskEvent::Recalled { role, agent, differs } => {
            console.status("Recalling", &format!("what {agent} answered ({})", role.name()));
            if *differs {
                console.warn("the prompt would read differently today; the recorded answer stands");
            }
        }
        AskEvent::Waiting { agent, for_s } => {
            console.status("Waiting", &format!("{for_s:.0} s for the rate of {agent}"))
        }
        AskEvent::Retrying { role, agent, why, in_s } => {
            let when = if *in_s > 0.0 { format!(" in {in_s:.0} s") } else { String::new() };
            console.status("Repeating", &format!("{agent} ({}){when}: {why}", role.name()));
        }
        AskEvent::Answered { agent, tokens, money, .. } => {
            let all = spent.entry(agent.clone()).or_default();
            all.0 += 1;
            all.1 += tokens.map_or(0, |(prompt, reply)| prompt + reply);
            all.2 += money.unwrap_or(0.0);
        }
        AskEvent::Refused { role, agent, why } => {
            console.warn(&format!("{agent} ({}) gave no answer of use: {why}", role.name()));
        }
    }
}

fn costs(agent: &str, requests: u64, tokens: u64, money: f64) -> String {
    let mut out = format!("{agent}: {}", super::count(requests, "request"));
    if tokens > 0 {
        out += &format!(", {tokens} tokens");
    }
    if money > 0.0 {
        out += &format!(", {money:.4} by its prices");
    }
    out
}

fn name(seat: &Seat) -> String {
    let parts = [seat.package.as_str(), &seat.kernel, &seat.types, &seat.target];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/")
}

fn tried(methods: &[String]) -> String {
    if methods.is_empty() { "no method in particular".into() } else { methods.join(", ") }
}
