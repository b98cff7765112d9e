//! Long wear: a hundred kills at random while 64 clients submit. Every accepted task gets one right answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use serde_json::Value;

use crate::client::Connection;
use crate::server::{Server, distinct, project, request, source};

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

/// An answer of the server, whichever process it is; none if it was killed.
fn ask(address: &RwLock<SocketAddr>, method: &str, path: &str, body: Option<&str>) -> Option<(u16, Value)> {
    let address = *address.read().unwrap();
    let mut connection = Connection::open(address, None).ok()?;
    let answer = connection.ask(method, path, body.map(str::as_bytes)).ok()?;
    Some((answer.status, serde_json::from_slice(&answer.body).ok()?))
}

#[test]
#[ignore = "second tier: kills the server a hundred times"]
fn every_accepted_task_gets_one_right_answer_however_often_the_server_is_killed() {
    let project = project();
    let mut server = Server::start(&project, &[]);
    let address = RwLock::new(server.address);
    let over = AtomicBool::new(false);
    let accepted: Mutex<BTreeMap<String, &str>> = Mutex::default();
    let answers: Mutex<BTreeMap<String, Value>> = Mutex::default();
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
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (address, over, next, accepted, note) = (&address, &over, &next, &accepted, &note);
            scope.spawn(move || {
                let mut chance = Chance(client as u64 + 1);
                while !over.load(Ordering::Relaxed) {
                    let content = chance.below(CONTENTS as u64);
                    let (factor, verdict) = if content % 2 == 0 { ("2", "pass") } else { ("3", "fail") };
                    let id = format!("task-{}", next.fetch_add(1, Ordering::Relaxed));
                    // Most have new judgements only; some are compiled.
                    let mark = if content % 8 < 2 { format!("content {content}") } else { "first".into() };
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
                    accepted.lock().unwrap().insert(id.clone(), verdict);
                    note(&id, &task);
                    std::thread::sleep(Duration::from_millis(chance.below(40)));
                }
            });
        }
        let mut chance = Chance(4711);
        for _ in 0..kills() {
            std::thread::sleep(Duration::from_millis(20 + chance.below(500)));
            server.kill();
            server = Server::start(&project, &[]);
            *address.write().unwrap() = server.address;
        }
        over.store(true, Ordering::Relaxed);
    });
    let accepted = accepted.into_inner().unwrap();
    assert!(accepted.len() > CLIENTS, "{} tasks", accepted.len());
    for (id, verdict) in &accepted {
        let task = server.get(&format!("/v1/tasks/{id}?wait=300")).expect(200).json();
        assert_eq!((&task["status"], &task["result"]["verdict"]), (&"done".into(), &(*verdict).into()), "{task}");
        note(id, &task);
    }
    let contradictions = contradictions.into_inner().unwrap();
    assert!(contradictions.is_empty(), "{contradictions:?}");
    println!("{} tasks were accepted, and {} kills lost none", accepted.len(), kills());
}
