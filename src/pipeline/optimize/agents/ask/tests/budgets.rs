//! Limits on asking an agent: budgets, and requests per minute.

use super::server::{Server, says};
use super::world::{World, briefing, endpoint, proposal, question, words};
use crate::optimize::agents::ask::{AskError, AskEvent, Ledger};
use kforge_types::model::Agent;
use kforge_types::model::agent::{AgentAccess, Budget};

fn spent(came: Result<kforge_types::record::answer::Answer, AskError>) -> String {
    match came {
        Err(error @ AskError::Spent { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Asks for rounds until there is no answer. Returns the number of answers, and why the asking ended.
fn rounds(world: &World, coder: &Agent) -> (u32, String) {
    let agents = [coder.clone()];
    let ledger = Ledger::default();
    for round in 1.. {
        // A new `Asking` each time, as in a driver that opens the package again. The ledger is that of one run.
        let came =
            world.asking(&agents, &ledger).ask(&question(coder, round, 0), &briefing(), None, coder, &mut |_| {});
        if came.is_err() {
            return (round - 1, spent(came));
        }
    }
    unreachable!()
}

#[test]
fn each_part_of_a_budget_ends_the_asking() {
    let budgets = [
        (Budget { requests: Some(3), ..Budget::default() }, 3, "3 of 3 requests"),
        // 1200 tokens per answer, which cost 0.004.
        (Budget { tokens: Some(1201), ..Budget::default() }, 2, "2400 of 1201 tokens"),
        (Budget { money: Some(0.008), ..Budget::default() }, 2, "0.0080 of 0.008 in money"),
    ];
    for (budget, answered, why) in budgets {
        let world = World::new();
        let server = Server::new((0..answered).map(|_| says(&proposal())).collect());
        let mut coder = Agent { budget, ..endpoint(&server.url()) };
        if let AgentAccess::Http { max_tokens, .. } = &mut coder.reach {
            // Nothing bounds an answer, so the last request may exceed the budget.
            *max_tokens = None;
        }
        let (came, error) = rounds(&world, &coder);
        assert_eq!(came, answered);
        assert!(error.contains("`far` has spent its budget of this run") && error.ends_with(why), "{error}");
        // Another run has another budget, and recorded replies cost it nothing.
        let agents = [coder.clone()];
        let ledger = Ledger::default();
        let asking = world.asking(&agents, &ledger);
        for round in 1..=answered {
            asking.ask(&question(&coder, round, 0), &briefing(), None, &coder, &mut |_| {}).unwrap();
        }
        assert_eq!(ledger.spent(&coder).requests, 0);
    }
}

#[test]
fn requests_that_fail_and_replies_that_are_no_good_count() {
    let world = World::new();
    let server = Server::new(vec![super::server::fails(500, "no"), says("no")]);
    let budget = Budget { requests: Some(2), ..Budget::default() };
    let coder = Agent { budget, retries: 9, ..endpoint(&server.url()) };
    assert!(spent(world.ask(&coder).0).ends_with("2 of 2 requests"));
}

#[test]
fn tokens_that_are_not_told_are_reckoned_and_not_taken_for_none() {
    let world = World::new();
    let coder = world.script(&format!("cat <<'END'\n{}\nEND", proposal()));
    let coder = Agent { budget: Budget { tokens: Some(10), ..Budget::default() }, ..coder };
    let (came, error) = rounds(&world, &coder);
    assert_eq!(came, 1);
    assert!(error.contains(" of 10 tokens"), "{error}");
}

#[test]
fn no_more_requests_start_in_a_minute_than_an_agent_allows() {
    let world = World::new();
    let server = Server::new((0..5).map(|_| says(&proposal())).collect());
    let coder = Agent { per_minute: Some(2), ..endpoint(&server.url()) };
    let agents = [coder.clone()];
    let ledger = Ledger::default();
    let asking = world.asking(&agents, &ledger);
    let mut events = vec![];
    for round in 1..=5 {
        asking.ask(&question(&coder, round, 0), &briefing(), None, &coder, &mut |e| events.push(e)).unwrap();
    }
    assert_eq!(world.waits(), [60.0, 60.0]);
    let waiting = ["asking", "answered", "asking", "answered", "waiting"];
    assert_eq!(words(&events)[..10], [waiting, waiting].concat());
    assert!(events.contains(&AskEvent::Waiting { agent: "far".into(), for_s: 60.0 }));
}
