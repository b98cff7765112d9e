//! Server-sent events and long polls.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Connection;
use crate::server::{Server, endless, project, request, source};

/// The events of a task until the last one.
fn events(following: &mut Connection) -> Vec<(String, Value)> {
    let (mut all, mut name) = (vec![], String::new());
    loop {
        let line = following.line().unwrap();
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.to_string();
        } else if let Some(data) = line.strip_prefix("data: ") {
            all.push((name.clone(), serde_json::from_str(data).unwrap()));
            if name == "done" || name == "cancelled" {
                return all;
            }
        }
    }
}

#[test]
fn events_show_the_steps_and_end_with_the_result() {
    let project = project();
    let server = Server::start(&project, &[]);
    let task = server.post("/v1/evaluations", &request(&source("2", "first"))).json();
    let mut following = server.connect();
    following.send("GET", &format!("/v1/tasks/{}/events", task["id"].as_str().unwrap()), None).unwrap();
    let (status, headers) = following.head().unwrap();
    assert_eq!(status, 200);
    assert!(headers.iter().any(|(name, value)| name == "content-type" && value.starts_with("text/event-stream")));
    let events = events(&mut following);
    let (name, last) = events.last().unwrap();
    assert_eq!((name.as_str(), &last["done"]["result"]["verdict"]), ("done", &json!("pass")));
    // Whoever comes later sees the result at once.
    let mut later = server.connect();
    later.send("GET", &format!("/v1/tasks/{}/events", task["id"].as_str().unwrap()), None).unwrap();
    assert_eq!(later.head().unwrap().0, 200);
    assert_eq!(self::events(&mut later).last().unwrap().1, *last);
}

#[test]
fn whoever_follows_from_the_beginning_sees_every_step() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1"]);
    let blocker = server.post("/v1/evaluations", &endless("blocks")).expect(202).json();
    let task = server.post("/v1/evaluations", &request(&source("2", "first"))).expect(202).json();
    assert_eq!(task["status"], "queued");
    let mut following = server.connect();
    following.send("GET", &format!("/v1/tasks/{}/events", task["id"].as_str().unwrap()), None).unwrap();
    assert_eq!(following.head().unwrap().0, 200);
    server.delete(&format!("/v1/tasks/{}", blocker["id"].as_str().unwrap())).expect(200);
    let events = events(&mut following);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names[0], names[1]), ("queued", "running"), "{names:?}");
    let kinds: Vec<&str> = events.iter().filter_map(|(_, data)| data["step"]["kind"].as_str()).collect();
    for kind in ["compile", "verify", "judge"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let judged = events.iter().find(|(_, data)| data["step"]["kind"] == "judge").unwrap();
    assert_eq!((&judged.1["step"]["shape"], &judged.1["step"]["verdict"]), (&json!("tiny"), &json!("pass")));
}

#[test]
fn a_long_poll_ends_with_the_task_or_with_its_time() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1"]);
    let blocker = server.post("/v1/evaluations?wait=0.05", &endless("blocks")).expect(202).json();
    let path = format!("/v1/tasks/{}", blocker["id"].as_str().unwrap());
    let began = Instant::now();
    let still = server.get(&format!("{path}?wait=0.2")).expect(200).json();
    assert_eq!(still["status"], "running");
    assert!(began.elapsed() >= Duration::from_millis(200));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.get(&format!("{path}?wait=100")).expect(200).json());
        std::thread::sleep(Duration::from_millis(50));
        server.delete(&path).expect(200);
        assert_eq!(waiting.join().unwrap()["status"], "cancelled");
    });
}
