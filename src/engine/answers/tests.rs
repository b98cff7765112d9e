//! Answers are kept, found again, written by concurrent writers and damaged.

use std::collections::BTreeMap;

use super::*;
use crate::collect::{self, Collected, Limits};
use kforge_types::record::answer::{Prompt, Proposal};

fn question(round: u32, attempt: u32) -> Question {
    let agent = "command ./agent".into();
    Question { contract: Digest::of(b"c"), parent: None, methods: vec!["memory.x".into()], round, attempt, agent }
}

fn answer(round: u32, attempt: u32, source: &str) -> Answer {
    let proposal = Proposal { source: Some(source.into()), branches: vec![BTreeMap::new()], ..Proposal::default() };
    Answer {
        format: ANSWER_FORMAT,
        question: question(round, attempt),
        answered_at: "2026-01-01T00:00:00Z".into(),
        advice: None,
        proposal: Some(proposal),
        refused: None,
        exchanges: vec![exchange("x", Some(0.1))],
    }
}

fn exchange(reply: &str, money: Option<f64>) -> Exchange {
    Exchange {
        role: Role::Coder,
        agent: "command ./agent".into(),
        prompt: Prompt { system: "s".into(), user: "u".into() },
        reply: reply.into(),
        refused: None,
        tokens: Some((1, 2)),
        money,
        took_ms: 3,
    }
}

fn asked(number: u32) -> ReplyKey {
    ReplyKey { question: question(1, 0), role: Role::Coder, agent: "command ./agent".into(), number }
}

fn place() -> (Answers, Home, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(dir.path()).unwrap();
    (Answers::new(&home), home, dir)
}

#[test]
fn a_reply_answers_what_was_asked_and_nothing_else() {
    let (answers, _home, _dir) = place();
    let reply = Reply { answered_at: "t".into(), exchange: exchange("{\"a\": \"\u{e9}\"}", Some(0.3)), cut: true };
    assert_eq!(answers.reply(&asked(0)).unwrap(), None);
    assert_eq!(answers.keep(&asked(0), reply.clone()).unwrap(), reply);
    assert_eq!(answers.reply(&asked(0)).unwrap(), Some(reply.clone()));
    let others = [
        asked(1),
        ReplyKey { role: Role::Advisor, ..asked(0) },
        ReplyKey { agent: "command ./other".into(), ..asked(0) },
        ReplyKey { question: question(2, 0), ..asked(0) },
        ReplyKey { question: question(1, 1), ..asked(0) },
    ];
    for other in others {
        assert_eq!(answers.reply(&other).unwrap(), None, "{other:?}");
    }
    let second = answers.keep(&asked(0), Reply { cut: false, ..reply.clone() }).unwrap();
    assert_eq!((second, answers.reply(&asked(0)).unwrap()), (reply.clone(), Some(reply)), "the first stays");
}

#[test]
fn answers_of_a_chain_come_by_round_and_attempt() {
    let (answers, _home, _dir) = place();
    let (chain, other) = (Digest::of(b"chain"), Digest::of(b"other"));
    for (round, attempt) in [(10, 0), (2, 1), (2, 0)] {
        answers.put(&chain, &answer(round, attempt, "s")).unwrap();
    }
    answers.put(&other, &answer(1, 0, "s")).unwrap();
    answers.keep(&asked(0), Reply { answered_at: String::new(), exchange: exchange("", None), cut: false }).unwrap();
    let listed = answers.list(&chain).unwrap();
    let places: Vec<_> = listed.answers.iter().map(|a| (a.question.round, a.question.attempt)).collect();
    assert_eq!(places, [(2, 0), (2, 1), (10, 0)]);
    assert_eq!((answers.all().unwrap().answers.len(), answers.all().unwrap().passed.len()), (4, 0));
    assert!(answers.list(&Digest::of(b"none")).unwrap().answers.is_empty());
}

#[test]
fn of_many_writers_one_wins_and_all_are_told_which() {
    let (answers, _home, _dir) = place();
    let chain = Digest::of(b"chain");
    let stands: Vec<Answer> = std::thread::scope(|scope| {
        let put = |n: usize| answers.put(&chain, &answer(1, 0, &format!("source {n}"))).unwrap();
        let all: Vec<_> = (0..8).map(|n| scope.spawn(move || put(n))).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(stands.windows(2).all(|w| w[0] == w[1]));
    assert_eq!(answers.list(&chain).unwrap().answers, stands[..1]);
}

#[test]
fn what_is_damaged_or_of_another_version_is_named_and_passed_over() {
    let (answers, home, _dir) = place();
    let chain = Digest::of(b"chain");
    let file = |round: u32| home.answers().join(chain.hex()).join(format!("{round}-0.json"));
    for round in 1..=5 {
        answers.put(&chain, &answer(round, 0, "a source")).unwrap();
    }
    let edit = |round: u32, from: &str, to: &str| {
        let text = std::fs::read_to_string(file(round)).unwrap();
        assert!(text.contains(from));
        std::fs::write(file(round), text.replacen(from, to, 1)).unwrap();
    };
    edit(1, "a source", "a sauce!");
    edit(2, "\"format\": 1", "\"format\": 7");
    std::fs::write(file(3), "{").unwrap();
    std::fs::rename(file(4), file(6)).unwrap();
    let listed = answers.list(&chain).unwrap();
    assert_eq!(listed.answers.iter().map(|a| a.question.round).collect::<Vec<_>>(), [5]);
    assert_eq!(listed.passed.len(), 4, "{:?}", listed.passed);
    let says = |n: usize, what: &str| assert!(listed.passed[n].contains(what), "{}", listed.passed[n]);
    says(0, "1-0.json` is damaged: its contents do not match its digest");
    says(1, "2-0.json` has format 7; this kforge reads format 1");
    says(2, "3-0.json` is damaged");
    says(3, "6-0.json` is damaged: it holds the answer of a round other than");
    // A damaged file is moved aside and replaced; a file of another version stays.
    let again = answer(1, 0, "again");
    assert_eq!(answers.put(&chain, &again).unwrap(), again);
    assert!(std::fs::read_to_string(file(1).with_extension("damaged")).unwrap().contains("a sauce!"));
    let error = answers.put(&chain, &answer(2, 0, "x")).unwrap_err().to_string();
    assert!(error.contains("2-0.json` has format 7"), "{error}");
}

#[test]
fn collection_leaves_answers_alone_and_their_size_is_told() {
    let (answers, home, _dir) = place();
    let chain = Digest::of(b"chain");
    answers.put(&chain, &answer(1, 0, "s")).unwrap();
    answers.keep(&asked(0), Reply { answered_at: String::new(), exchange: exchange("", None), cut: false }).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(400 * 24 * 3600);
    let limits = Limits { max_age: std::time::Duration::ZERO, max_size: 0 };
    assert!(matches!(collect::collect(&home, limits, later).unwrap(), Collected::Done(_)));
    assert_eq!(answers.list(&chain).unwrap().answers.len(), 1);
    assert!(answers.reply(&asked(0)).unwrap().is_some());
    let usage = collect::usage(&home).unwrap();
    assert_eq!(usage.answers.count, 2);
    assert!(usage.answers.bytes > 0 && usage.total().bytes >= usage.answers.bytes);
}
