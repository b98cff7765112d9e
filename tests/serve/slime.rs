//! slime's `remote_rm`: a reward for a reply.

use serde_json::{Value, json};

use crate::server::{Server, project, request, source};

/// What slime sends: a reply with a source, and the task.
fn sent(source: &str) -> Value {
    let mut candidate = request(source)["candidate"]["operator"].clone();
    candidate.as_object_mut().unwrap().remove("source");
    let prompt = json!([{ "role": "user", "content": "write it" }]);
    json!({ "prompt": prompt, "response": format!("Here it is.\n```cuda\n{source}```\n"), "label": json!({ "candidate": candidate }).to_string() })
}

#[test]
#[ignore = "second tier: evaluates several kernels"]
fn a_reply_has_a_number_as_reward_or_an_object_with_the_reason() {
    let project = project();
    let server = Server::start(&project, &[]);
    let reward = |source: &str| server.post("/slime/reward", &sent(source)).expect(200).json();
    assert_eq!((reward(&source("2", "first")), reward(&source("3", "first"))), (json!(1.0), json!(0.0)));
    let scores = server.post("/slime/scores", &sent(&source("3", "first"))).expect(200).json();
    assert_eq!((&scores["score"], &scores["known"], &scores["correct"]), (&json!(0.0), &json!(true), &json!(false)));
    assert!(scores["reason"].as_str().unwrap().contains("wrong at tiny"), "{scores}");
    let broken = server.post("/slime/scores", &sent(&source("two", "first"))).expect(200).json();
    assert!(broken["score"] == 0.0 && broken["reason"].as_str().unwrap().contains("two"), "{broken}");
    let mut wrong = sent("s");
    wrong["label"] = "no task".into();
    assert_eq!(server.post("/slime/reward", &wrong).expect(400).json()["code"], "bad-request");
}
