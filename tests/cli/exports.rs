//! Results in the formats of other tools, from the program: a package with a kernel that passes, one that is wrong, one that cannot be decided and one that
//! does not compile; and a manifest with errors. The formats are checked against the schemas of their consumers.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::place::{MANIFEST, Place, SOURCE};

/// Three more kernels of the operator.
const MORE: &str = r#"
[kernel.wild]
operator = "twice"
source = "wild.cu"
launch = [{ entry = "wild", grid = ["1"], block = ["32"], args = ["x", "y", "n"] }]

[kernel.odd]
operator = "twice"
source = "sub/odd.cu"
launch = [{ entry = "odd", grid = ["1"], block = ["32"], args = ["x", "y", "n"] }]

[kernel.broken]
operator = "twice"
source = "broken.cu"
launch = [{ entry = "broken", grid = ["1"], block = ["32"], args = ["x", "y", "n"] }]
"#;

/// Accesses what is outside its buffers, in line 3.
const WILD: &str =
    "__global__ void wild(const float *x, float *y, int n) {\n    int i = threadIdx.x;\n    y[i] = 2.0f * x[i];\n}\n";

/// Executes an instruction that the emulator does not have, in line 3.
const ODD: &str = "__global__ void odd(const float *x, float *y, int n) {\n    int i = threadIdx.x;\n    if (i < n) { asm volatile(\"wgmma.fence.sync.aligned;\"); y[i] = 2.0f * x[i]; }\n}\n";

/// Names something that does not exist, in line 3.
const BROKEN: &str = "__global__ void broken(const float *x, float *y, int n) {\n    int i = threadIdx.x;\n    if (i < n) y[i] = twice_of(x[i]);\n}\n";

/// The package in a folder of a repository, built.
fn built() -> Place {
    let place = Place::empty()
        .file("kernels/kernel.toml", &format!("{MANIFEST}{MORE}"))
        .file("kernels/twice.cu", SOURCE)
        .file("kernels/wild.cu", WILD)
        .file("kernels/sub/odd.cu", ODD)
        .file("kernels/broken.cu", BROKEN);
    place.shell("git init -q .");
    place.run_in("kernels", &["build", "--keep-going"], &[]).expect(101);
    place
}

fn exported(place: &Place, format: &str) -> String {
    place.run_in("kernels", &["report", "--format", format], &[]).expect(0).out
}

/// Results as JSON, checked against a schema.
#[track_caller]
fn checked(place: &Place, format: &str, schema: &str) -> Value {
    let value: Value = serde_json::from_str(&exported(place, format)).unwrap();
    valid(&value, schema);
    value
}

#[track_caller]
fn valid(value: &Value, schema: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pipeline/report/exports/schemas").join(schema);
    let schema: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|e| format!("{e} at {}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{}\n{value:#}", errors.join("\n"));
}

/// Rule, level, file and line of each result of a SARIF log.
fn results(log: &Value) -> Vec<(String, String, String, Value)> {
    let of = |result: &Value| {
        let place = &result["locations"][0]["physicalLocation"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let line = place["region"]["startLine"].clone();
        (text(&result["ruleId"]), text(&result["level"]), text(&place["artifactLocation"]["uri"]), line)
    };
    log["runs"][0]["results"].as_array().unwrap().iter().map(of).collect()
}

#[test]
#[ignore = "second tier: many builds"]
fn what_is_wrong_is_shown_at_its_line_in_the_repository() {
    let place = built();
    let log = checked(&place, "sarif", "sarif-2.1.0.json");
    let found = results(&log);
    let has = |rule: &str, level: &str, uri: &str, line: u32| {
        let expected = (rule.to_string(), level.to_string(), uri.to_string(), json!(line));
        assert!(found.contains(&expected), "{expected:?} in {found:#?}");
    };
    has("compile.error", "error", "kernels/broken.cu", 3);
    has("verify.out-of-bounds", "error", "kernels/wild.cu", 3);
    has("verify.not-emulated", "note", "kernels/sub/odd.cu", 3);
    let of_compiler = log["runs"][0]["results"].as_array().unwrap().iter().find(|r| r["ruleId"] == "compile.error");
    let of_compiler = of_compiler.unwrap();
    assert!(of_compiler["message"]["text"].as_str().unwrap().contains("twice_of"), "{of_compiler}");
    assert!(of_compiler["locations"][0]["physicalLocation"]["region"]["startColumn"].is_u64(), "{of_compiler}");
    assert!(!found.iter().any(|(.., uri, _)| uri.ends_with("twice.cu")), "the correct kernel has no result: {found:?}");

    let lines = exported(&place, "annotations");
    let line = |start: &str| lines.lines().any(|line| line.starts_with(start));
    assert!(line("::error file=kernels/wild.cu,line=3,title=wild on cpu%3A verify.out-of-bounds::"), "{lines}");
    assert!(line("::error file=kernels/broken.cu,line=3,col="), "{lines}");
    assert!(line("::notice file=kernels/sub/odd.cu,line=3,"), "{lines}");

    let violations = checked(&place, "code-quality", "code-quality.json");
    let wild = violations.as_array().unwrap().iter().find(|v| v["check_name"] == "verify.out-of-bounds").unwrap();
    assert_eq!(wild["location"], json!({ "path": "kernels/wild.cu", "lines": { "begin": 3 } }));

    // A selection leaves out what is about other kernels.
    let only = place.run_in("kernels", &["report", "--format", "sarif", "--kernel", "wild"], &[]).expect(0).json();
    assert!(results(&only).iter().all(|(.., uri, _)| uri == "kernels/wild.cu") && !results(&only).is_empty(), "{only}");
}

#[test]
#[ignore = "second tier: many builds"]
fn wrong_values_are_shown_at_the_table_of_their_kernel() {
    let place = Place::empty().file("kernels/kernel.toml", MANIFEST).file("kernels/twice.cu", SOURCE);
    place.shell("git init -q .");
    place.edit("kernels/twice.cu", "2.0f", "2.5f");
    place.run_in("kernels", &["build"], &[]).expect(100);
    let line = 1 + MANIFEST.lines().position(|line| line == "[kernel.twice]").unwrap();
    let start = format!("::error file=kernels/kernel.toml,line={line},title=twice on cpu%3A verify.values::");
    assert!(exported(&place, "annotations").starts_with(&start), "{start} in {}", exported(&place, "annotations"));
    let log = checked(&place, "sarif", "sarif-2.1.0.json");
    let uri = "kernels/kernel.toml".to_string();
    assert_eq!(results(&log), [("verify.values".into(), "error".into(), uri, json!(line))]);
    assert!(exported(&place, "summary").contains(&format!("| kernels/kernel.toml:{line} |")));
}

#[test]
#[ignore = "second tier: many builds"]
fn verdicts_are_tests_and_times_that_nobody_measured_are_nowhere() {
    let place = built();
    let xml = exported(&place, "junit");
    let case = |start: &str| {
        xml.split("<testcase ").find(|case| case.starts_with(start)).unwrap_or_else(|| panic!("{start} in\n{xml}"))
    };
    assert!(case("name=\"five BLOCK=32\" classname=\"tiny.cpu.twice\"").contains("emulated"), "{xml}");
    assert!(case("name=\"five\" classname=\"tiny.cpu.wild\"").contains("<failure message="), "{xml}");
    assert!(case("name=\"five\" classname=\"tiny.cpu.odd\"").contains("type=\"not-emulated\""), "{xml}");
    let broken = xml.split("<testcase ").find(|case| case.contains("tiny.cpu.broken") && case.contains("<error "));
    assert!(broken.is_some_and(|case| case.contains("broken.cu:3: ") && case.contains("twice_of")), "{xml}");
    assert!(!xml.contains(" time="), "nothing was timed: {xml}");

    assert_eq!(exported(&place, "bmf"), "{}\n");
    assert_eq!(checked(&place, "github-benchmark", "github-benchmark.json"), json!([]));
    assert_eq!(checked(&place, "pytorch-benchmark", "pytorch-benchmark.json"), json!([]));
    assert_eq!(checked(&place, "lnt", "lnt.json")["tests"], json!([]));

    let summary = exported(&place, "summary");
    assert!(summary.starts_with("## kforge: not built\n"), "{summary}");
    assert!(summary.contains("| wild on cpu: verify.out-of-bounds | kernels/wild.cu:3 |"), "{summary}");
    assert!(summary.contains("| twice on cpu | all | BLOCK=32 (provisional) | not timed |"), "{summary}");
    assert!(summary.contains("| odd on cpu | five | not emulated: "), "{summary}");
}

#[test]
fn errors_of_a_manifest_are_shown_at_their_place_although_nothing_can_be_built() {
    let place = Place::empty().file("a/kernel.toml", MANIFEST).file("a/twice.cu", SOURCE);
    place.shell("git init -q .");
    place.edit("a/kernel.toml", "rtol = 1e-6", "rtoll = 1e-6");
    let report = |format: &str| place.run_in("a", &["report", "--format", format], &[]).expect(101).says("rtoll");
    let log = report("sarif").json();
    valid(&log, "sarif-2.1.0.json");
    let line = 1 + MANIFEST.lines().position(|line| line.contains("rtol")).unwrap();
    let expected = ("manifest.unknown-key".to_string(), "error".to_string(), "a/kernel.toml".to_string(), json!(line));
    assert_eq!(results(&log)[0], expected);
    assert!(report("annotations").out.starts_with(&format!("::error file=a/kernel.toml,line={line},")));
    assert!(report("junit").out.contains("<error message="));
    assert!(report("summary").out.starts_with("## kforge: the manifest has errors\n"));
    assert_eq!(report("bmf").out, "", "a benchmark says nothing about a manifest");
}

#[test]
fn scores_have_no_format_of_other_tools() {
    let place = Place::tiny();
    place.run("build").expect(0);
    place.run("report --score speedup --format junit").expect(2).says("scores have no such format");
}
