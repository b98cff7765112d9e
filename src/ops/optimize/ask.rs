//! Asking for attempts at rounds, several at the same time, and recording what was answered. Knows who is asked, and the threads; decides neither what nor whether.
//!
//! A thread that asks holds one lock of a question and waits for no other thread's: see the order in `engine::lock`.

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
use kforge_pipeline::optimize::agents::ask::{Asking, Spent, Surroundings};
use kforge_types::model::agent::RULES;
use kforge_types::model::{Agent, Kernel, Package};
use kforge_types::record::answer::{ANSWER_FORMAT, Answer};

/// How often whoever watches is told that time passes while nothing happens.
const TICK: Duration = Duration::from_millis(250);

/// Reports what became of the last attempt's variants.
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
pub(super) type Asked = (Seat, Result<(), NotAnswered>);

/// Asks for all that is due, as many at once as the agents allow, and records what was answered. Gives what each came to, in the order of what was due.
///
/// What is recorded of a question depends on the replies to it, and on nothing that happens to others meanwhile, but for budgets, which the first spend first.
pub(super) fn answers(
    session: &Session,
    opened: &Opened,
    packages: &Packages,
    due: Vec<Due>,
    run: &Run,
) -> Result<Vec<Asked>, OptimizeError> {
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
    /// The next question, if there is one, with those that are the same.
    fn next(&self) -> Option<Vec<(usize, Job<'p>)>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Who is asked, by name: the package, its coder and its judge; none where the rules have said what there is to say.
type Asker<'n> = Option<(&'n str, &'n str, Option<&'n str>)>;

/// What is due by whom it is asked, those that are asked first in their places already: which of them a budget pays for must not depend on whose thread is first.
fn groups<'p>(
    session: &'p Session,
    packages: &'p Packages,
    store: &Answers,
    due: Vec<Due>,
    run: &'p Run,
) -> Result<Vec<Group<'p>>, OptimizeError> {
    let mut groups: BTreeMap<Asker<'_>, Group<'p>> = BTreeMap::new();
    // By question: the group that it is in, and its place there.
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

/// Asks, and records what was answered.
fn answer(
    session: &Session,
    store: &Answers,
    home: &Home,
    job: Job<'_>,
    tell: &dyn Fn(AttemptEvent),
) -> Result<(), NotAnswered> {
    let Job { due: Due { recorded, question, briefing, proposal }, who } = job;
    let (round, attempt) = (question.round, question.attempt);
    // Two that ask the same would both pay.
    let mut blocked = || {
        tell(AttemptEvent::Blocked);
        // What waits for another process holds no other question back.
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
    // What was wrong with the last reply has been said.
    let put = store.put(&recorded.chain, &answer);
    put.map(drop).map_err(NotAnswered::NotRecorded)
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
