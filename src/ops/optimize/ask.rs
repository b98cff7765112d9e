//! Asks for attempts at rounds, several in parallel, and records the answers. Knows agents and threads; decides neither what to ask nor whether to ask.
//!
//! A thread that asks holds one lock, that of its question, and waits for no lock that another thread holds: see the order in `engine::lock`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::event::{AttemptEvent, AttemptRequest, NotAnswered, RoundEvent};
use super::next::Due;
use super::results::Results;
use super::{OptimizeError, Run};
use crate::Session;
use crate::event::Event;
use crate::session::Opened;
use crate::session::build::Packages;
use crate::session::rounds::{Recorded, Seat};
use kforge_engine::answers::Answers;
use kforge_engine::home::Home;
use kforge_engine::lock::{Lock, LockError, Mode, Wait};
use kforge_pipeline::optimize::agents::ask::{Asking, PERMITTED_KEYS, PermittedKeys, Spent, Surroundings};
use kforge_types::model::agent::RULES;
use kforge_types::model::{Agent, Kernel, Package};
use kforge_types::record::answer::{ANSWER_FORMAT, Answer};

/// How often a watcher is called while nothing happens.
const TICK: Duration = Duration::from_millis(250);

/// Reports the results of the last attempt's variants.
pub(super) fn tell(session: &Session, packages: &Packages, recorded: &Recorded, results: &Results<'_, '_>) {
    let package = packages.all().find(|p| p.name == recorded.seat.package);
    let kernel = package.and_then(|p| p.kernel(&recorded.seat.kernel));
    let operator = package.zip(kernel).and_then(|(p, k)| p.operator(&k.operator));
    let (Some(operator), Some(last)) = (operator, recorded.attempts.last()) else { return };
    let written = last.written.as_ref().map(|kernel| &kernel.source);
    for (build, became) in results.of_round(operator, last.round) {
        if build.written.as_ref().map(|w| &w.kernel.source) != written {
            continue;
        }
        let (seat, variant, became) = (&recorded.seat, build.label.as_str(), &became);
        session.reporter.event(&Event::Round(&RoundEvent::Judged { seat, variant, became }));
    }
}

/// One question, and the agents to ask.
struct Job<'p> {
    due: Due,
    /// None if the rules have already answered.
    who: Option<Who<'p>>,
}

/// The agents to ask.
struct Who<'p> {
    coder: &'p Agent,
    judge: Option<&'p Agent>,
    asking: Asking<'p>,
}

/// Questions to the same agents, in order, and the number of them to ask in parallel. Identical questions are adjacent: the answer to the first is recalled for
/// the others, so that it is paid for once.
struct Group<'p> {
    jobs: Mutex<VecDeque<Vec<(usize, Job<'p>)>>>,
    at_once: usize,
}

/// A seat, and the result of asking for its attempt.
pub(super) type PlanRequest = (Seat, Result<(), NotAnswered>);

/// Asks for all attempts that are due, as many in parallel as the agents allow, and records the answers. Returns the result of each attempt, in the order of
/// `due`.
///
/// What is recorded for a question depends on the replies to it and not on the progress of other questions. Budgets are the exception: earlier questions spend
/// them first.
pub(super) fn answers(
    session: &Session,
    opened: &Opened,
    packages: &Packages,
    due: Vec<Due>,
    run: &Run,
) -> Result<Vec<PlanRequest>, OptimizeError> {
    let store = Answers::new(&opened.home);
    let request = |due: &Due| AttemptRequest { seat: due.recorded.seat.clone(), question: due.question.clone() };
    let requests: Vec<AttemptRequest> = due.iter().map(request).collect();
    let groups = groups(session, packages, &store, due, run)?;
    let mut watch = session.reporter.observer().asking(&requests);
    let mut ended: BTreeMap<usize, Result<(), NotAnswered>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for group in &groups {
            for _ in 0..group.at_once {
                let (sender, store) = (sender.clone(), &store);
                scope.spawn(move || {
                    while let Some(jobs) = group.next() {
                        for (order, job) in jobs {
                            if session.interrupted.load(Ordering::Relaxed) {
                                return;
                            }
                            let tell = |event| drop(sender.send((order, event)));
                            tell(AttemptEvent::Begins);
                            let how = answer(session, store, &opened.home, job, &tell);
                            tell(AttemptEvent::Ended(how));
                        }
                    }
                });
            }
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(TICK) {
                Ok((order, event)) => {
                    watch.event(order, &event);
                    if let AttemptEvent::Ended(how) = event {
                        ended.insert(order, how);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            watch.tick(spent(run));
        }
    });
    watch.ended();
    drop(watch);
    let how =
        |(order, AttemptRequest { seat, .. })| (seat, ended.remove(&order).unwrap_or(Err(NotAnswered::Interrupted)));
    Ok(requests.into_iter().enumerate().map(how).collect())
}

/// What all agents together have spent in this run.
fn spent(run: &Run) -> Spent {
    run.ledger.all().into_iter().map(|(_, spent)| spent).fold(Spent::default(), |all, one| Spent {
        requests: all.requests.saturating_add(one.requests),
        tokens: all.tokens.saturating_add(one.tokens),
        money: all.money + one.money,
    })
}

impl<'p> Group<'p> {
    /// The next question, if there is one, with the questions that are identical to it.
    fn next(&self) -> Option<Vec<(usize, Job<'p>)>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// The names of the agents to ask: the package, its coder and its advisor. None if the rules have already answered.
type Asker<'n> = Option<(&'n str, &'n str, Option<&'n str>)>;

/// Groups the attempts that are due by the agents to ask. The first questions of each group are reserved in the budget here, so that it does not depend on the
/// order of threads which questions a budget pays for.
fn groups<'p>(
    session: &'p Session,
    packages: &'p Packages,
    store: &Answers,
    due: Vec<Due>,
    run: &'p Run,
) -> Result<Vec<Group<'p>>, OptimizeError> {
    let mut groups: BTreeMap<Asker<'_>, Group<'p>> = BTreeMap::new();
    let permitted = PermittedKeys::parse(session.settings.word(PERMITTED_KEYS).unwrap_or_default());
    // By question: its group, and its position in the group.
    let mut places = BTreeMap::new();
    for (order, due) in due.into_iter().enumerate() {
        let name = due.recorded.seat.name();
        let gone = || OptimizeError::Gone(name.clone());
        let member = packages.member(&due.recorded.seat.package).ok_or_else(gone)?;
        let package = &member.package;
        let mut who = None;
        if due.proposal.is_none() {
            let kernel = package.kernel(&due.recorded.seat.kernel).ok_or_else(gone)?;
            let (coder, judge) = agents(package, kernel).ok_or_else(gone)?;
            let asking = Asking::new(Surroundings {
                answers: store.clone(),
                agents: &package.agents,
                environment: &session.environment,
                permitted: permitted.clone(),
                offline: session.offline(),
                interrupted: &session.interrupted,
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
            let question = serde_json::to_string(&due.question).map_err(|_| gone())?;
            if let Some((key, at)) = places.get(&question) {
                let jobs = groups.get_mut(key).and_then(|group| group.jobs.get_mut().ok());
                jobs.and_then(|jobs| jobs.get_mut(*at)).ok_or_else(gone)?.push((order, Job { due, who }));
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
                who.asking.expects(&due.question, &due.briefing, who.judge, who.coder)?;
            }
        }
        jobs.push_back(vec![(order, Job { due, who })]);
    }
    Ok(groups.into_values().collect())
}

/// Asks, and records the answer.
fn answer(
    session: &Session,
    store: &Answers,
    home: &Home,
    job: Job<'_>,
    tell: &dyn Fn(AttemptEvent),
) -> Result<(), NotAnswered> {
    let Job { due: Due { recorded, question, briefing, proposal }, who } = job;
    let (round, attempt) = (question.round, question.attempt);
    // Two processes that ask the same question would both pay for it.
    let mut blocked = || {
        tell(AttemptEvent::Blocked);
        // While a question waits for another process, it does not hold up other questions.
        who.iter().for_each(|who| who.asking.leaves());
    };
    let place = home.locks().join(format!("asks-{}", recorded.chain.hex()));
    let _lock = Lock::acquire(&place, Mode::Exclusive, Wait::Unless(&session.interrupted, &mut blocked)).map_err(
        |e| match e {
            LockError::Interrupted(_) => NotAnswered::Interrupted,
            other => NotAnswered::Lock(other),
        },
    )?;
    let folder = store.folder(&recorded.chain);
    let listed = store.list(&recorded.chain).map_err(NotAnswered::Unreadable)?;
    if listed.answers.iter().any(|a| (a.question.round, a.question.attempt) == (round, attempt)) {
        return Ok(());
    }
    if folder.join(format!("{round}-{attempt}.json")).exists() {
        return Err(NotAnswered::OtherVersion(folder));
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
            asking.ask(&question, &briefing, judge, coder, &mut |event| tell(AttemptEvent::Asking(event)))?
        }
    };
    // Refused replies have been reported already.
    let put = store.put(&recorded.chain, &answer);
    put.map(drop).map_err(NotAnswered::NotRecorded)
}

/// The coder and the advisor of a kernel's rounds.
fn agents<'p>(package: &'p Package, kernel: &Kernel) -> Option<(&'p Agent, Option<&'p Agent>)> {
    let rounds = kernel.rounds.as_ref()?;
    let coder = package.agent(&rounds.agent.value)?;
    let judge = match &rounds.judge {
        None => Some(coder),
        // The rules give no advice in words.
        Some(name) if name.value == RULES => None,
        Some(name) => package.agent(&name.value),
    };
    Some((coder, judge))
}
