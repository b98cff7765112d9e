//! Asking for attempts at rounds, several at the same time, and recording what was answered. Knows who is asked, and the threads; decides neither what nor whether.
//!
//! A thread that asks holds one lock of a question and waits for no other thread's: see the order in `engine::lock`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::found::{Became, Results};
use super::say::{self, Teller};
use super::{Due, Run, name, tried};
use crate::cli::Context;
use crate::cli::exit::{Exit, Failure};
use kforge_engine::answers::Answers;
use kforge_engine::home::Home;
use kforge_engine::lock::{Lock, LockError, Mode, Wait};
use kforge_ops::session::Opened;
use kforge_ops::session::build::Packages;
use kforge_ops::session::rounds::{Recorded, Seat};
use kforge_pipeline::optimize::agents::ask::{AskError, AskEvent, Asking, Surroundings};
use kforge_types::model::agent::RULES;
use kforge_types::model::{Agent, Kernel, Package};
use kforge_types::record::answer::{ANSWER_FORMAT, Answer, Question};

/// How often the progress bar is drawn anew while nothing happens.
const REDRAW: Duration = Duration::from_millis(250);

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
        context.console.status(verb, &format!("{}: {}{colon}{how}", name(&recorded.seat), build.label));
    }
}

/// What a thread that asks has to tell.
pub(super) enum Told {
    /// It begins.
    Begins,
    /// Another kforge asks the same.
    Blocked,
    /// Something happened.
    Event(AskEvent),
    /// It ended.
    Ended(Result<(), Ended>),
}

/// Why there is no answer.
pub(super) enum Ended {
    /// The user interrupted.
    Interrupted,
    /// What went wrong.
    Failed(String),
}

impl From<AskError> for Ended {
    fn from(why: AskError) -> Self {
        match why {
            AskError::Interrupted => Ended::Interrupted,
            why => Ended::Failed(why.to_string()),
        }
    }
}

/// One question, and who is asked.
struct Job<'p> {
    due: Due,
    /// None where the rules have said what there is to say.
    who: Option<Who<'p>>,
}

/// Who is asked.
struct Who<'p> {
    coder: &'p Agent,
    judge: Option<&'p Agent>,
    asking: Asking<'p>,
}

/// Questions to the same agents, in order, and how many of them are asked at once. Those that are the same question stand together, one after another: what is
/// answered to the first is recalled for the others, so that it is paid for once.
struct Group<'p> {
    jobs: Mutex<VecDeque<Vec<(usize, Job<'p>)>>>,
    at_once: usize,
}

/// A place in the rounds, and what asking for it came to.
pub(super) type Asked = (Seat, Result<(), Exit>);

/// Asks for all that is due, as many at once as the agents allow, and records what was answered. Gives what each came to, in the order of what was due.
///
/// What is recorded of a question depends on the replies to it, and on nothing that happens to others meanwhile, but for budgets, which the first spend first.
pub(super) fn answers(
    context: &Context,
    opened: &Opened,
    packages: &Packages,
    due: Vec<Due>,
    run: &Run,
) -> Result<Vec<Asked>, Failure> {
    let store = Answers::new(&opened.home);
    let seats: Vec<Seat> = due.iter().map(|due| due.recorded.seat.clone()).collect();
    let about =
        due.iter().map(|due| say::About { name: name(&due.recorded.seat), what: what(&due.question) }).collect();
    let mut teller = Teller::new(context, &run.ledger, about);
    let groups = groups(context, packages, &store, due, run)?;
    let mut ended: BTreeMap<usize, Result<(), Exit>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for group in &groups {
            for _ in 0..group.at_once {
                let (sender, store) = (sender.clone(), &store);
                scope.spawn(move || {
                    while let Some(jobs) = group.next() {
                        for (order, job) in jobs {
                            if run.interrupted.load(Ordering::Relaxed) {
                                return;
                            }
                            let tell = |told| drop(sender.send((order, told)));
                            tell(Told::Begins);
                            let how = answer(store, &opened.home, job, run, &tell);
                            tell(Told::Ended(how));
                        }
                    }
                });
            }
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(REDRAW) {
                Ok((order, told)) => drop(teller.tell(order, told).map(|how| ended.insert(order, how))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            teller.tick();
        }
    });
    context.console.finish();
    let how = |(order, seat)| (seat, ended.remove(&order).unwrap_or(Err(Exit::Interrupted)));
    let ended: Vec<Asked> = seats.into_iter().enumerate().map(how).collect();
    if ended.iter().any(|(_, how)| matches!(how, Err(Exit::Interrupted))) {
        context.console.error("interrupted; what was answered is kept: run the same command to go on");
    }
    Ok(ended)
}

impl<'p> Group<'p> {
    /// The next question, if there is one, with those that are the same.
    fn next(&self) -> Option<Vec<(usize, Job<'p>)>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Who is asked, by name: the package, its coder and its judge; none where the rules have said what there is to say.
type Asker<'n> = Option<(&'n str, &'n str, Option<&'n str>)>;

/// What is due by whom it is asked, those that are asked first in their places already: which of them a budget pays for must not depend on whose thread is first.
fn groups<'p>(
    context: &'p Context,
    packages: &'p Packages,
    store: &Answers,
    due: Vec<Due>,
    run: &'p Run,
) -> Result<Vec<Group<'p>>, Failure> {
    let mut groups: BTreeMap<Asker<'_>, Group<'p>> = BTreeMap::new();
    // By question: the group that it is in, and its place there.
    let mut places = BTreeMap::new();
    for (order, due) in due.into_iter().enumerate() {
        let member = packages.member(&due.recorded.seat.package).ok_or(Exit::Bug)?;
        let package = &member.package;
        let mut who = None;
        if due.proposal.is_none() {
            let kernel = package.kernel(&due.recorded.seat.kernel).ok_or(Exit::Bug)?;
            let (coder, judge) = agents(package, kernel).ok_or(Exit::Bug)?;
            let asking = Asking::new(Surroundings {
                answers: store.clone(),
                agents: &package.agents,
                environment: &context.session.environment,
                offline: context.session.offline(),
                interrupted: &run.interrupted,
                folder: &member.folder,
                clock: Arc::clone(&run.clock),
                ledger: &run.ledger,
                order,
            });
            who = Some(Who { coder, judge, asking });
        }
        let key =
            who.as_ref().map(|w| (package.name.as_str(), w.coder.name.as_str(), w.judge.map(|j| j.name.as_str())));
        let most = who.as_ref().map_or(1, |w| w.coder.parallel.max(w.judge.map_or(1, |j| j.parallel)) as usize);
        if who.is_some() {
            let question = serde_json::to_string(&due.question).map_err(|_| Exit::Bug)?;
            if let Some((key, at)) = places.get(&question) {
                let jobs = groups.get_mut(key).and_then(|group| group.jobs.get_mut().ok());
                jobs.and_then(|jobs| jobs.get_mut(*at)).ok_or(Exit::Bug)?.push((order, Job { due, who }));
                continue;
            }
            let before = groups.get_mut(&key).and_then(|group| group.jobs.get_mut().ok()).map_or(0, |jobs| jobs.len());
            places.insert(question, (key, before));
        }
        let group = groups.entry(key).or_insert_with(|| Group { jobs: Mutex::default(), at_once: 0 });
        let jobs = group.jobs.get_mut().unwrap_or_else(PoisonError::into_inner);
        if group.at_once < most {
            group.at_once += 1;
            if let Some(who) = &who {
                let expected = who.asking.expects(&due.question, &due.briefing, who.judge, who.coder);
                expected.map_err(|why| context.fail(&why.to_string()))?;
            }
        }
        jobs.push_back(vec![(order, Job { due, who })]);
    }
    Ok(groups.into_values().collect())
}

/// Asks, and records what was answered.
fn answer(store: &Answers, home: &Home, job: Job<'_>, run: &Run, tell: &dyn Fn(Told)) -> Result<(), Ended> {
    let Job { due: Due { recorded, question, briefing, proposal }, who } = job;
    let (round, attempt) = (question.round, question.attempt);
    // Two that ask the same would both pay.
    let mut blocked = || {
        tell(Told::Blocked);
        // What waits for another process holds no other question back.
        who.iter().for_each(|who| who.asking.leaves());
    };
    let place = home.locks().join(format!("asks-{}", recorded.chain.hex()));
    let _lock =
        Lock::acquire(&place, Mode::Exclusive, Wait::Unless(&run.interrupted, &mut blocked)).map_err(|e| match e {
            LockError::Interrupted(_) => Ended::Interrupted,
            other => Ended::Failed(other.to_string()),
        })?;
    let folder = store.folder(&recorded.chain);
    let listed =
        store.list(&recorded.chain).map_err(|e| Ended::Failed(format!("cannot read recorded answers: {e}")))?;
    if listed.answers.iter().any(|a| (a.question.round, a.question.attempt) == (round, attempt)) {
        return Ok(());
    }
    if folder.join(format!("{round}-{attempt}.json")).exists() {
        let why = "another version of kforge recorded an answer to that: use that version, or remove";
        return Err(Ended::Failed(format!("{why} `{}`", folder.display())));
    }
    let answer = match who {
        None => Answer {
            format: ANSWER_FORMAT,
            question,
            answered_at: jiff::Timestamp::now().to_string(),
            advice: None,
            proposal,
            refused: None,
            exchanges: vec![],
        },
        Some(Who { coder, judge, asking }) => {
            asking.expects(&question, &briefing, judge, coder)?;
            asking.ask(&question, &briefing, judge, coder, &mut |event| tell(Told::Event(event)))?
        }
    };
    // What was wrong with the last reply has been said.
    let put = store.put(&recorded.chain, &answer);
    put.map(drop).map_err(|e| Ended::Failed(format!("cannot record the answer: {e}")))
}

/// What is asked for, in words.
fn what(question: &Question) -> String {
    match question.attempt {
        0 => format!("round {}: {}", question.round, tried(&question.methods)),
        attempt => format!("round {}: repair {attempt}", question.round),
    }
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
