//! Results of tuning in the T4 format of the autotuning community (1.0.0), which Kernel Tuner and others write: one document for a kernel at a shape. Pure; knows
//! the format.
//!
//! | status of a variant | `invalidity` |
//! |---|---|
//! | passes, with a time | `correct` |
//! | wrong values | `correctness` |
//! | no progress | `timeout` |
//! | does not compile | `compile` |
//! | any other failure | `runtime` |
//!
//! A variant that is unknown is in no document, and neither is one that the manifest's conditions exclude: there is nothing to say of its configuration.

use serde::Serialize;
use serde_json::{Map, Value};

use super::traces::Status;

/// The version of the format.
const VERSION: &str = "1.0.0";

/// The results of a kernel at a shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TuningResults {
    schema_version: &'static str,
    /// What the results are of; other programs ignore it.
    pub kforge: Subject,
    /// One for each variant.
    pub results: Vec<TuningResult>,
}

/// What results are of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Subject {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// The shape.
    pub shape: String,
}

/// The result of a variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TuningResult {
    timestamp: String,
    configuration: Map<String, Value>,
    objectives: [&'static str; 1],
    times: Times,
    invalidity: &'static str,
    correctness: u8,
    measurements: Vec<Measurement>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Times {
    /// In milliseconds.
    runtimes: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Measurement {
    name: &'static str,
    value: f64,
    unit: &'static str,
}

impl TuningResults {
    /// The results, still empty.
    pub fn new(kforge: Subject) -> Self {
        TuningResults { schema_version: VERSION, kforge, results: vec![] }
    }
}

impl TuningResult {
    /// The result of a variant with this label. `runtimes_ns` are its samples, and `time_ns` is their median.
    pub fn new(label: &str, status: Status, when: &str, runtimes_ns: &[f64], time_ns: Option<f64>) -> Self {
        let time = time_ns.filter(|_| status == Status::Passed);
        TuningResult {
            timestamp: when.to_string(),
            configuration: label.split(',').filter_map(|part| part.split_once('=')).map(tunable).collect(),
            objectives: ["time"],
            times: Times { runtimes: runtimes_ns.iter().map(|ns| ns / 1e6).collect() },
            invalidity: match status {
                Status::Passed => "correct",
                Status::IncorrectNumerical | Status::IncorrectShape | Status::IncorrectDtype => "correctness",
                Status::Timeout => "timeout",
                Status::CompileError => "compile",
                Status::RuntimeError | Status::RewardHack => "runtime",
            },
            correctness: u8::from(status == Status::Passed),
            measurements: time
                .map(|ns| Measurement { name: "time", value: ns / 1e6, unit: "ms" })
                .into_iter()
                .collect(),
        }
    }
}

/// A tunable of a label with its value: a number or a truth value where the text is one.
fn tunable((name, text): (&str, &str)) -> (String, Value) {
    let value = match text {
        "true" => true.into(),
        "false" => false.into(),
        _ => text.parse::<i64>().map_or_else(|_| text.into(), Value::from),
    };
    (name.to_string(), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_variant_is_a_result_with_its_configuration_and_times() {
        let subject = Subject { package: "p".into(), kernel: "k".into(), target: "h".into(), shape: "big".into() };
        let mut all = TuningResults::new(subject);
        all.results.push(TuningResult::new(
            "BLOCK=64,FAST=true,MODE=a",
            Status::Passed,
            "2026",
            &[2e6, 3e6],
            Some(2.5e6),
        ));
        all.results.push(TuningResult::new("BLOCK=32", Status::IncorrectNumerical, "2026", &[], Some(1.0)));
        let value = serde_json::to_value(&all).unwrap();
        assert_eq!(
            value["results"],
            json!([
                {
                    "timestamp": "2026", "configuration": { "BLOCK": 64, "FAST": true, "MODE": "a" }, "objectives": ["time"],
                    "times": { "runtimes": [2.0, 3.0] }, "invalidity": "correct", "correctness": 1,
                    "measurements": [{ "name": "time", "value": 2.5, "unit": "ms" }],
                },
                {
                    "timestamp": "2026", "configuration": { "BLOCK": 32 }, "objectives": ["time"], "times": { "runtimes": [] },
                    "invalidity": "correctness", "correctness": 0, "measurements": [],
                },
            ])
        );
        assert_eq!(value["schema_version"], "1.0.0");
    }

    #[test]
    fn every_status_is_a_word_of_the_format() {
        let of = |status| TuningResult::new("A=1", status, "", &[], None).invalidity;
        assert_eq!(
            [Status::Timeout, Status::CompileError, Status::RuntimeError, Status::RewardHack].map(of),
            ["timeout", "compile", "runtime", "runtime"]
        );
    }
}
