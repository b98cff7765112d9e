//! No decision depends on the text of a message. A build for tests can replace each text by its length where the text enters a diagnostic or a record. The
//! decisions of a command, its exit code and all its JSON except texts, are then the same as without the replacement.

use serde_json::Value;

use crate::project::{Project, released};
use crate::sample::{SUM, one_kernel, sample};

/// Fields that hold texts for people, digests of something with texts, or values that differ between builds.
const MASKED: [&str; 11] = [
    "because",
    "duration_ms",
    "expected",
    "hints",
    "key",
    "message",
    "rendered",
    "result",
    "run",
    "started_ms",
    "summary",
];

/// The variants of outcomes and verdicts whose value is a text.
const TEXTS: [&str; 12] = [
    "fail",
    "failed",
    "implausible",
    "missing",
    "no-counters",
    "no-device",
    "indecisive",
    "not-emulated",
    "skipped",
    "too-large",
    "unavailable",
    "undecided",
];

/// A value without texts and what is derived from them.
fn masked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let is_text = TEXTS.contains(&name.as_str()) && value.is_string();
                let mask = MASKED.contains(&name.as_str()) || is_text;
                (name.clone(), if mask { Value::Null } else { masked(value) })
            };
            // A step that waits less than a millisecond does not have the field.
            Value::Object(fields.iter().filter(|(name, _)| *name != "waits").map(field).collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(masked).collect()),
        Value::String(text) if text.starts_with("blake3:") => Value::Null,
        other => other.clone(),
    }
}

/// The decisions of a command: its exit code and the lines of its JSON, sorted.
fn decided(project: &Project, words: &[&str]) -> (i32, Vec<String>) {
    let output = project.command(words).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<String> = match serde_json::from_str::<Value>(&text) {
        Ok(document) => vec![masked(&document).to_string()],
        Err(_) => text.lines().map(|line| masked(&serde_json::from_str(line).unwrap()).to_string()).collect(),
    };
    // Steps may end in any order.
    lines.sort();
    (output.status.code().unwrap_or(-1), lines)
}

/// Compares a command's decisions with and without texts, each in a separate home and twice, so that stored results are compared as well. Returns the exit
/// code.
#[track_caller]
fn same(project: &Project, words: &[&str]) -> i32 {
    let plain = project.cloned("plain").fresh_home("plain-home");
    let hidden = project.cloned("hidden").fresh_home("hidden-home").var("KFORGE_TEST_REWORD", "1");
    let mut code = 0;
    for turn in ["first", "again"] {
        let (with, without) = (decided(&plain, words), decided(&hidden, words));
        assert_eq!(with.0, without.0, "{turn}: the exit code of {words:?}");
        let differ: Vec<_> = with.1.iter().zip(&without.1).filter(|(a, b)| a != b).collect();
        assert!(with.1.len() == without.1.len() && differ.is_empty(), "{turn}: {words:?}: {differ:#?}");
        code = with.0;
    }
    code
}

const BUILD: [&str; 5] = ["build", "--offline", "--keep-going", "--message-format", "json"];

/// Whether the tested program can hide texts at all.
fn can_hide() -> bool {
    released().is_none() || cfg!(feature = "reword")
}

fn with_body(text: &str) -> Project {
    one_kernel(&format!(
        "__global__ void k(const float *x, float *y, int n) {{\n  int i = threadIdx.x;\n  {text}\n}}\n"
    ))
}

#[test]
fn words_can_be_hidden() {
    if !can_hide() {
        return;
    }
    let project = with_body("if (i < n - 1) y[i] = 2 * x[i] + 1;").var("KFORGE_TEST_REWORD", "1");
    let built = project.build(&[]).expect(100);
    let why = built.step("one/k/cpu/tiny/judge")["verdict"]["fail"].as_str().unwrap().to_string();
    assert!(!why.is_empty() && why.bytes().all(|b| b.is_ascii_digit()), "{why}");
}

#[test]
#[ignore = "second tier: many builds"]
fn builds_decide_the_same_without_words() {
    if !can_hide() {
        return;
    }
    let cases = [
        (0, with_body("if (i < n) y[i] = 2 * x[i] + 1;")),
        (100, with_body("if (i < n - 1) y[i] = 2 * x[i] + 1;")),
        (100, with_body("if (i <= n) y[i] = 2 * x[i] + 1;")),
        (100, with_body("if (i < n) y[i] = 2 * x[i] + 1; if (i == 12) y[6] = 0;")),
        (101, with_body("y[i] = nonsense;")),
        (0, with_body("if (i < n) { asm volatile(\"wgmma.fence.sync.aligned;\"); y[i] = 2 * x[i] + 1; }")),
        (0, with_body("if (i >= n) return;\n  y[i] = 2 * x[i] + 1;\n  __syncthreads();")),
        (100, {
            let project = sample();
            project.edit("kernel.toml", "tune.BLOCK = [4]", "tune.BLOCK = [64]");
            project.edit(
                "kernel.toml",
                "shapes.small = { rows = 2, cols = 9 }",
                "shapes.small = { rows = 2, cols = 70 }",
            );
            project.write("inc/sum.h", &SUM.replacen("    __syncthreads();\n  }", "  }", 1));
            project
        }),
        (100, {
            let project = with_body("if (i < n) y[i] = 2 * x[i] + 1;");
            project.edit("kernel.toml", "args = [\"x\", \"y\", \"n\"]", "args = [\"x\", \"y\"]");
            project
        }),
        (0, {
            let project = with_body("if (i < n) y[i] = 2 * x[i] + 1;");
            project.edit("kernel.toml", "{ atol = 1e-6, rtol = 1e-6 }", "{ atol = 1e-2, rtol = 1e-2 }");
            project
        }),
    ];
    for (expected, project) in cases {
        assert_eq!(same(&project, &BUILD), expected);
    }
}

#[test]
fn wrong_manifests_are_refused_the_same_without_words() {
    if !can_hide() {
        return;
    }
    for (from, to) in [
        ("rtol", "rtoll"),
        ("reference = {", "reference = [{"),
        ("shape = [\"n\"] }\noutputs", "shape = [\"m\"] }\noutputs"),
        ("source = \"k.cu\"", "source = \"none.cu\""),
        ("block = [", "block = [\"n / 3\", "),
        ("y = \"2 * x + 1\"", "y = \"2 * foo(x) + 1\""),
        ("source = \"k.cu\"", "source = \"k.cu\"\nrequires = [\"n % 4 == 0\"]"),
        ("shapes.tiny = { n = 10 }", "shapes.tiny = { n = 9223372036854775807 }"),
    ] {
        let project = with_body("if (i < n) y[i] = 2 * x[i] + 1;");
        let manifest = std::fs::read_to_string(project.root().join("kernel.toml")).unwrap();
        assert!(manifest.contains(from), "{from}");
        project.write("kernel.toml", &manifest.replacen(from, to, 1));
        assert_eq!(same(&project, &BUILD), 101, "{to}");
    }
}

#[test]
fn looks_decide_the_same_without_words() {
    if !can_hide() {
        return;
    }
    let project = sample();
    project.edit("twice.cu", "+ 1;", "+ 2;");
    for (expected, words) in [
        (0, &["explain", "--offline", "--json", "sample/twice/cpu/tiny/judge"][..]),
        (4, &["build", "--offline", "--message-format", "json", "--kernel", "other"]),
        (2, &["build", "--no-such-flag"]),
    ] {
        assert_eq!(same(&project, words), expected, "{words:?}");
    }
}
