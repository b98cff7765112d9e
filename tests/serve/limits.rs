//! The queue, its limits and its order.

use serde_json::{Value, json};

use crate::server::{Server, distinct, endless, project, request, source, until};

fn id(task: &Value) -> &str {
    task["id"].as_str().unwrap()
}

#[test]
fn a_full_queue_refuses_and_says_when_to_try_again() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1", "--queue", "2"]);
    let first = server.post("/v1/evaluations", &endless("blocks")).expect(202).json();
    server.post("/v1/evaluations", &endless("waits")).expect(202);
    let refused = server.post("/v1/evaluations", &request("another"));
    let again: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    let refused = refused.expect(429).json();
    assert_eq!((&refused["code"], &refused["retry_after_s"]), (&json!("queue-full"), &json!(again)));
    assert!((1..=30).contains(&again));
    // A batch is refused from there on.
    let batch = json!({ "evaluations": [request("another")] });
    assert_eq!(server.post("/v1/batches", &batch).json()["tasks"][0]["error"]["code"], "queue-full");
    assert_eq!(server.metric("kforge_tasks_refused_total"), 2);
    server.delete(&format!("/v1/tasks/{}", id(&first))).expect(200);
    server.post("/v1/evaluations", &endless("fits now")).expect(202);
}

#[test]
fn a_known_result_is_answered_even_if_the_queue_is_full() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1", "--queue", "1"]);
    server.evaluate(&request(&source("2", "first")));
    server.post("/v1/evaluations", &endless("blocks")).expect(202);
    server.post("/v1/evaluations", &request(&source("2", "first"))).expect(200);
    server.post("/v1/evaluations", &request("another")).expect(429);
}

#[test]
fn evaluations_of_higher_priority_come_first() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1"]);
    let blocker = server.post("/v1/evaluations", &endless("blocks")).expect(202).json();
    until("it runs", || server.get(&format!("/v1/tasks/{}", id(&blocker))).json()["status"] == "running");
    let submit = |(number, priority): (u32, &str)| {
        let mut request = distinct(request(&source("2", "first")), number);
        (request["id"], request["priority"]) = (priority.into(), priority.into());
        server.post("/v1/evaluations", &request).expect(202);
    };
    (1..).zip(["low", "normal", "high"]).for_each(submit);
    server.delete(&format!("/v1/tasks/{}", id(&blocker))).expect(200);
    let ended = |name: &str| {
        let task = server.get(&format!("/v1/tasks/{name}?wait=100")).expect(200).json();
        task["finished_at"].as_str().unwrap().to_string()
    };
    let (low, normal, high) = (ended("low"), ended("normal"), ended("high"));
    assert!(high < normal && normal < low, "{high} {normal} {low}");
}

#[test]
fn a_client_leaves_connections_for_others_and_for_whether_the_server_is_there() {
    let project = project();
    let tokens = project.root().join("tokens");
    std::fs::write(&tokens, "a 0123456789abcdef\nb fedcba9876543210\n").unwrap();
    std::fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::start(&project, &["--tokens", "tokens", "--evaluations", "1", "--connections", "4"]);
    let body = endless("blocks").to_string();
    let mut waits = server.connect_as("0123456789abcdef");
    waits.send("POST", "/v1/evaluations?wait=100", Some(body.as_bytes())).unwrap();
    let mut follows = server.connect_as("0123456789abcdef");
    let ask = |token: &str, path: &str| server.connect_as(token).ask("GET", path, None).unwrap();
    let mut id = String::new();
    until("it runs", || {
        let tasks = ask("0123456789abcdef", "/v1/tasks").expect(200).json();
        id = tasks["tasks"][0]["id"].as_str().unwrap_or_default().to_string();
        tasks["tasks"][0]["status"] == "running"
    });
    follows.send("GET", &format!("/v1/tasks/{id}/events"), None).unwrap();
    assert_eq!(follows.head().unwrap().0, 200);
    let refused = ask("0123456789abcdef", "/v1/tasks");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.expect(429).json()["code"], "client-limit");
    ask("fedcba9876543210", "/v1/tasks").expect(200);
    ask("0123456789abcdef", "/readyz").expect(200);
    drop(follows);
    until("what nobody reads is not under way", || ask("0123456789abcdef", "/v1/tasks").status == 200);
}

#[test]
fn the_bytes_of_requests_that_wait_are_limited() {
    let project = project();
    let server = Server::start(&project, &["--evaluations", "1", "--queue-size", "400000"]);
    server.post("/v1/evaluations", &endless("blocks")).expect(202);
    let large = |mark: &str| request(&format!("{mark} {}", "x".repeat(100_000)));
    let first = server.post("/v1/evaluations", &large("first")).expect(202).json();
    let refused = server.post("/v1/evaluations", &large("second"));
    assert!(refused.header("retry-after").is_some());
    // One client may have half of it. Requests of this size are accepted on a thread of their own.
    let refused = refused.expect(429).json();
    assert_eq!(refused["code"], "client-limit");
    assert!(refused["message"].as_str().unwrap().contains("200000"), "{refused}");
    // The same content needs no more room.
    server.post("/v1/evaluations", &large("first")).expect(202);
    let list = server.get("/v1/tasks?limit=1").expect(200).json();
    for task in [id(&first), id(&list["tasks"][0])] {
        server.delete(&format!("/v1/tasks/{task}")).expect(200);
    }
    server.post("/v1/evaluations", &large("second")).expect(202);
}

#[test]
fn limits_of_nothing_and_addresses_that_cannot_be_used_are_refused_with_the_reason() {
    let project = project();
    let said = |words: &[&str]| Server::try_start(&project, words).err().unwrap();
    for option in ["--steps", "--keep", "--queue", "--client-limit"] {
        let said = said(&[option, "0"]);
        assert!(said.contains(option) && said.contains("expected a number from 1 on"), "{said}");
    }
    assert!(said(&["--listen", "127.0.0.1"]).contains("the port is missing: expected `HOST:PORT`"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = said(&["--listen", &address.to_string()]);
    assert!(text.contains(&format!("port {} of 127.0.0.1 is in use", address.port())), "{text}");
    let text = said(&["--listen", "192.0.2.1:7377", "--allow-unauthenticated"]);
    assert!(text.contains("this machine has no address 192.0.2.1"), "{text}");
}
