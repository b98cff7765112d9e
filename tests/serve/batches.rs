//! Batches.

use serde_json::{Value, json};

use crate::server::{Server, project, request, source};

#[test]
#[ignore = "second tier: evaluates several kernels"]
fn each_evaluation_of_a_batch_is_accepted_or_refused_by_itself() {
    let project = project();
    let server = Server::start(&project, &[]);
    let mut named = request(&source("3", "first"));
    named["id"] = "named".into();
    let mut odd = request("");
    odd["id"] = "not an id".into();
    let mut urgent = request(&source("2", "first"));
    urgent["priority"] = "urgent".into();
    let batch = json!({ "evaluations": [request(&source("2", "first")), named, odd, urgent, 5] });
    let answer = server.post("/v1/batches", &batch).expect(200).json();
    let tasks = answer["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 5);
    assert!(tasks[3]["error"]["message"].as_str().unwrap().contains("unknown variant `urgent`"), "{}", tasks[3]);
    assert_eq!(tasks[4]["error"]["message"], "the evaluation is not a JSON object");
    assert_eq!((&tasks[1]["task"]["id"], &tasks[2]["error"]["code"]), (&json!("named"), &json!("bad-request")));
    let verdict = |task: &Value| {
        let path = format!("/v1/tasks/{}?wait=100", task["task"]["id"].as_str().unwrap());
        server.get(&path).expect(200).json()["result"]["verdict"].clone()
    };
    assert_eq!([verdict(&tasks[0]), verdict(&tasks[1])], [json!("pass"), json!("fail")]);
    for wrong in [json!({ "evaluations": [] }), json!({ "evaluations": [], "more": 1 }), json!([])] {
        assert_eq!(server.post("/v1/batches", &wrong).expect(400).json()["code"], "bad-request", "{wrong}");
    }
    let many = json!({ "evaluations": vec![request("x"); 1001] });
    assert!(server.post("/v1/batches", &many).expect(400).text().contains("1001"));
}
