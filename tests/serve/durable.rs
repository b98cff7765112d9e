//! What survives: SIGKILL, SIGTERM, restarts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Server, endless, project, request, source, until};

fn path(task: &Value) -> String {
    format!("/v1/tasks/{}", task["id"].as_str().unwrap())
}

#[test]
fn a_killed_server_continues_with_what_was_accepted_and_answers_what_was_done() {
    let project = project();
    let mut server = Server::start(&project, &["--evaluations", "1"]);
    let done = server.evaluate(&request(&source("3", "first")));
    let blocker = server.post("/v1/evaluations", &endless("blocks")).expect(202).json();
    until("it runs", || server.get(&path(&blocker)).json()["status"] == "running");
    let waiting = server.post("/v1/evaluations", &request(&source("2", "first"))).expect(202).json();
    let cancelled = server.post("/v1/evaluations", &request("cancelled")).expect(202).json();
    server.delete(&path(&cancelled)).expect(200);
    server.kill();
    let server = Server::start(&project, &["--evaluations", "2"]);
    assert_eq!(server.get(&path(&done)).expect(200).json(), done);
    assert_eq!(server.get(&path(&cancelled)).expect(200).json()["status"], "cancelled");
    let answered = server.get(&format!("{}?wait=100", path(&waiting))).expect(200).json();
    assert_eq!((&answered["status"], &answered["result"]["verdict"]), (&json!("done"), &json!("pass")));
    assert_eq!(answered["submitted_at"], waiting["submitted_at"]);
    until("it runs again", || server.get(&path(&blocker)).json()["status"] == "running");
    // Its result was not forgotten either.
    server.post("/v1/evaluations", &request(&source("3", "first"))).expect(200);
}

#[test]
fn half_a_row_and_a_damaged_row_do_not_keep_the_server_from_starting() {
    let project = project();
    let mut server = Server::start(&project, &[]);
    let first = server.evaluate(&request(&source("2", "first")));
    let second = server.evaluate(&request(&source("3", "first")));
    server.kill();
    let journal = project.home().join("serve/journal");
    let whole = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &whole[..whole.len() - 10]).unwrap();
    let mut server = Server::start(&project, &[]);
    assert_eq!(server.get(&path(&first)).expect(200).json(), first);
    // Its result was the last row, so it is evaluated again.
    let again = server.get(&format!("{}?wait=100", path(&second))).expect(200).json();
    assert_eq!(again["result"]["verdict"], "fail");
    server.kill();
    let text = String::from_utf8(std::fs::read(&journal).unwrap()).unwrap();
    std::fs::write(&journal, text.replacen("\"pass\"", "\"pess\"", 1)).unwrap();
    let server = Server::start(&project, &[]);
    assert!(server.said().contains("1 damaged row"), "{}", server.said());
    assert_eq!(server.get(&path(&second)).expect(200).json(), again);
}

#[test]
fn sigterm_finishes_what_runs_and_leaves_the_rest_for_the_next_start() {
    let project = project();
    let mut server = Server::start(&project, &["--evaluations", "1", "--drain-timeout", "100s"]);
    let runs = server.post("/v1/evaluations", &endless("runs")).expect(202).json();
    until("it runs", || server.get(&path(&runs)).json()["status"] == "running");
    let waits = server.post("/v1/evaluations", &request(&source("2", "first"))).expect(202).json();
    let mut polling = server.connect();
    polling.send("GET", &format!("{}?wait=100", path(&waits)), None).unwrap();
    server.terminate();
    until("it drains", || server.get("/readyz").status == 503);
    assert_eq!(server.get("/readyz").json()["status"], "draining");
    server.get("/healthz").expect(200);
    let refused = server.post("/v1/evaluations", &request("new"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.expect(503).json()["code"], "draining");
    // What runs may end: here because it is cancelled.
    assert_eq!(server.get(&path(&runs)).json()["status"], "running");
    server.delete(&path(&runs)).expect(200);
    assert!(server.ended().success());
    assert!(server.said().contains("1 evaluation left for the next start"), "{}", server.said());
    assert_eq!(polling.answer().unwrap().expect(200).json()["status"], "queued");
    let server = Server::start(&project, &[]);
    assert!(server.said().contains("Continuing 1 evaluation"), "{}", server.said());
    let done = server.get(&format!("{}?wait=100", path(&waits))).expect(200).json();
    assert_eq!(done["result"]["verdict"], "pass");
}

#[test]
fn sigterm_stops_what_runs_for_too_long() {
    let project = project();
    let mut server = Server::start(&project, &["--drain-timeout", "0s"]);
    let runs = server.post("/v1/evaluations", &endless("runs")).expect(202).json();
    until("it runs", || server.get(&path(&runs)).json()["status"] == "running");
    let began = Instant::now();
    server.terminate();
    assert!(server.ended().success());
    assert!(began.elapsed() < Duration::from_secs(20));
    let server = Server::start(&project, &[]);
    until("it runs again", || server.get(&path(&runs)).json()["status"] == "running");
}

#[test]
#[ignore = "second tier: waits for the retention"]
fn tasks_are_forgotten_after_their_time_and_evaluated_again() {
    let project = project();
    let mut server = Server::start(&project, &["--retain", "1s"]);
    let task = server.evaluate(&request(&source("2", "first")));
    server.kill();
    std::thread::sleep(Duration::from_millis(1100));
    let server = Server::start(&project, &["--retain", "1s"]);
    server.get(&path(&task)).expect(404);
    let again = server.evaluate(&request(&source("2", "first")));
    assert_eq!(again["shared"], false);
}

#[test]
fn only_so_many_ended_tasks_are_kept() {
    let project = project();
    let mut server = Server::start(&project, &["--keep", "3"]);
    let task = |at: u32| {
        let mut request = request(&source("2", "first"));
        request["id"] = format!("task-{at}").into();
        request
    };
    (0..5).for_each(|at| drop(server.evaluate(&task(at))));
    server.kill();
    let server = Server::start(&project, &["--keep", "3"]);
    let list = server.get("/v1/tasks").expect(200).json();
    let ids: Vec<&str> = list["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["task-4", "task-3", "task-2"]);
    // The result lives as long as one of its tasks.
    assert_eq!(server.evaluate(&task(9))["shared"], true);
}

#[test]
fn a_folder_with_files_of_others_is_refused_and_left_as_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let project = project();
    let folder = project.root().join("mine");
    let mode = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::create_dir_all(folder.join("work")).unwrap();
    std::fs::write(folder.join("work/thesis.txt"), "mine").unwrap();
    mode(0o755);
    let said = Server::try_start(&project, &["--state", "mine"]).err().unwrap();
    assert!(said.contains("`kforge serve`: name a new or an empty folder"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.join("work/thesis.txt")).unwrap(), "mine");
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    // An empty one is taken, and its own one again, and closed to others.
    std::fs::remove_dir_all(folder.join("work")).unwrap();
    drop(Server::start(&project, &["--state", "mine"]));
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    mode(0o750);
    drop(Server::start(&project, &["--state", "mine"]));
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}
