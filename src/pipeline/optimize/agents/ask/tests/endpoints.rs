//! Endpoints as agents: a real server on this machine that makes every mistake an endpoint can make.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use super::server::{Does, Server, completion, fails, says};
use super::world::{KEY, World, agent, briefing, endpoint, proposal, question, words};
use crate::optimize::agents::ask::{AskError, AskEvent, Ledger};
use kforge_types::model::Agent;
use kforge_types::model::agent::AgentAccess;

fn asks(script: Vec<Does>, retries: u32) -> (Server, Agent) {
    let server = Server::new(script);
    let coder = Agent { retries, ..endpoint(&server.url()) };
    (server, coder)
}

#[test]
fn an_endpoint_is_asked_by_the_protocol_and_its_tokens_are_counted() {
    let world = World::new();
    let (server, coder) = asks(vec![says(&format!("```json\n{}\n```", proposal()))], 0);
    let agents = [coder.clone()];
    let ledger = Ledger::default();
    let asking = world.asking(&agents, &ledger);
    let mut events = vec![];
    let answer = asking.ask(&question(&coder, 1, 0), &briefing(), None, &coder, &mut |e| events.push(e)).unwrap();
    assert!(answer.proposal.is_some());
    let exchange = &answer.exchanges[0];
    assert_eq!(exchange.tokens, Some((1000, 200)));
    assert_eq!(exchange.money, Some((2.0 * 1000.0 + 10.0 * 200.0) / 1e6));
    assert_eq!(ledger.spent(&coder).tokens, 1200);
    assert_eq!(words(&events), ["asking", "answered"]);
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!((&request.body["model"], &request.body["max_tokens"]), (&json!("m-1"), &json!(1000)));
    assert_eq!(request.body["temperature"], json!(0.2));
    assert_eq!(request.body["messages"][0]["content"], json!(exchange.prompt.system));
    assert_eq!(request.body["messages"][1], json!({ "role": "user", "content": exchange.prompt.user }));
    let header = |wanted: &str| request.headers.iter().any(|h| h.to_lowercase() == wanted.to_lowercase());
    assert!(header(&format!("Authorization: Bearer {KEY}")) && header("Content-Type: application/json"), "{request:?}");
    // The server answers no more requests: the recorded reply is used.
    let (again, events) = world.ask(&coder);
    assert_eq!((again.unwrap(), words(&events)), (answer, vec!["recalled"]));
    assert_eq!(world.files_with_the_key(), [""; 0]);
}

#[test]
fn replies_that_are_no_good_are_repeated_then_refused_each_for_its_own_reason() {
    let cut = Does::Answers(200, vec![], completion(&proposal(), "length", Some((1000, 1000))));
    let script = vec![
        says("I would rather write a poem."),
        says("{\"declaration\": \"x"),
        says("{\"declaration\": 1, \"source\": \"s\", \"branches\": []}"),
        says(&proposal().replace("grid", "grit")),
        cut,
    ];
    let world = World::new();
    let (_server, coder) = asks(script, 4);
    let answer = world.ask(&coder).0.unwrap();
    let why: Vec<&str> = answer.exchanges.iter().map(|e| e.refused.as_deref().unwrap()).collect();
    let says = [
        "no JSON object",
        "cannot be read: EOF",
        "does not match its schema",
        "`declaration` is wrong",
        "it is cut off",
    ];
    assert_eq!(why.len(), says.len());
    for (why, says) in why.iter().zip(says) {
        assert!(why.contains(says), "{why}");
    }
    assert_eq!(answer.refused.as_deref(), why.last().copied());
    // Half an answer that happens to be complete JSON is still refused, also when it is recalled.
    assert_eq!(world.ask(&coder).0.unwrap(), answer);
}

#[test]
fn an_endpoint_that_is_busy_is_left_alone_for_as_long_as_it_asks() {
    let busy = |after: &str| Does::Answers(429, vec![("Retry-After", after.into())], String::new());
    let world = World::new();
    let script = vec![busy("7"), fails(429, "slow down"), fails(503, "overloaded"), busy("1"), says(&proposal())];
    let (server, coder) = asks(script, 4);
    let (came, events) = world.ask(&coder);
    assert!(came.unwrap().proposal.is_some());
    assert_eq!(world.waits(), [7.0, 2.0, 4.0, 8.0], "its own wish or the pause that doubles, whichever is longer");
    assert_eq!(server.requests().len(), 5);
    let told =
        events.iter().any(|e| matches!(e, AskEvent::Retrying { why, in_s: 2.0, .. } if why.contains("slow down")));
    assert!(told, "{events:?}");
    // Longer than the longest pause that is granted.
    let world = World::new();
    let (_server, coder) = asks(vec![busy("86400")], 4);
    let error = world.ask(&coder).0.unwrap_err().to_string();
    assert!(error.contains("a pause of 86400 s") && world.waits().is_empty(), "{error}");
}

#[test]
fn pauses_double_up_to_a_minute() {
    let world = World::new();
    let (_server, coder) = asks((0..9).map(|_| fails(500, "no")).collect(), 8);
    assert!(matches!(world.ask(&coder).0, Err(AskError::Unreachable { .. })));
    assert_eq!(world.waits(), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
}

#[test]
fn connections_that_break_and_answers_that_are_none_are_tried_again() {
    let world = World::new();
    let script = vec![
        Does::Drops,
        Does::Breaks,
        Does::Answers(200, vec![], "<html>".into()),
        Does::Answers(200, vec![], "{\"choices\": []}".into()),
        says(&proposal()),
    ];
    let (server, coder) = asks(script, 4);
    assert!(world.ask(&coder).0.unwrap().proposal.is_some());
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn answers_of_absurd_sizes_depths_and_bytes_are_no_good_and_the_next_one_counts() {
    let world = World::new();
    let flood = completion(&"x".repeat(17 << 20), "stop", None);
    let deep = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    let fenced = format!("```json\n{}\n```\n", proposal().replace("{}\"", "{} // ```cuda\\n``` ```\""));
    let script = vec![
        Does::Answers(200, vec![], flood),
        says(&deep),
        says(&"{".repeat(5_000)),
        says("\u{fffd}{\"declaration\": \"\u{fffd}\"}"),
        says(&fenced),
    ];
    let (_server, coder) = asks(script, 4);
    let answer = world.ask(&coder).0.unwrap();
    let why: Vec<Option<&str>> = answer.exchanges.iter().map(|e| e.refused.as_deref()).collect();
    let says = ["no JSON object", "cannot be read", "cannot be read", "does not match its schema"];
    assert!(why.iter().zip(says).all(|(why, says)| why.unwrap().contains(says)), "{why:?}");
    assert!(why[4].is_none() && answer.proposal.unwrap().source.unwrap().contains("``` ```"));
    assert_eq!(answer.exchanges[0].reply, "[more than 16 MiB, not kept]");
}

#[test]
fn nobody_there_is_unreachable() {
    let world = World::new();
    let server = Server::new(vec![]);
    let coder = Agent { retries: 1, ..endpoint(&server.url()) };
    drop(server);
    let error = world.ask(&coder).0.unwrap_err();
    assert!(matches!(&error, AskError::Unreachable { agent, .. } if agent == "far"), "{error}");
}

#[test]
fn an_endpoint_that_says_nothing_is_given_up_after_its_time_limit() {
    let world = World::new();
    let (_server, mut coder) = asks(vec![Does::Hangs], 0);
    coder.time_limit_s = 1;
    let error = world.ask(&coder).0.unwrap_err().to_string();
    assert!(error.contains("no data arrived within 1 s"), "{error}");
}

#[test]
fn a_refusal_is_final_and_what_it_says_loses_the_key() {
    let world = World::new();
    for message in [format!("Incorrect API key provided: {KEY}"), format!("{}{KEY}", "x".repeat(590))] {
        let (server, coder) = asks(vec![fails(401, &message)], 3);
        let (came, events) = world.ask(&coder);
        let error = came.unwrap_err();
        let text = format!("{error} {error:?} {events:?}");
        assert!(matches!(error, AskError::Denied { .. }) && text.contains("status 401"), "{text}");
        assert!(!text.contains(&KEY[..12]), "{text}");
        assert_eq!(server.requests().len(), 1);
    }
    assert!(
        world
            .ask(&asks(vec![Does::Answers(400, vec![], "no such model".into())], 3).1)
            .0
            .unwrap_err()
            .to_string()
            .contains("status 400: no such model")
    );
}

#[test]
fn the_key_is_nowhere_even_if_the_endpoint_repeats_it() {
    let world = World::new();
    let mut good: serde_json::Value = serde_json::from_str(&proposal()).unwrap();
    good["notes"] = json!(format!("my key is {KEY}"));
    let busy = Does::Answers(429, vec![("Retry-After", "1".into())], format!("you with {KEY}, wait"));
    let (_server, coder) = asks(vec![says(&format!("{{{KEY}")), busy, says(&good.to_string())], 3);
    let (came, events) = world.ask(&coder);
    let answer = came.unwrap();
    assert_eq!(answer.proposal.as_ref().unwrap().notes.as_deref(), Some("my key is [key]"));
    world.answers().put(&kforge_foundation::base::Digest::of(b"chain"), &answer).unwrap();
    assert_eq!(world.files_with_the_key(), [""; 0]);
    assert!(!format!("{answer:?} {events:?} {coder:?}").contains(KEY));
}

#[test]
fn the_key_goes_to_the_stated_address_and_no_other() {
    for status in [301, 302, 307, 308] {
        let world = World::new();
        let other = Server::new(vec![says(&proposal())]);
        let to = ("Location", format!("{}chat/completions?{KEY}", other.url()));
        let (_server, coder) = asks(vec![Does::Answers(status, vec![to], String::new())], 3);
        let error = world.ask(&coder).0.unwrap_err().to_string();
        assert!(error.contains("redirects requests to `http://127.0.0.1") && !error.contains(KEY), "{status}: {error}");
        assert!(other.requests().is_empty());
    }
}

#[test]
fn a_key_that_the_user_has_not_permitted_is_not_sent() {
    let world = World::new();
    let server = Server::new(vec![]);
    let mut coder = endpoint(&server.url());
    if let AgentAccess::Http { key: Some(key), .. } = &mut coder.reach {
        key.value = "PATH".into();
    }
    let error = world.ask(&coder).0.unwrap_err();
    assert!(matches!(error, AskError::KeyRefused { .. }), "{error}");
    let says = error.to_string();
    assert!(says.contains("--config agents.keys=AGENT_KEY=127.0.0.1,NO_SUCH_KEY=127.0.0.1,PATH=127.0.0.1"), "{says}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_key_that_is_not_set_is_named_before_anything_is_asked() {
    let world = World::new();
    let advisor = world.script("echo x >> asked");
    let server = Server::new(vec![]);
    let mut coder = endpoint(&server.url());
    if let AgentAccess::Http { key: Some(key), .. } = &mut coder.reach {
        key.value = "NO_SUCH_KEY".into();
    }
    let agents = [advisor.clone(), coder.clone()];
    let briefing = super::world::with_parent();
    let came = world.asking(&agents, &Ledger::default()).ask(
        &question(&coder, 1, 0),
        &briefing,
        Some(&advisor),
        &coder,
        &mut |_| {},
    );
    let error = came.unwrap_err();
    assert!(matches!(error, AskError::NoKey { .. }), "{error}");
    assert_eq!(error.to_string(), "agent `far` needs a key: the environment variable `NO_SUCH_KEY` is not set");
    assert!(!world.package().join("asked").exists());
}

#[test]
fn offline_asks_no_endpoint_and_recalls_what_was_answered() {
    let mut world = World::new();
    let (_server, coder) = asks(vec![says(&proposal())], 0);
    world.offline = true;
    assert!(matches!(world.ask(&coder).0, Err(AskError::Offline(name)) if name == "far"));
    world.offline = false;
    let answer = world.ask(&coder).0.unwrap();
    world.offline = true;
    assert_eq!(world.ask(&coder).0.unwrap(), answer);
    // Running a program does not use the network.
    assert!(world.ask(&world.script(&format!("cat <<'END'\n{}\nEND", proposal()))).0.is_ok());
}

#[test]
fn an_interruption_does_not_wait_for_the_endpoint_and_a_reply_that_comes_after_it_is_kept() {
    let world = World::new();
    let ((has, is_asked), (go, may_go)) = (mpsc::channel(), mpsc::channel());
    let body = completion(&proposal(), "stop", None);
    let (_server, coder) = asks(vec![Does::Waits(has, may_go, body)], 0);
    let came = std::thread::scope(|scope| {
        let asked = scope.spawn(|| world.ask(&coder).0);
        is_asked.recv().unwrap();
        world.interrupted.store(true, Ordering::Relaxed);
        asked.join().unwrap()
    });
    assert!(matches!(came, Err(AskError::Interrupted)), "it returned while the endpoint was thinking");
    go.send(()).unwrap();
    world.interrupted.store(false, Ordering::Relaxed);
    // The reply is still being written to disk. Once it is there, nothing is requested again.
    let answers = world.answers();
    let asked = kforge_engine::answers::ReplyKey {
        question: question(&coder, 1, 0),
        role: kforge_types::record::answer::Role::Coder,
        agent: coder.identity(),
        number: 0,
    };
    while answers.reply(&asked).unwrap().is_none() {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let (came, events) = world.ask(&coder);
    assert!(came.unwrap().proposal.is_some());
    assert_eq!(words(&events), ["recalled"]);
}

#[test]
fn endpoints_that_answer_in_parts_or_refuse_are_understood() {
    let world = World::new();
    let parts = json!({ "choices": [{ "message": { "content": [{ "type": "text", "text": proposal() }] } }] });
    let refusal = json!({ "choices": [{ "message": { "content": null, "refusal": "no" }, "finish_reason": "stop" }] });
    let script = [refusal, parts].map(|body| Does::Answers(200, vec![], body.to_string()));
    let (_server, coder) = asks(script.into(), 1);
    let answer = world.ask(&coder).0.unwrap();
    assert!(answer.proposal.is_some() && answer.exchanges[0].refused.is_some());
}

#[test]
fn agents_without_a_key_send_none() {
    let world = World::new();
    let (server, mut coder) = asks(vec![says(&proposal())], 0);
    if let AgentAccess::Http { key, .. } = &mut coder.reach {
        *key = None;
    }
    assert!(world.ask(&agent("near", coder.reach)).0.is_ok());
    assert!(!server.requests()[0].headers.iter().any(|h| h.to_lowercase().starts_with("authorization")));
}
