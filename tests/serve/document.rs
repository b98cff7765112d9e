//! The OpenAPI document, and what the server answers beside it.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::{Server, project, request, source};

#[test]
fn the_document_is_the_stored_one() {
    let document = kforge::serve::http::openapi();
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/openapi.json");
    snapbox::assert_data_eq!(text, snapbox::Data::read_from(&stored, None).raw());
}

/// The validator of the type of an answer.
fn of(document: &Value, name: &str) -> jsonschema::Validator {
    let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": document["components"] });
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn every_route_is_described_and_answers_are_as_described() {
    let project = project();
    let server = Server::start(&project, &[]);
    let document = server.get("/openapi.json").expect(200).json();
    assert_eq!(document, kforge::serve::http::openapi());
    let valid = |name: &str, value: &Value| {
        let errors: Vec<String> = of(&document, name).iter_errors(value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}: {value}");
    };
    let right = request(&source("2", "first"));
    valid("EvaluationRequest", &right);
    let task = server.evaluate(&right);
    valid("Task", &task);
    valid("Task", &server.evaluate(&request(&source("3", "first"))));
    valid("Health", &server.get("/healthz").expect(200).json());
    valid("Health", &server.get("/readyz").expect(200).json());
    valid("TaskList", &server.get("/v1/tasks").expect(200).json());
    valid("ErrorAnswer", &server.get("/v1/tasks/none").expect(404).json());
    let batch = json!({ "evaluations": [right, {"candidate": 1}] });
    let mixed = server.post("/v1/batches", &batch).expect(200).json();
    valid("BatchAnswer", &mixed);
    valid("ErrorAnswer", &mixed["tasks"][1]["error"]);
    // No described route is unknown to the server.
    let unknown = server.get("/nothing").expect(404).json();
    let wrong_method = server.delete("/v1/evaluations").expect(405).json();
    valid("ErrorAnswer", &unknown);
    valid("ErrorAnswer", &wrong_method);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let has_id = path.contains("{id}");
            let path = path.replace("{id}", "none");
            let body = (method == "post").then_some(b"{}".as_slice());
            let answer = server.connect().ask(&method.to_uppercase(), &path, body).unwrap();
            if has_id {
                let found = answer.expect(404).json();
                assert_eq!(
                    (&found["code"], &found["message"]),
                    (&json!("not-found"), &json!("there is no task `none`"))
                );
            } else if method == "post" {
                let found = answer.expect(400).json();
                assert!(found["message"].as_str().unwrap().contains("missing field"), "{method} {path}: {found}");
            } else {
                answer.expect(200);
            }
        }
    }
}

#[test]
fn a_path_that_is_no_text_is_an_error_as_any_other() {
    let project = project();
    let server = Server::start(&project, &[]);
    for path in ["/v1/tasks/%ff", "/v1/tasks/%ff/events"] {
        assert_eq!(server.get(path).expect(400).json()["code"], "bad-request", "{path}");
    }
    assert_eq!(server.get("/kernelgym/status/%ff").expect(400).json()["error_code"], "VALIDATION_ERROR");
}

#[test]
fn the_status_page_and_the_metrics_count() {
    let project = project();
    let server = Server::start(&project, &[]);
    server.evaluate(&request(&source("2", "first")));
    let page = server.get("/").expect(200);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    assert!(page.text().contains("<td>1 pass, 0 fail, 0 unknown</td>"), "{}", page.text());
    let text = server.get("/metrics").expect(200).text();
    for line in
        ["kforge_tasks_accepted_total 1", "kforge_evaluation_seconds_count 1", "kforge_ready 1", "kforge_tasks 1"]
    {
        assert!(text.lines().any(|had| had == line), "{line}: {text}");
    }
    // Each name is described once.
    let helped: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()).collect();
    let mut unique = helped.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), helped.len());
}
