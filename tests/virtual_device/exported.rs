//! Times in the formats of benchmark dashboards: with the device in every name, and with nothing that was not measured.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, Machine};

fn exported(lab: &Lab, format: &str) -> String {
    let output = lab.project.command(&["report", "--format", format]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Results as JSON, checked against a schema.
fn checked(lab: &Lab, format: &str) -> Value {
    let value: Value = serde_json::from_str(&exported(lab, format)).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/pipeline/report/exports/schemas/{format}.json"));
    let schema: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|e| format!("{e} at {}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{}\n{value:#}", errors.join("\n"));
    value
}

/// The names of the benchmarks in every format, which are the same.
fn names(lab: &Lab) -> BTreeSet<String> {
    let texts =
        |all: Vec<&Value>| all.into_iter().map(|v| v.as_str().unwrap().to_string()).collect::<BTreeSet<String>>();
    let bmf: BTreeSet<String> = checked(lab, "bmf").as_object().unwrap().keys().cloned().collect();
    let (github, pytorch, lnt) =
        (checked(lab, "github-benchmark"), checked(lab, "pytorch-benchmark"), checked(lab, "lnt"));
    let list = |value: &Value, path: &str| {
        texts(value.as_array().unwrap().iter().map(|one| one.pointer(path).unwrap()).collect())
    };
    assert_eq!(list(&github, "/name"), bmf);
    assert_eq!(list(&pytorch, "/benchmark/extra_info/series"), bmf);
    assert_eq!(list(&lnt["tests"], "/name"), bmf);
    bmf
}

#[test]
fn series_are_named_by_kernel_shape_metric_and_device_and_have_the_champions_times() {
    let lab = Lab::new(&Machine { noise: 0.01, ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]) });
    lab.built(&[]);
    let cold = "p/k big cold on h, Virtual H (sm_90, driver 580)".to_string();
    let hot = "p/k big hot on h, Virtual H (sm_90, driver 580)".to_string();
    assert_eq!(names(&lab), [cold.clone(), hot].into());
    let latency = checked(&lab, "bmf")[&cold]["latency"].clone();
    let [value, low, high] = ["value", "lower_value", "upper_value"].map(|name| latency[name].as_f64().unwrap());
    assert!(low <= value && value <= high && low > 900.0 && high < 1100.0, "{latency}");
    let seconds = &checked(&lab, "lnt")["tests"][0]["execution_time"];
    assert!((seconds.as_f64().unwrap() - value * 1e-9).abs() < 1e-15, "{seconds} {value}");
    let entry = checked(&lab, "github-benchmark")[0].clone();
    let extra = entry["extra"].as_str().unwrap();
    assert!(extra.contains("variant: V=2\n") && extra.contains("standing: here"), "{extra}");

    // A test's time is the kernel's, and the summary compares it with the variant declared first.
    let (xml, summary) = (exported(&lab, "junit"), exported(&lab, "summary"));
    assert!(xml.contains("name=\"big V=2\" classname=\"p.h.k\" time=\"0.00000"), "{xml}");
    assert!(!xml.contains("name=\"tiny V=2\" classname=\"p.h.k\" time"), "no time is known at `tiny`: {xml}");
    assert!(summary.starts_with("## kforge: passed\n"), "{summary}");
    let row =
        summary.lines().find(|line| line.starts_with("| k on h | big | V=2 |")).unwrap_or_else(|| panic!("{summary}"));
    assert!(row.contains(" | -50.") && row.ends_with("| Virtual H (sm_90, driver 580) |"), "{row}");
}

#[test]
fn another_device_is_another_series_and_none_is_no_series() {
    let lab = Lab::new(&Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]));
    lab.built(&[]);
    let first = names(&lab);
    let other = lab.anew("other");
    other.on(&Machine {
        device: Some(("Virtual H2", "590.1")),
        ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)])
    });
    other.built(&[]);
    let second = names(&other);
    assert!(first.is_disjoint(&second) && second.iter().all(|name| name.ends_with(", Virtual H2 (sm_90, driver 590)")));
    let none = lab.anew("none");
    none.on(&Machine { device: None, ..Machine::default() });
    none.built(&[]);
    assert_eq!(names(&none), BTreeSet::new());
    assert_eq!(checked(&none, "lnt")["machine"], json!({ "name": "no device" }));
}
