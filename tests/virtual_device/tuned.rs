//! Results of tuning for other programs, and hints from them: the T4 format, checked against its rules restated, and searches that visit hinted variants first.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, Machine};

/// The rules of the format's results, restated.
fn schema() -> Value {
    let number = json!({ "type": "number" });
    let result = json!({
        "type": "object",
        "required": ["configuration", "times", "invalidity", "correctness"],
        "properties": {
            "timestamp": { "type": "string" },
            "configuration": { "type": "object" },
            "objectives": { "type": "array" },
            "times": { "type": "object", "properties": { "compilation_time": number, "runtimes": { "type": "array" } } },
            "invalidity": { "enum": ["timeout", "compile", "runtime", "correctness", "constraints", "correct"] },
            "correctness": number,
            "measurements": { "type": "array", "items": { "properties": { "name": { "type": "string" }, "unit": { "type": "string" } } } },
        },
    });
    json!({ "properties": {
        "schema_version": { "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$" },
        "results": { "type": "array", "items": result },
    } })
}

/// The results of the document of a shape by the value of V.
fn results(lab: &Lab, shape: &str) -> Vec<(i64, Value)> {
    let text = fs::read(lab.project.root().join(format!("t4/p.k.h.{shape}.json"))).unwrap();
    let value: Value = serde_json::from_slice(&text).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    assert!(validator.is_valid(&value), "{value:#}");
    let results = value["results"].as_array().unwrap();
    results.iter().map(|one| (one["configuration"]["V"].as_i64().unwrap(), one.clone())).collect()
}

fn export(lab: &Lab) -> String {
    let output = lab.project.command(&["export", "t4", "t4"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn every_variant_is_a_result_with_its_samples_or_the_reason() {
    let machine = Machine::with(&[(1, 2000.0), (2, 1000.0)]).rule("^k<4>", "ns = 500.0\nerror = 0.5");
    let lab = Lab::new(&machine);
    lab.project.build(&["--keep-going"]);
    let said = export(&lab);
    assert!(said.contains("no result of k on h at tiny: it passes, and it has no time"), "{said}");
    let big = results(&lab, "big");
    let words: Vec<(i64, &str)> = big.iter().map(|(v, one)| (*v, one["invalidity"].as_str().unwrap())).collect();
    assert_eq!(words, [(1, "correct"), (2, "correct"), (4, "correctness")]);
    let time = |at: usize| big[at].1["measurements"][0]["value"].as_f64().unwrap();
    assert!((time(0) / time(1) - 2.0).abs() < 0.1, "{big:?}");
    let samples = big[0].1["times"]["runtimes"].as_array().unwrap();
    assert!(
        samples.len() > 4 && samples.iter().all(|ms| (0.001..0.004).contains(&ms.as_f64().unwrap())),
        "{samples:?}"
    );
    assert_eq!((&big[2].1["measurements"], &big[2].1["correctness"]), (&json!([]), &json!(0)));
}

#[test]
fn a_hinted_variant_is_visited_first_and_measured_like_any_other() {
    let lab = Lab::new(&Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)])).manifest(
        "tune.V = [1, 2, 4]",
        "tune.V = [1, 2, 4]\ntune.strategy = \"random\"\ntune.budget = { variants = 1 }",
    );
    let cache = |v: u32| {
        format!(
            "{{\"device_name\": \"other\", \"kernel_name\": \"k\", \"tune_params_keys\": [\"vec\"], \"objective\": \"time\", \"cache\": {{\"{v}\": {{\"vec\": {v}, \"time\": 0.5}}"
        )
    };
    for v in [4, 1, 2] {
        lab.project.write("cache.json", &cache(v));
        let words = ["import", "kernel-tuner", "cache.json", "--kernel", "k", "--map", "vec=V"];
        let output = lab.project.command(&words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let built = lab.built(&[]);
        let label = format!("V={v}");
        assert_eq!(lab.target()["champions"][0]["variant"], label, "{}", built.stderr());
        // What the cache said of its time is nowhere.
        let time = lab.target()["times"][0]["cold_ns"].as_f64().unwrap();
        assert!(time < 3000.0 && time > 900.0, "{time}");
    }
    // The same hint, from another cache: nothing is measured again.
    lab.project.write("cache.json", &cache(4));
    let words = ["import", "kernel-tuner", "cache.json", "--kernel", "k", "--map", "vec=V"];
    assert!(lab.project.command(&words).output().unwrap().status.success());
    let built = lab.built(&[]);
    let executed =
        |kind: &str| built.events("step-finished").filter(|e| e["kind"] == kind && e["outcome"] == "executed").count();
    assert_eq!((executed("verify"), executed("bench")), (0, 0), "{}", built.stderr());
}
