//! Long wear: a hundred kills at random, of the server and before that of one of its workers, while 64 clients submit and cancel. Every accepted task gets one
//! right answer: an evaluation whose worker was killed is repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use serde_json::Value;

use crate::client::Connection;
use crate::server::{Server, distinct, kill, project, request, source};

/// How many clients submit.
const CLIENTS: usize = 64;

/// How many contents there are, besides that each client sends each of them.
const CONTENTS: usize = 40;

/// Numbers that look random: a multiplicative generator modulo 2^31 - 1.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0 * 48271 % 0x7fff_ffff;
        self.0 % n
    }
}

/// How often the server is killed.
#[expect(clippy::disallowed_methods, reason = "a test reads its own settings")]
fn kills() -> u64 {
    std::env::var("KFORGE_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}

/// Kills one of the workers of a server, if there is one.
fn kill_a_worker(server: &Server, chance: &mut Chance) -> bool {
    let workers = server.workers();
    workers.get(chance.below(workers.len().max(1) as u64) as usize).is_some_and(|worker| kill(*worker))
}

/// An answer of the server, whichever process it is; none if it was killed.
fn ask(address: &RwLock<SocketAddr>, method: &str, path: &str, body: Option<&str>) -> Option<(u16, Value)> {
    let address = *address.read().unwrap();
    let mut connection = Connection::open(address, None).ok()?;
    let answer = connection.ask(method, path, body.map(str::as_bytes)).ok()?;
    Some((answer.status, serde_json::from_slice(&answer.body).ok()?))
}

#[test]
#[ignore = "second tier: kills the server a hundred times"]
#[expect(clippy::print_stdout, reason = "the figures of a long test")]
fn every_accepted_task_gets_one_right_answer_however_often_the_server_is_killed() {
    let project = project();
    // What is evaluated often ends with the server here, and the journal is written again at each start that finds enough to remove.
    let words = ["--attempts", "1000000", "--journal-size", "10KiB"];
    let mut server = Server::start(&project, &words);
    let address = RwLock::new(server.address);
    let over = AtomicBool::new(false);
    let accepted: Mutex<BTreeMap<String, &str>> = Mutex::default();
    let answers: Mutex<BTreeMap<String, Value>> = Mutex::default();
    let cancelled: Mutex<BTreeSet<String>> = Mutex::default();
    let next = AtomicUsize::new(0);
    let contradictions: Mutex<Vec<String>> = Mutex::default();
    let note = |id: &str, task: &Value| {
        if task["status"] != "done" {
            return;
        }
        let mut answers = answers.lock().unwrap();
        let known = answers.entry(id.to_string()).or_insert_with(|| task["result"].clone());
        if *known != task["result"] {
            contradictions.lock().unwrap().push(format!("{id}: {known} and {}", task["result"]));
        }
    };
    let mut workers = 0;
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (address, over, next, accepted, note) = (&address, &over, &next, &accepted, &note);
            let cancelled = &cancelled;
            scope.spawn(move || {
                let mut chance = Chance(client as u64 + 1);
                while !over.load(Ordering::Relaxed) {
                    let content = chance.below(CONTENTS as u64);
                    let (factor, verdict) = if content.is_multiple_of(2) { ("2", "pass") } else { ("3", "fail") };
                    let id = format!("task-{}", next.fetch_add(1, Ordering::Relaxed));
                    // Most have new judgements only; some are compiled, a few of them each time.
                    let mark = match (chance.below(40), content % 8) {
                        (0, _) => id.clone(),
                        (_, 0 | 1) => format!("content {content}"),
                        _ => "first".into(),
                    };
                    let mut body = distinct(request(&source(factor, &mark)), content as u32);
                    body["id"] = id.as_str().into();
                    let body = body.to_string();
                    // Without an answer, the same request is sent again under the same id.
                    let (status, task) = loop {
                        match ask(address, "POST", "/v1/evaluations", Some(&body)) {
                            Some((429 | 503, _)) | None => std::thread::sleep(Duration::from_millis(20)),
                            Some(answer) => break answer,
                        }
                        if over.load(Ordering::Relaxed) {
                            return;
                        }
                    };
                    assert!(matches!(status, 200 | 202), "{status}: {task}");
                    // Some are cancelled. Without an answer, nobody knows whether they were.
                    if chance.below(10) == 0 {
                        ask(address, "DELETE", &format!("/v1/tasks/{id}"), None);
                        cancelled.lock().unwrap().insert(id);
                        continue;
                    }
                    accepted.lock().unwrap().insert(id.clone(), verdict);
                    note(&id, &task);
                    std::thread::sleep(Duration::from_millis(chance.below(40)));
                }
            });
        }
        let mut chance = Chance(4711);
        let workers = &mut workers;
        for _ in 0..kills() {
            std::thread::sleep(Duration::from_millis(20 + chance.below(250)));
            *workers += usize::from(kill_a_worker(&server, &mut chance));
            std::thread::sleep(Duration::from_millis(chance.below(250)));
            server.kill();
            server = Server::start(&project, &words);
            *address.write().unwrap() = server.address;
        }
        over.store(true, Ordering::Relaxed);
    });
    let accepted = accepted.into_inner().unwrap();
    assert!(accepted.len() > CLIENTS, "{} tasks", accepted.len());
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    for (id, verdict) in &accepted {
        let task = server.get(&format!("/v1/tasks/{id}?wait=300")).expect(200).json();
        assert_eq!(task["status"], "done", "{task}");
        match task["result"]["verdict"].as_str() {
            Some("unknown") => {
                let (cause, reason) = (&task["result"]["cause"], &task["result"]["reason"]);
                *unknown.entry(format!("{cause}: {reason}")).or_default() += 1;
            }
            found => assert_eq!(found, Some(*verdict), "{task}"),
        }
        note(id, &task);
    }
    for id in cancelled.into_inner().unwrap() {
        let task = server.get(&format!("/v1/tasks/{id}?wait=300")).expect(200).json();
        assert!(task["status"] == "cancelled" || task["result"]["verdict"].is_string(), "{task}");
    }
    let contradictions = contradictions.into_inner().unwrap();
    assert!(contradictions.is_empty(), "{contradictions:?}");
    assert!(workers > 0 || kills() < 10, "no worker was killed");
    println!(
        "{} tasks were accepted, and {} kills of servers and {workers} of workers lost none; {} are unknown",
        accepted.len(),
        kills(),
        unknown.values().sum::<usize>()
    );
    unknown.iter().for_each(|(cause, tasks)| println!("{tasks} tasks: {cause}"));
    // With so many attempts, each evaluation whose worker was killed is repeated until it is decided.
    assert!(unknown.is_empty(), "{unknown:?}");
}
