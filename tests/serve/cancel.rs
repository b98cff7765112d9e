//! Cancelled tasks, and evaluations that take too long.

use serde_json::json;

use crate::server::{Server, endless, project, request, source, until};

#[test]
fn a_cancelled_task_ends_its_evaluation_and_frees_its_place() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1"]);
    let task = server.post("/v1/evaluations", &endless("cancelled")).expect(202).json();
    let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    until("it runs", || server.get(&path).json()["status"] == "running");
    let cancelled = server.delete(&path).expect(200).json();
    assert_eq!(cancelled["status"], "cancelled");
    assert!(cancelled.get("result").is_none() && cancelled["finished_at"].is_string());
    assert_eq!(server.evaluate(&request(&source("2", "first")))["result"]["verdict"], "pass");
    // What has ended stays as it is.
    assert_eq!(server.delete(&path).expect(200).json(), server.get(&path).json());
    server.delete("/v1/tasks/none").expect(404);
}

#[test]
fn an_evaluation_goes_on_while_another_task_waits_for_it() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1"]);
    let blocker = server.post("/v1/evaluations", &endless("blocks")).expect(202).json();
    let submit = || server.post("/v1/evaluations", &request(&source("2", "first"))).expect(202).json();
    let (one, two) = (submit(), submit());
    let path = |task: &serde_json::Value| format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    server.delete(&path(&one)).expect(200);
    server.delete(&path(&blocker)).expect(200);
    let done = server.get(&format!("{}?wait=100", path(&two))).json();
    assert_eq!(done["result"]["verdict"], "pass");
    assert_eq!(server.get(&path(&one)).json()["status"], "cancelled");
}

#[test]
fn a_content_whose_evaluation_was_cancelled_is_evaluated_when_it_is_sent_again() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1"]);
    let blocker = server.post("/v1/evaluations", &endless("blocks")).expect(202).json();
    let submit = || server.post("/v1/evaluations", &request(&source("2", "first"))).expect(202).json();
    let one = submit();
    server.delete(&format!("/v1/tasks/{}", one["id"].as_str().unwrap())).expect(200);
    let two = submit();
    server.delete(&format!("/v1/tasks/{}", blocker["id"].as_str().unwrap())).expect(200);
    let done = server.get(&format!("/v1/tasks/{}?wait=100", two["id"].as_str().unwrap())).json();
    assert_eq!(done["result"]["verdict"], "pass");
}

#[test]
#[ignore = "second tier: waits for a time limit"]
fn an_evaluation_that_takes_too_long_is_unknown_and_not_remembered() {
    let project = project();
    let server = Server::start(&project, &[]);
    let mut request = endless("too long");
    request["timeout_s"] = 1.into();
    for _ in 0..2 {
        let task = server.evaluate(&request);
        assert_eq!(
            (&task["result"]["verdict"], &task["result"]["cause"]),
            (&json!("unknown"), &json!("timed-out")),
            "{task}"
        );
        let reason = task["result"]["reason"].as_str().unwrap();
        assert!(reason.contains("did not end within its 1 s: it was stopped after "), "{task}");
        let seconds = task["result"]["seconds"].as_f64().unwrap();
        assert!((1.0..30.0).contains(&seconds), "{task}");
    }
    assert_eq!(server.metric("kforge_tasks_known_total"), 0);
}
