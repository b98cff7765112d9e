//! The interface of `flashinfer-bench serve`: definitions and workloads of a dataset, solutions as tasks, results as traces.

use serde_json::{Value, json};

use crate::kernelgym::with_torch;
use crate::project::Project;
use crate::server::{Server, project};

const DEFINITION: &str = r#"{
  "name": "scaled_add", "op_type": "elementwise", "description": "y + s * x",
  "axes": { "n": { "type": "var" } },
  "inputs": { "y": { "shape": ["n"], "dtype": "float16" }, "x": { "shape": ["n"], "dtype": "float16" }, "s": { "shape": null, "dtype": "float32" } },
  "outputs": { "z": { "shape": ["n"], "dtype": "float16" } },
  "reference": "import torch\n\n\ndef run(y, x, s):\n    return y + s * x\n"
}
"#;

fn workload(uuid: &str, n: u32) -> String {
    let random = json!({ "type": "random" });
    let inputs = json!({ "y": random, "x": random, "s": { "type": "scalar", "value": 0.5 } });
    let workload = json!({ "uuid": uuid, "axes": { "n": n }, "inputs": inputs });
    json!({ "definition": "scaled_add", "solution": null, "workload": workload, "evaluation": null }).to_string() + "\n"
}

/// Adds a dataset to a project.
fn with_dataset(project: Project) -> Project {
    let random = "\"y\":{\"type\":\"random\"}";
    let file = "\"y\":{\"type\":\"safetensors\",\"path\":\"./y.safetensors\",\"tensor_key\":\"y\"}";
    let stored = workload("c-3", 33).replace(random, file);
    assert!(stored.contains(file), "{stored}");
    project
        .file("set/definitions/elementwise/scaled_add.json", DEFINITION)
        .file("set/workloads/elementwise/scaled_add.jsonl", &(workload("a-1", 33) + &workload("b-2", 70) + &stored))
}

fn solution(name: &str, body: &str) -> Value {
    json!({
        "name": name, "definition": "scaled_add", "author": "someone",
        "spec": { "language": "python", "target_hardware": ["cuda"], "entry_point": "pkg/main.py::kernel", "destination_passing_style": false },
        "sources": [{ "path": "pkg/main.py", "content": format!("import torch\n\n\ndef kernel(y, x, s):\n    {body}\n") }],
    })
}

fn started(project: &Project) -> Server {
    Server::start(project, &["--flashinfer-trace", "set"])
}

fn get(server: &Server, path: &str) -> Value {
    server.get(&format!("/flashinfer-bench/{path}")).expect(200).json()
}

/// The task of a request at its end.
fn done(server: &Server, request: &Value) -> Value {
    let accepted = server.post("/flashinfer-bench/evaluate", request).expect(200).json();
    get(server, &format!("tasks/{}?timeout=100", accepted["task_id"].as_str().unwrap()))
}

#[test]
fn definitions_and_workloads_are_those_of_the_dataset() {
    let project = with_dataset(project());
    let server = started(&project);
    assert_eq!(get(&server, "definitions"), json!([{ "name": "scaled_add", "description": "y + s * x" }]));
    assert_eq!(get(&server, "definitions/scaled_add"), serde_json::from_str::<Value>(DEFINITION).unwrap());
    assert_eq!(get(&server, "definitions/scaled_add/workloads")[1]["uuid"], "b-2");
    assert_eq!(get(&server, "workloads/a-1")["axes"], json!({ "n": 33 }));
    for path in ["definitions/none", "definitions/none/workloads", "workloads/none", "tasks/none"] {
        assert_eq!(server.get(&format!("/flashinfer-bench/{path}")).expect(404).json()["code"], "not-found", "{path}");
    }
    let health = get(&server, "health");
    assert_eq!((&health["status"], &health["accepting"], &health["workers"]), (&json!("ok"), &json!(true), &json!([])));
    server.get("/flashinfer-bench/tasks/none?timeout=4000").expect(400);
    server.post("/flashinfer-bench/tasks/batch", &json!({ "task_ids": ["none"] })).expect(404);
    server.post("/flashinfer-bench/shutdown", &json!({})).expect(404);
    let without = Server::start(&project, &["--state", "other"]);
    without.get("/flashinfer-bench/definitions").expect(404);
    let said = Server::try_start(&project, &["--state", "third", "--flashinfer-trace", "none"]).err().unwrap();
    assert!(said.contains("has no definitions"), "{said}");
}

#[test]
fn a_solution_that_cannot_be_called_is_a_task_that_failed_with_the_reason() {
    let project = with_dataset(project());
    let server = started(&project);
    let mut cuda = solution("s", "return y");
    cuda["spec"]["language"] = "cuda".into();
    let task = done(&server, &json!({ "solution": cuda, "task_id": "mine" }));
    assert_eq!((&task["status"], &task["task_id"]), (&json!("failed"), &json!("mine")));
    assert!(task["error"].as_str().unwrap().contains("cuda") && task["traces"].is_null(), "{task}");
    let unknown = json!({ "solution": solution("s", "return y"), "workload_uuids": ["a-1", "other"] });
    let unknown = server.post("/flashinfer-bench/evaluate", &unknown).expect(400).json();
    assert!(unknown["message"].as_str().unwrap().contains("`other`"), "{unknown}");
    let none = done(&server, &json!({ "solution": solution("s", "return y"), "workload_uuids": [] }));
    assert!(none["error"].as_str().unwrap().contains("no workload"), "{none}");
    let stored = done(&server, &json!({ "solution": solution("s", "return y"), "workload_uuids": ["c-3"] }));
    assert!(stored["status"] == "failed" && stored["error"].as_str().unwrap().contains("c-3"), "{stored}");
    let other = json!({ "solution": solution("s", "return x"), "task_id": "mine" });
    assert_eq!(server.post("/flashinfer-bench/evaluate", &other).expect(409).json()["code"], "conflict");
    let mut unknown = solution("s", "return y");
    unknown["definition"] = "none".into();
    server.post("/flashinfer-bench/evaluate", &json!({ "solution": unknown })).expect(400);
    let ids = [json!("mine"), stored["task_id"].clone()];
    let both = server.post("/flashinfer-bench/tasks/batch", &json!({ "task_ids": ids, "timeout": 1 }));
    assert_eq!(both.expect(200).json(), json!([task, stored]));
    for ids in [vec!["mine"; 2], vec!["other"; 101]] {
        server.post("/flashinfer-bench/tasks/batch", &json!({ "task_ids": ids })).expect(400);
    }
}

#[test]
fn what_another_run_could_change_is_evaluated_again() {
    let project = with_dataset(project());
    // It has no PyTorch, so it cannot decide.
    let server = started(&project);
    let request = json!({ "solution": solution("s", "return y"), "workload_uuids": ["a-1"] });
    let first = done(&server, &request);
    assert_eq!((&first["status"], server.metric("kforge_evaluation_seconds_count")), (&json!("failed"), 1), "{first}");
    let again = done(&server, &request);
    assert_eq!((&again["task_id"], &again["error"]), (&first["task_id"], &first["error"]));
    assert_eq!(server.metric("kforge_evaluation_seconds_count"), 2);
    let other =
        json!({ "solution": solution("s", "return x"), "workload_uuids": ["a-1"], "task_id": first["task_id"] });
    server.post("/flashinfer-bench/evaluate", &other).expect(409);
}

#[test]
#[ignore = "second tier: evaluates with PyTorch"]
fn each_workload_has_a_trace_with_its_status_and_its_log() {
    let Some(project) = with_torch().map(with_dataset) else { return };
    let server = started(&project);
    let statuses = |task: &Value| -> Vec<(String, String)> {
        let of = |trace: &Value| {
            let text = |value: &Value| value.as_str().unwrap().to_string();
            (text(&trace["workload"]["uuid"]), text(&trace["evaluation"]["status"]))
        };
        task["traces"].as_array().unwrap_or_else(|| panic!("{task}")).iter().map(of).collect()
    };
    let both = |status: &str| vec![("a-1".to_string(), status.to_string()), ("b-2".to_string(), status.to_string())];
    let chosen = ["a-1", "b-2"];
    let right = done(
        &server,
        &json!({ "solution": solution("right", "return torch.add(y, x, alpha=s)"), "workload_uuids": chosen }),
    );
    assert_eq!((&right["status"], statuses(&right)), (&json!("completed"), both("PASSED")), "{right}");
    assert!(right["traces"][0]["evaluation"]["performance"].is_null(), "nothing was timed");
    for (name, body, status, log) in [
        ("wrong", "return y + x", "INCORRECT_NUMERICAL", ""),
        ("shape", "return (y + s * x)[:3]", "INCORRECT_SHAPE", "shape"),
        ("raises", "raise ValueError('no such thing')", "RUNTIME_ERROR", "no such thing"),
    ] {
        let task = done(&server, &json!({ "solution": solution(name, body), "workload_uuids": ["a-1"] }));
        assert_eq!(statuses(&task), [("a-1".to_string(), status.to_string())], "{task}");
        assert!(task["traces"][0]["evaluation"]["log"].as_str().unwrap().contains(log), "{task}");
    }
}
