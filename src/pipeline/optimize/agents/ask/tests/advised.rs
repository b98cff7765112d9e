//! An advisor's request and the coder's request that follows it: a budget pays for both or for neither.

use std::time::Duration;

use super::server::{Server, fails, says};
use super::world::{World, diagnosis, endpoint, proposal, question, with_parent};
use crate::optimize::agents::ask::ledger::{Admission, Reserve};
use crate::optimize::agents::ask::{AskError, Asking, Ledger};
use kforge_types::model::Agent;
use kforge_types::model::agent::{AgentAccess, Budget};
use kforge_types::record::answer::{Answer, Prompt};

type AskResult = Result<Answer, AskError>;

/// Asks `count` questions at the same time with two agents, or with one in both roles. Each question has a parent that an advisor can diagnose.
fn asked_both(world: &World, advisor: &Agent, coder: &Agent, ledger: &Ledger, count: usize) -> Vec<AskResult> {
    let agents = [advisor.clone(), coder.clone()];
    let all: Vec<Asking<'_>> = (0..count).map(|order| world.asking_in_order(&agents, ledger, order)).collect();
    let question = |order: usize| question(coder, order as u32 + 1, 0);
    for (order, asking) in all.iter().enumerate() {
        asking.expects(&question(order), &with_parent(), Some(advisor), coder).unwrap();
    }
    std::thread::scope(|scope| {
        let ask = |(order, asking): (usize, Asking<'_>)| {
            asking.ask(&question(order), &with_parent(), Some(advisor), coder, &mut |_| {})
        };
        let threads: Vec<_> = all.into_iter().enumerate().map(|one| scope.spawn(move || ask(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn oks(came: &[AskResult]) -> Vec<bool> {
    came.iter().map(Result::is_ok).collect()
}

#[test]
fn an_advisor_is_asked_only_if_its_coder_can_be_paid_too() {
    // Both advisors could be asked at once; the coder's budget pays for one request.
    let world = World::new();
    let servers = [Server::new(vec![says(&diagnosis())]), Server::new(vec![says(&proposal())])];
    let advisor = Agent { name: "advisor".into(), ..endpoint(&servers[0].url()) };
    let coder = Agent { budget: Budget { requests: Some(1), ..Budget::default() }, ..endpoint(&servers[1].url()) };
    let ledger = Ledger::default();
    let came = asked_both(&world, &advisor, &coder, &ledger, 3);
    assert_eq!(oks(&came), [true, false, false], "{came:?}");
    assert!(came[1..].iter().all(|c| c.as_ref().unwrap_err().to_string().ends_with("1 of 1 requests")), "{came:?}");
    assert_eq!((ledger.spent(&advisor).requests, ledger.spent(&coder).requests), (1, 1));
}

#[test]
fn who_advises_and_writes_spends_a_budget_in_twos() {
    let world = World::new();
    let server =
        Server::new([diagnosis(), proposal(), diagnosis(), proposal()].iter().map(|text| says(text)).collect());
    // One after the other, so that the script has the order of the requests.
    let budget = Budget { requests: Some(5), ..Budget::default() };
    let agent = Agent { budget, parallel: 1, ..endpoint(&server.url()) };
    let (ledger, agents) = (Ledger::default(), [agent.clone()]);
    let mut came = vec![];
    for order in 0..3 {
        let asking = world.asking_in_order(&agents, &ledger, order);
        let question = question(&agent, order as u32 + 1, 0);
        came.push(asking.ask(&question, &with_parent(), Some(&agent), &agent, &mut |_| {}));
    }
    assert_eq!(oks(&came), [true, true, false]);
    let why = came[2].as_ref().unwrap_err().to_string();
    assert!(why.ends_with("4 of 5 requests, and the next request and its coder's need two"), "{why}");
    assert_eq!(ledger.spent(&agent).requests, 4);
}

#[test]
fn tokens_and_money_are_kept_for_the_coder_with_what_its_advisor_may_say() {
    let ask = |budget: Budget, max: Option<u64>| {
        let world = World::new();
        let server = Server::new([diagnosis(), proposal()].iter().map(|text| says(text)).collect());
        let mut agent = Agent { budget, ..endpoint(&server.url()) };
        if let AgentAccess::Http { max_tokens, .. } = &mut agent.reach {
            *max_tokens = max;
        }
        let ledger = Ledger::default();
        let came = asked_both(&world, &agent, &agent, &ledger, 1).remove(0);
        (came.map(|answer| answer.exchanges).map_err(|why| why.to_string()), ledger.spent(&agent))
    };
    let tokens = |tokens| Budget { tokens: Some(tokens), ..Budget::default() };
    let (needed, spent) = ask(tokens(1201), Some(1000));
    assert_eq!(spent.requests, 0, "{needed:?}");
    let needed: u64 = needed.unwrap_err().rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(ask(tokens(needed - 1), Some(1000)).1.requests, 0);
    let (exchanges, spent) = ask(tokens(needed), Some(1000));
    assert!(spent.tokens == 2400 && spent.tokens <= needed);
    // Regardless of the length of the advice: the prompt to the coder is no longer than estimated.
    let sent: usize = exchanges.unwrap().iter().map(|e| e.prompt.system.len() + e.prompt.user.len()).sum();
    assert!(needed >= (sent as u64).div_ceil(3) + 2000 + 1800, "{needed} {sent}");
    let (few, spent) = ask(Budget { money: Some(0.02), ..Budget::default() }, Some(1000));
    assert!(few.is_err_and(|why| why.contains("the next request and its coder's may cost")));
    assert_eq!(spent.requests, 0);
    // Nothing bounds an answer: the advisor uses up the whole budget, and the coder is still asked.
    let (both, spent) = ask(tokens(100), None);
    assert!(both.is_ok_and(|both| both.len() == 2));
    assert_eq!(spent.tokens, 2400);
}

#[test]
fn who_holds_its_coders_share_may_ask_its_advisor_again_where_nothing_bounds_an_answer() {
    let budget = Budget { tokens: Some(100_000), ..Budget::default() };
    let mut agent = Agent { budget, ..endpoint("http://127.0.0.1:9/v1") };
    if let AgentAccess::Http { max_tokens, .. } = &mut agent.reach {
        *max_tokens = None;
    }
    let (reserve, ledger) = (Reserve::of(&agent, &Prompt::default()), Ledger::default());
    let advisor = |order| ledger.admit(&agent, order, reserve, Some((&agent, reserve)), Duration::ZERO);
    assert_eq!(advisor(0), Admission::Go);
    assert_eq!(advisor(1), Admission::Busy);
    ledger.settle(&agent, reserve, None, None);
    assert_eq!(advisor(0), Admission::Go);
}

#[test]
fn a_question_that_ends_gives_back_what_was_kept_for_it() {
    // The first advisor rejects its question for good, so the second question's coder is paid for.
    let world = World::new();
    let servers = [Server::new(vec![fails(400, "no"), says(&diagnosis())]), Server::new(vec![says(&proposal())])];
    let advisor = Agent { name: "advisor".into(), parallel: 1, ..endpoint(&servers[0].url()) };
    let coder = Agent { budget: Budget { requests: Some(1), ..Budget::default() }, ..endpoint(&servers[1].url()) };
    let came = asked_both(&world, &advisor, &coder, &Ledger::default(), 2);
    assert_eq!(oks(&came), [false, true], "{came:?}");
}

#[test]
fn two_that_advise_each_other_do_not_wait_for_each_other() {
    // Each question holds one request of the other's advisor and asks its own advisor again. The budget has nothing left for that, and neither question waits.
    let reserve = Reserve::of(&endpoint("http://127.0.0.1:9/v1"), &Prompt::default());
    let of = |name: &str| Agent {
        name: name.into(),
        budget: Budget { requests: Some(2), ..Budget::default() },
        ..endpoint("http://127.0.0.1:9/v1")
    };
    let (a, b, ledger) = (of("a"), of("b"), Ledger::default());
    let admit = |agent: &Agent, order, then| ledger.admit(agent, order, reserve, then, Duration::ZERO);
    assert_eq!(admit(&a, 0, Some((&b, reserve))), Admission::Go);
    assert_eq!(admit(&b, 1, Some((&a, reserve))), Admission::Go);
    assert_eq!(admit(&a, 2, None), Admission::Busy);
    assert!(matches!(admit(&a, 0, Some((&b, reserve))), Admission::Spent(_)));
    assert!(matches!(admit(&b, 1, Some((&a, reserve))), Admission::Spent(_)));
    // The held request starts. When the first question leaves, its hold ends too.
    assert_eq!(admit(&a, 1, None), Admission::Go);
    ledger.leaves(0);
    assert_eq!(admit(&b, 3, None), Admission::Go);
}
