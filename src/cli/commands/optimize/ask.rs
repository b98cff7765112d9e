//! Asking for one attempt at a round, and recording what was answered; what of it is told to people. Knows who is asked; decides neither what nor whether.

use std::sync::Arc;

use super::found::{Became, Results};
use super::{Due, Run, name, tried};
use crate::cli::exit::Exit;
use crate::cli::session::build::Packages;
use crate::cli::session::rounds::Recorded;
use crate::cli::session::{Context, Opened};
use crate::engine::answers::Answers;
use crate::engine::lock::{Lock, LockError, Mode, Wait};
use crate::model::agent::RULES;
use crate::model::{Agent, Kernel, Package};
use crate::optimize::agents::ask::{AskError, AskEvent, Asking, Surroundings};
use crate::record::answer::{ANSWER_FORMAT, Answer};

/// Says what became of the last attempt's variants, a line each.
pub(super) fn tell(context: &Context, packages: &Packages, recorded: &Recorded, results: &Results<'_, '_>) {
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
            Became::Hidden => ("Partial", "right where that is shown, and not at every shape".into()),
            Became::Idle => ("Idle", "it serves no shape that is shown".into()),
        };
        let colon = if how.is_empty() { "" } else { ": " };
        context.console.status(verb, &format!("{}{colon}{how}", build.label));
    }
}

/// Asks, and records what was answered.
pub(super) fn answer(
    context: &Context,
    opened: &Opened,
    packages: &Packages,
    due: Due,
    run: &mut Run,
) -> Result<(), Exit> {
    let Due { recorded, question, briefing, proposal } = due;
    let (round, attempt) = (question.round, question.attempt);
    let what = match attempt {
        0 => format!("{}: round {round}: {}", name(&recorded.seat), tried(&question.methods)),
        _ => format!("{}: round {round}: repair {attempt}", name(&recorded.seat)),
    };
    context.console.status("Optimizing", &what);
    let store = Answers::new(&opened.home);
    // Two that ask the same would both pay.
    let mut blocked = || context.console.status("Blocking", "waiting for another kforge that asks the same");
    let place = opened.home.locks().join(format!("asks-{}", recorded.chain.hex()));
    let _lock =
        Lock::acquire(&place, Mode::Exclusive, Wait::Unless(&run.interrupted, &mut blocked)).map_err(|e| match e {
            LockError::Interrupted(_) => Exit::Interrupted,
            other => context.fail(&other.to_string()),
        })?;
    let listed =
        store.list(&recorded.chain).map_err(|e| context.fail(&format!("cannot read recorded answers: {e}")))?;
    if listed.answers.iter().any(|a| (a.question.round, a.question.attempt) == (round, attempt)) {
        return Ok(());
    }
    if store.folder(&recorded.chain).join(format!("{round}-{attempt}.json")).exists() {
        let why = "another version of kforge recorded an answer to that: use that version, or remove";
        return Err(context.fail(&format!("{what}: {why} `{}`", store.folder(&recorded.chain).display())));
    }
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
                clock: Arc::clone(&run.clock),
                ledger: &mut run.ledger,
            });
            let asked = asking.ask(&question, &briefing, judge, coder, &mut |event| say(context, &event));
            asked.map_err(|why| match why {
                AskError::Interrupted => {
                    context.console.error("interrupted; what was answered is kept: run the same command to go on");
                    Exit::Interrupted
                }
                why => context.fail(&format!("{what}: {why}")),
            })?
        }
    };
    // What was wrong with the last reply has been said.
    store.put(&recorded.chain, &answer).map_err(|e| context.fail(&format!("cannot record the answer: {e}")))?;
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

fn say(context: &Context, event: &AskEvent) {
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
            let why = why.replace('\n', "\n             ");
            let when = if *in_s > 0.0 { format!(" in {in_s:.0} s") } else { String::new() };
            console.status("Repeating", &format!("{agent} ({}){when}: {why}", role.name()));
        }
        AskEvent::Answered { .. } => {}
        AskEvent::Refused { role, agent, why } => {
            let why = why.replace('\n', "\n         ");
            console.warn(&format!("{agent} ({}) gave no answer of use: {why}", role.name()));
        }
    }
}
