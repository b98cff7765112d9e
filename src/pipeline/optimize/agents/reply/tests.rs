//! Which replies count as an answer, and the errors for those that do not.

use serde_json::json;

use super::*;
use crate::optimize::agents::briefing::MethodToTry;
use kforge_types::model::Axis;

const DECLARATION: &str = r#"
requires = ["VEC == 1 or cols % VEC == 0"]
[tune]
BLOCK = [128, 256]
VEC = [4, 1]
[[launch]]
entry = "row_sum<T, BLOCK, VEC>"
grid = ["rows"]
block = ["BLOCK"]
args = ["x", "y", "rows", "cols"]
[methods."memory.vectorized_access"]
off = { VEC = 1 }
"#;

fn briefing() -> Briefing {
    let method = MethodToTry {
        id: "memory.vectorized_access".into(),
        axis: Axis::Memory,
        about: String::new(),
        because: String::new(),
        strength: None,
    };
    Briefing { branches: 2, methods: vec![method], ..Briefing::default() }
}

fn good() -> Value {
    json!({
        "declaration": DECLARATION,
        "source": "template <class T, int B, int V> __global__ void row_sum(const T *x, T *y, int rows, int cols) {}",
        "branches": [{ "BLOCK": 256 }, { "BLOCK": 128, "VEC": 4 }],
        "notes": "four at a time",
    })
}

fn with(key: &str, value: Value) -> String {
    let mut reply = good();
    reply[key] = value;
    reply.to_string()
}

fn refused(text: &str) -> String {
    parse_reply(Expected::Proposal, text, &briefing()).unwrap_err().told()
}

#[test]
fn an_answer_is_found_alone_in_a_fence_and_among_prose() {
    let text = good().to_string();
    let pretty = serde_json::to_string_pretty(&good()).unwrap();
    let wrapped = [
        text.clone(),
        format!("\n\n{pretty}\n"),
        format!("```json\n{pretty}\n```"),
        format!("{}{text}", "if (x) { y(); } ".repeat(10_000)),
        format!(
            "<think>if {{n}} then {{\"BLOCK\": 256}}</think>Here it is:\n```\n{text}\n```\nIt reads four {{at a time}}."
        ),
    ];
    for reply in wrapped {
        let Ok(ParsedReply::Proposal(proposal)) = parse_reply(Expected::Proposal, &reply, &briefing()) else {
            panic!("{reply}: {:?}", parse_reply(Expected::Proposal, &reply, &briefing()));
        };
        assert_eq!(proposal.declaration.as_deref(), Some(DECLARATION));
        assert_eq!(proposal.branches[0], BTreeMap::from([("BLOCK".to_string(), TuneValue::Int(256))]));
        assert_eq!(proposal.notes.as_deref(), Some("four at a time"));
    }
}

#[test]
fn prose_broken_json_and_several_answers_are_refused() {
    let text = good().to_string();
    assert_eq!(refused("I cannot help with that."), "there is no JSON object in the reply");
    assert_eq!(refused(""), "there is no JSON object in the reply");
    assert!(refused(&text[..text.len() / 2]).starts_with("the JSON object cannot be read: EOF"));
    assert!(refused(&format!("{text}\n{text}")).contains("2 JSON objects"));
    assert!(
        refused(r#"{"a": 1} {"b": 2}"#).contains("has all of `declaration`"),
        "{}",
        refused(r#"{"a": 1} {"b": 2}"#)
    );
    assert!(refused(&"{".repeat(100_000)).contains("cannot be read"));
    assert_eq!(refused(&format!("{text}{}", " ".repeat(LONGEST_REPLY))), "the reply is longer than 4 MiB");
}

#[test]
fn what_is_not_as_the_schema_says_is_named_with_its_place() {
    assert!(refused(&with("branches", json!([]))).contains("/branches"));
    assert!(refused(&with("branches", json!([{ "BLOCK": 1.5 }]))).contains("/branches/0/BLOCK"));
    assert!(refused(&with("source", json!(7))).contains("/source"));
    assert!(refused(&with("extra", json!(1))).contains("extra"));
    let mut without = good();
    without.as_object_mut().unwrap().remove("source");
    assert!(refused(&without.to_string()).contains("source"));
}

#[test]
fn the_declaration_must_be_one_and_every_method_must_have_a_switch() {
    let declared = |from: &str, to: &str| refused(&with("declaration", json!(DECLARATION.replace(from, to))));
    let wrong = declared("grid", "grit");
    assert!(wrong.starts_with("`declaration` is wrong:\nline 8: ") && wrong.contains("grit"), "{wrong}");
    assert!(declared("[tune]", "[tune").contains("line "));
    assert!(
        declared("memory.vectorized_access", "memory.async_copy")
            .contains("lacks `[methods.\"memory.vectorized_access\"]`")
    );
    let same = declared("off = { VEC = 1 }", "off = { VEC = 4 }");
    assert!(same.contains("variant 1 of `branches` is the same with and without"), "{same}");
    assert!(declared("off = { VEC = 1 }", "").contains("with and without"));
}

#[test]
fn variants_are_checked_against_the_declaration_and_no_more_are_taken_than_were_asked_for() {
    let wrong = refused(&with("branches", json!([{ "BLOCK": 512 }, { "TILE": 1 }])));
    assert!(
        wrong.contains("variant 1 of `branches`: `BLOCK` does not take the value 512: `tune` has 128, 256"),
        "{wrong}"
    );
    assert!(wrong.contains("variant 2 of `branches`: `TILE` is not a tunable"), "{wrong}");
    let off = refused(&with("branches", json!([{}, { "VEC": 1 }])));
    assert!(off.contains("variant 2 of `branches` is the same with and without"), "{off}");
    let many = with("branches", json!([{ "BLOCK": 128 }, { "BLOCK": 256 }, { "TILE": 1 }]));
    let Ok(ParsedReply::Proposal(proposal)) = parse_reply(Expected::Proposal, &many, &briefing()) else { panic!() };
    assert_eq!(proposal.branches.len(), 2);
}

#[test]
fn an_advisor_names_a_method_that_was_chosen() {
    let reply = |method: &str| json!({ "bottleneck": "loads", "method": method, "plan": "wider" }).to_string();
    let read = |method: &str| parse_reply(Expected::Diagnosis, &reply(method), &briefing());
    let said = read("memory.vectorized_access").unwrap();
    assert!(matches!(said, ParsedReply::Advice(Advice::Diagnosis { .. })));
    assert!(read("compute.tensor_core").unwrap_err().told().contains("expected one of `memory.vectorized_access`"));
    let correction = json!({ "critical_issue": "a", "why_it_matters": "b", "minimal_fix": "c" }).to_string();
    assert!(matches!(
        parse_reply(Expected::Correction, &correction, &briefing()),
        Ok(ParsedReply::Advice(Advice::Correction { .. }))
    ));
    assert!(parse_reply(Expected::Correction, &correction.replace("\"c\"", "\"\""), &briefing()).is_err());
}

#[test]
fn what_is_wrong_is_told_in_a_few_lines() {
    let long = "x".repeat(50_000);
    for text in [with("source", json!([long])), with("declaration", json!(format!("{long} = 1\n").repeat(50)))] {
        assert!(refused(&text).chars().count() < LONGEST_FAULT + 100, "{}", refused(&text).len());
    }
}
