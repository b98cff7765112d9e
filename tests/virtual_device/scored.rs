//! Scores of a build's results against baselines: the variant declared first, another variant, another kernel.

use serde_json::{Value, json};

use crate::lab::{Lab, Machine, SOURCE};

/// Besides `k`, a plain kernel and a wrong one of the same operator.
const MORE: &str = r#"
[kernel.plain]
operator = "twice"
source = "plain.cu"
targets = ["h"]
launch = [{ entry = "plain", grid = ["n"], block = ["32"], args = ["x", "y", "n"] }]

[kernel.bad]
operator = "twice"
source = "bad.cu"
targets = ["h"]
launch = [{ entry = "bad", grid = ["n"], block = ["32"], args = ["x", "y", "n"] }]
"#;

fn machine() -> Machine {
    Machine { noise: 0.0, ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]) }
        .rule("^plain ", "ns = 3000.0")
        .rule("^bad ", "ns = 10.0\nerror = 1.0")
}

fn lab(machine: &Machine) -> Lab {
    let lab = Lab::new(machine)
        .manifest("role = \"bench\" }", "role = \"bench\" }\nshapes.large = { n = 200, role = \"bench\" }");
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{MORE}"));
    for name in ["plain", "bad"] {
        lab.project.write(
            &format!("{name}.cu"),
            &SOURCE.replace("void k(", &format!("void {name}(")).replace("template <int V> ", ""),
        );
    }
    lab
}

fn run(lab: &Lab, words: &[&str], code: i32) -> String {
    let output = lab.project.command(&[&["report"], words].concat()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Scores as JSON, checked against their schema.
fn scores(lab: &Lab, words: &[&str]) -> Value {
    let found: Value = serde_json::from_str(&run(lab, &[&["--format", "json"], words].concat(), 0)).unwrap();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/scores.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&found), "{found}");
    found
}

/// The score of each kernel in thousandths; null if it is unknown.
fn each(scores: &Value) -> Value {
    let candidates = scores["candidates"].as_array().unwrap();
    let of = |c: &Value| {
        let (least, most) = (c["score"]["at_least"].as_f64().unwrap(), c["score"]["at_most"].as_f64());
        let value = most.filter(|most| *most == least).map(|v| (v * 1000.0).round() as i64);
        (c["kernel"].as_str().unwrap().to_string(), json!(value))
    };
    Value::Object(candidates.iter().map(of).collect())
}

#[test]
fn kernels_are_scored_against_their_first_variant_another_or_another_kernel() {
    let lab = lab(&machine());
    lab.project.build(&["--keep-going"]).expect(100);
    let speedup = scores(&lab, &["--score", "speedup"]);
    assert_eq!(each(&speedup), json!({ "k": 2000, "plain": 1000, "bad": 0 }));
    assert_eq!(
        each(&scores(&lab, &["--score", "speedup", "--baseline", "V=4", "--kernel", "k"])),
        json!({ "k": 1500 })
    );
    let plain = ["--baseline", "plain"];
    let speedup = scores(&lab, &[&["--score", "speedup", "--fast-p", "1,2.9,3.1"], &plain[..]].concat());
    assert_eq!(each(&speedup), json!({ "k": 3000, "bad": 0 }), "the baseline is no candidate");
    let suite = &speedup["suite"];
    assert_eq!((&suite["candidates"], &suite["correct"], &suite["wrong"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!(suite["correctness"], json!([0.5, 0.5]));
    let fast: Vec<f64> = suite["fast"].as_array().unwrap().iter().map(|f| f["at_least"].as_f64().unwrap()).collect();
    assert_eq!(fast, [0.5, 0.5, 0.0], "of all, and more than p");
    assert_eq!(each(&scores(&lab, &[&["--score", "logistic"], &plain[..]].concat())), json!({ "k": 750, "bad": 0 }));
    assert_eq!(each(&scores(&lab, &[&["--score", "weighted"], &plain[..]].concat())), json!({ "k": 1250, "bad": 0 }));
    // Wrong kernels come first, and each speed-up has its interval.
    let candidates = speedup["candidates"].as_array().unwrap();
    assert_eq!((&candidates[0]["kernel"], &candidates[1]["kernel"]), (&json!("bad"), &json!("k")));
    let shapes = candidates[1]["shapes"].as_array().unwrap().clone();
    for of in shapes.iter().chain([&candidates[1]]) {
        let (value, [low, high]) = (&of["speedup"], [0, 1].map(|end| of["interval"][end].as_f64().unwrap()));
        assert!((low..=high).contains(&value.as_f64().unwrap()), "{of}");
    }
    let named: Vec<&str> = shapes.iter().map(|s| s["shape"].as_str().unwrap()).collect();
    assert_eq!(named, ["big", "large"]);
}

#[test]
fn scores_are_told_as_text_and_as_markdown() {
    let lab = lab(&machine());
    lab.project.build(&["--keep-going"]).expect(100);
    let text = run(&lab, &["--score", "logistic", "--baseline", "plain", "--fast-p", "1.2"], 0);
    for part in [
        "logistic score against `plain` (k = 1)",
        "k on h: 0.750",
        "3.000 times as fast",
        "fast_1.2  50.0 %",
        "2 scored: 1 correct, 1 wrong",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let markdown = run(&lab, &["--score", "speedup", "--format", "markdown"], 0);
    for part in ["| k | h | right | 2.000 | [", "| geometric mean | 1.414 |", "| correctness | 66.7 % |"] {
        assert!(markdown.contains(part), "{part}\n{markdown}");
    }
    let said = run(&lab, &["--score", "speedup", "--baseline", "plian"], 4);
    for part in
        ["expected a kernel (`bad`, `k`, `plain`), a variant that was timed (", "`V=4`", "did you mean `plain`?"]
    {
        assert!(said.contains(part), "{part}\n{said}");
    }
    run(&lab, &["--score", "speedup", "--fast-p", "-1"], 2);
    run(&lab, &["--baseline", "plain"], 2);
    run(&lab, &["--kernel", "nobody"], 4);
    assert!(!run(&lab, &["--kernel", "plain"], 0).contains("bad"), "a report is narrowed too");
}

#[test]
fn what_is_not_timed_is_unknown_and_counted_as_such() {
    let lab = lab(&Machine { device: None, ..machine() });
    lab.built(&[]);
    let found = scores(&lab, &["--score", "speedup", "--baseline", "plain"]);
    assert_eq!(each(&found), json!({ "k": null, "bad": null }));
    let suite = &found["suite"];
    assert_eq!((&suite["unverified"], &suite["correctness"]), (&json!(2), &json!([0.0, 1.0])));
    assert_eq!((&suite["median"], &suite["mean"]["at_most"]), (&Value::Null, &Value::Null));
    let text = run(&lab, &["--score", "speedup", "--baseline", "plain"], 0);
    assert!(
        text.contains("k on h: at least 0.000") && text.contains("unknown: it is not verified at every shape"),
        "{text}"
    );
}

#[test]
fn a_wrong_baseline_is_no_measure() {
    let lab = lab(&machine());
    lab.project.build(&["--keep-going"]).expect(100);
    let found = scores(&lab, &["--score", "speedup", "--baseline", "bad"]);
    assert_eq!(each(&found), json!({ "k": null, "plain": null }));
}
