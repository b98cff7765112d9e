//! Questions that are asked at the same time: how many are under way at once, which of them a budget pays for, and what a rejected one means for the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use super::server::{Does, Server, completion, says};
use super::world::{World, briefing, diagnosis, endpoint, proposal, question, with_parent, words};
use crate::optimize::agents::ask::ledger::{Admission, Reserve};
use crate::optimize::agents::ask::{AskError, AskEvent, Asking, Clock, Ledger, PermittedKeys, Surroundings};
use kforge_types::model::Agent;
use kforge_types::model::agent::{AgentAccess, Budget};
use kforge_types::record::answer::{Answer, Prompt};

type AskResult = Result<Answer, AskError>;

/// Asks for rounds 1, 2, ... at the same time. All of them are registered before the first one asks.
fn all_at_once(world: &World, coder: &Agent, ledger: &Ledger, count: usize) -> Vec<AskResult> {
    let agents = [coder.clone()];
    let all: Vec<Asking<'_>> = (0..count).map(|order| world.asking_in_order(&agents, ledger, order)).collect();
    let question = |order: usize| question(coder, order as u32 + 1, 0);
    for (order, asking) in all.iter().enumerate() {
        asking.expects(&question(order), &briefing(), None, coder).unwrap();
    }
    std::thread::scope(|scope| {
        // The last starts first.
        let start =
            |(order, asking): (usize, Asking<'_>)| asking.ask(&question(order), &briefing(), None, coder, &mut |_| {});
        let threads: Vec<ScopedJoinHandle<'_, AskResult>> =
            all.into_iter().enumerate().rev().map(|one| scope.spawn(move || start(one))).collect();
        let mut came: Vec<AskResult> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        came.reverse();
        came
    })
}

/// Replies that wait until they are released, and the senders that release them.
fn held(count: usize) -> (Vec<Does>, Vec<mpsc::Sender<()>>) {
    let one = |_| {
        let ((has, _), (go, may_go)) = (mpsc::channel(), mpsc::channel());
        (Does::Waits(has, may_go, completion(&proposal(), "stop", Some((1000, 200)))), go)
    };
    (0..count).map(one).unzip()
}

#[test]
fn as_many_requests_are_under_way_as_the_agent_allows_and_the_first_questions_go_first() {
    let world = World::new();
    let (script, go) = held(4);
    let server = Server::new(script);
    let coder = Agent { parallel: 2, ..endpoint(&server.url()) };
    let ledger = Ledger::default();
    let came = std::thread::scope(|scope| {
        let asked = scope.spawn(|| all_at_once(&world, &coder, &ledger, 4));
        server.has_read(2);
        // Two questions wait in turn, and no third request starts before one of the first two has ended.
        let probe = ledger.admit(&coder, 0, Reserve::of(&coder, &Prompt::default()), None, Duration::ZERO);
        assert_eq!(probe, Admission::Busy);
        ledger.leaves(0);
        assert_eq!(server.requests().len(), 2);
        // The later one is answered first.
        go[1].send(()).unwrap();
        server.has_read(3);
        [0, 2, 3].into_iter().for_each(|n| go[n].send(()).unwrap());
        asked.join().unwrap()
    });
    assert_eq!(came.iter().map(|c| c.as_ref().unwrap().question.round).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(ledger.spent(&coder).requests, 4);
}

#[test]
fn what_is_recorded_does_not_depend_on_which_reply_comes_first() {
    let recorded = |forwards: bool| {
        let world = World::new();
        let (script, go) = held(3);
        let server = Server::new(script);
        let coder = endpoint(&server.url());
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| all_at_once(&world, &coder, &Ledger::default(), 3));
            server.has_read(3);
            let order: Vec<usize> = if forwards { (0..3).collect() } else { (0..3).rev().collect() };
            for at in order {
                go[at].send(()).unwrap();
            }
            let mut came: Vec<Answer> = asked.join().unwrap().into_iter().map(Result::unwrap).collect();
            // Each server has a different address.
            came.iter_mut().flat_map(|a| &mut a.exchanges).for_each(|e| e.agent.clear());
            came.iter_mut().for_each(|a| a.question.agent.clear());
            came
        })
    };
    assert_eq!(recorded(true), recorded(false));
}

#[test]
fn requests_under_way_do_not_go_beyond_a_budget_and_the_first_questions_are_paid_for() {
    // Each answer takes 1200 tokens and costs 0.004. The tokens of a prompt are estimated, so this test does not know the most that a request may take to the
    // token.
    let tokens = |endpoint: &Agent| {
        let world = World::new();
        let answer = world.ask(endpoint).0.unwrap();
        let prompt = &answer.exchanges[0].prompt;
        ((prompt.system.len() + prompt.user.len()) as u64).div_ceil(3) + 1000
    };
    let server = Server::new(vec![says(&proposal())]);
    let most = tokens(&endpoint(&server.url()));
    assert!(most > 1200, "or a budget could be gone beyond");
    let budgets = [
        (Budget { requests: Some(3), ..Budget::default() }, 3, "3 of 3 requests".to_string()),
        // Room for a little more than two requests at their most. The third waits for the actual use of the first two, and then fits.
        (
            Budget { tokens: Some(2 * most + 100), ..Budget::default() },
            ((2 * most + 100 - most) / 1200 + 1) as usize,
            format!("may need {most}"),
        ),
        (Budget { money: Some(0.0001), ..Budget::default() }, 0, "0.0000 of 0.0001 in money".to_string()),
    ];
    for (budget, paid, why) in budgets {
        let world = World::new();
        let server = Server::new((0..paid).map(|_| says(&proposal())).collect());
        let coder = Agent { budget, parallel: 8, ..endpoint(&server.url()) };
        let ledger = Ledger::default();
        let came = all_at_once(&world, &coder, &ledger, 8);
        let spent = ledger.spent(&coder);
        assert_eq!(came.iter().map(Result::is_ok).collect::<Vec<_>>(), (0..8).map(|n| n < paid).collect::<Vec<_>>());
        assert!(budget.tokens.is_none_or(|most| spent.tokens <= most), "{spent:?}");
        assert_eq!(spent.requests as usize, paid);
        for error in came.into_iter().filter_map(Result::err) {
            assert!(matches!(error, AskError::Spent { .. }) && error.to_string().contains(&why), "{error}");
        }
    }
}

#[test]
fn where_nothing_bounds_an_answer_a_budget_lets_requests_start_one_at_a_time() {
    let world = World::new();
    let (script, go) = held(2);
    let server = Server::new(script);
    let mut coder = Agent { budget: Budget { tokens: Some(2000), ..Budget::default() }, ..endpoint(&server.url()) };
    if let AgentAccess::Http { max_tokens, .. } = &mut coder.reach {
        *max_tokens = None;
    }
    let ledger = Ledger::default();
    let came = std::thread::scope(|scope| {
        let asked = scope.spawn(|| all_at_once(&world, &coder, &ledger, 3));
        server.has_read(1);
        let reserve = Reserve::of(&coder, &Prompt::default());
        assert_eq!(ledger.admit(&coder, 0, reserve, None, Duration::ZERO), Admission::Busy);
        ledger.leaves(0);
        go.iter().for_each(|go| go.send(()).unwrap());
        asked.join().unwrap()
    });
    assert_eq!(came.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
    assert!(came[2].as_ref().unwrap_err().to_string().ends_with("2400 of 2000 tokens"), "{:?}", came[2]);
}

/// A clock that advances only on request.
#[derive(Default)]
struct ManualClock {
    now: Mutex<(Duration, usize)>,
    changed: Condvar,
    /// Whether all waits are to end.
    is_over: AtomicBool,
}

impl ManualClock {
    fn waiting(&self) -> usize {
        self.now.lock().unwrap().1
    }

    /// Ends all waits, so that a failing test ends too.
    fn ends(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.goes_on(Duration::ZERO);
    }

    fn goes_on(&self, by: Duration) {
        self.now.lock().unwrap().0 += by;
        self.changed.notify_all();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.now.lock().unwrap().0
    }

    fn today(&self) -> String {
        "2026-11-20T12:00:00Z".into()
    }

    fn wait(&self, time: Duration, _: &AtomicBool) {
        let mut now = self.now.lock().unwrap();
        let end = now.0 + time;
        now.1 += 1;
        while now.0 < end && !self.is_over.load(Ordering::Relaxed) {
            now = self.changed.wait(now).unwrap();
        }
        now.1 -= 1;
    }
}

#[test]
fn one_request_that_is_sent_away_holds_the_others_of_that_agent_back() {
    let world = World::new();
    let busy = Does::Answers(429, vec![("Retry-After", "30".into())], String::new());
    let server = Server::new([busy].into_iter().chain((0..2).map(|_| says(&proposal()))).collect());
    let coder = Agent { parallel: 1, ..endpoint(&server.url()) };
    let (clock, ledger, agents) = (Arc::new(ManualClock::default()), Ledger::default(), [coder.clone()]);
    let environment =
        kforge_foundation::config::Environment::of([("AGENT_KEY".to_string(), "sk-0123456789".to_string())]);
    let one = |order: usize| {
        let asking = Asking::new(Surroundings {
            answers: world.answers(),
            agents: &agents,
            environment: &environment,
            permitted: PermittedKeys::parse("AGENT_KEY=127.0.0.1"),
            offline: false,
            interrupted: &world.interrupted,
            folder: world.package(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ledger: &ledger,
            order,
        });
        let mut events = vec![];
        let question = question(&coder, order as u32 + 1, 0);
        let came = asking.ask(&question, &briefing(), None, &coder, &mut |e| events.push(e));
        came.map(|_| events)
    };
    ledger.expects(&coder, 0);
    let events = std::thread::scope(|scope| {
        let both = [0, 1].map(|order| scope.spawn(move || one(order)));
        // The rejected question waits, and so does the other one, which has asked nothing.
        while clock.waiting() < 2 && server.requests().len() < 2 {
            std::thread::yield_now();
        }
        match server.requests().len() {
            1 => clock.goes_on(Duration::from_secs(30)),
            _ => clock.ends(),
        }
        both.map(|thread| thread.join().unwrap().unwrap())
    });
    assert_eq!(words(&events[0]), ["asking", "retrying", "asking", "answered"]);
    assert_eq!(events[1][0], AskEvent::Waiting { agent: "far".into(), for_s: 30.0 });
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn the_end_of_a_request_that_was_sent_away_lets_no_other_one_start() {
    let (coder, ledger) = (Agent { parallel: 1, ..endpoint("http://127.0.0.1:1/v1") }, Ledger::default());
    let reserve = Reserve::of(&coder, &Prompt::default());
    assert_eq!(ledger.admit(&coder, 0, reserve, None, Duration::ZERO), Admission::Go);
    assert_eq!(ledger.admit(&coder, 1, reserve, None, Duration::ZERO), Admission::Busy);
    let alone = Duration::from_secs(30);
    ledger.settle(&coder, reserve, None, Some(alone));
    assert_eq!(ledger.admit(&coder, 1, reserve, None, Duration::ZERO), Admission::After(alone));
    assert_eq!(ledger.admit(&coder, 1, reserve, None, alone), Admission::Go);
}

#[test]
fn an_agent_that_sends_a_last_try_away_is_left_alone_by_all_unless_it_asks_for_too_long() {
    for (asks_s, then) in [(30, Admission::After(Duration::from_secs(30))), (901, Admission::Go)] {
        let world = World::new();
        let busy = Does::Answers(429, vec![("Retry-After", asks_s.to_string())], String::new());
        let server = Server::new(vec![busy]);
        let coder = Agent { retries: 0, ..endpoint(&server.url()) };
        let (ledger, agents) = (Ledger::default(), [coder.clone()]);
        let came = world.asking(&agents, &ledger).ask(&question(&coder, 1, 0), &briefing(), None, &coder, &mut |_| {});
        assert!(matches!(came, Err(AskError::Unreachable { .. })), "{came:?}");
        let reserve = Reserve::of(&coder, &Prompt::default());
        assert_eq!(ledger.admit(&coder, 1, reserve, None, world.clock.now()), then, "{asks_s}");
    }
}

#[test]
fn an_interruption_keeps_what_was_answered_and_drops_what_is_under_way() {
    let world = World::new();
    let (script, go) = held(3);
    let server = Server::new(script);
    let coder = endpoint(&server.url());
    let ledger = Ledger::default();
    let answered = |round: u32| {
        let asked = kforge_engine::answers::ReplyKey {
            question: question(&coder, round, 0),
            role: kforge_types::record::answer::Role::Coder,
            agent: coder.identity(),
            number: 0,
        };
        world.answers().reply(&asked).unwrap().is_some()
    };
    let came = std::thread::scope(|scope| {
        let asked = scope.spawn(|| all_at_once(&world, &coder, &ledger, 3));
        server.has_read(3);
        go[1].send(()).unwrap();
        while !(1..=3).any(answered) {
            std::thread::yield_now();
        }
        world.interrupted.store(true, Ordering::Relaxed);
        asked.join().unwrap()
    });
    let ends = came.iter().filter(|c| matches!(c, Err(AskError::Interrupted))).count();
    assert!(ends >= 2, "{came:?}");
    world.interrupted.store(false, Ordering::Relaxed);
    // The reply that came is recorded, and nothing else.
    assert_eq!((1..=3).filter(|round| answered(*round)).count(), 1);
    drop(go);
}

#[test]
fn an_advisor_that_was_answered_for_keeps_no_place_before_its_coder() {
    // Two questions. The advisor's reply to the first is recorded, so the one request of the budget goes to the first question's coder.
    let world = World::new();
    let (advisor, coder) = (Server::new(vec![says(&diagnosis())]), Server::new(vec![says(&proposal())]));
    let advisor = Agent { name: "advisor".into(), ..endpoint(&advisor.url()) };
    let coder = Agent { budget: Budget { requests: Some(1), ..Budget::default() }, ..endpoint(&coder.url()) };
    let agents = [advisor.clone(), coder.clone()];
    let broke = Agent { budget: Budget { requests: Some(0), ..Budget::default() }, ..coder.clone() };
    let first = question(&coder, 1, 0);
    let ended =
        world.asking(&agents, &Ledger::default()).ask(&first, &with_parent(), Some(&advisor), &broke, &mut |_| {});
    assert!(matches!(ended, Err(AskError::Spent { .. })), "{ended:?}");
    let ledger = Ledger::default();
    let all = [0, 1].map(|order| world.asking_in_order(&agents, &ledger, order));
    let second = question(&coder, 2, 0);
    all[0].expects(&first, &with_parent(), Some(&advisor), &coder).unwrap();
    all[1].expects(&second, &briefing(), Some(&advisor), &coder).unwrap();
    let [a, b] = all;
    let came = std::thread::scope(|scope| {
        let b = scope.spawn(|| b.ask(&second, &briefing(), Some(&advisor), &coder, &mut |_| {}));
        let a = scope.spawn(|| a.ask(&first, &with_parent(), Some(&advisor), &coder, &mut |_| {}));
        [a.join().unwrap(), b.join().unwrap()]
    });
    assert!(came[0].is_ok() && matches!(came[1], Err(AskError::Spent { .. })), "{came:?}");
}
