//! Where several kernels implement one operator, their champions are compared, and a report names the fastest at each bench shape.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::lab::{Lab, Machine, steps};
use crate::project::ids;

/// Another kernel of the operator, with one variant.
const OTHER: &str = r#"
[kernel.m]
operator = "twice"
source = "m.cu"
targets = ["h"]
tune.V = [1]
launch = [{ entry = "m<V>", grid = ["n"], block = ["32"], args = ["x", "y", "n"] }]
"#;

/// A package with two kernels of one operator, `k` with V=1 as its champion and `m`, which take these nanoseconds.
fn lab(k: f64, m: f64) -> Lab {
    let machine = Machine { noise: 0.002, ..Machine::default() }
        .rule("^k<1>", &format!("ns = {k:.1}"))
        .rule("^k<[24]>", &format!("ns = {:.1}", 2.0 * k))
        .rule("^m<1>", &format!("ns = {m:.1}"));
    let lab = Lab::new(&machine);
    lab.project.write("m.cu", "template <int V> __global__ void m(const float *x, float *y, int n) {}\n");
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{OTHER}"));
    lab
}

fn leaders(lab: &Lab) -> Vec<Value> {
    lab.project.report_value()["packages"][0]["leaders"].as_array().cloned().unwrap_or_default()
}

fn said(lab: &Lab, words: &[&str]) -> String {
    let output = lab.project.command(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}:\n{text}");
    text
}

const SELECTS: [&str; 2] = ["p/twice/h/kernels/nominate/select", "p/twice/h/kernels/select"];

#[test]
fn the_faster_kernel_of_an_operator_leads() {
    let lab = lab(1000.0, 970.0);
    let built = lab.built(&[]);
    let selects = steps(&built, "select", "executed");
    assert!(ids(&SELECTS).is_subset(&selects), "{selects:?}");
    let between: Vec<String> = steps(&built, "pairs", "executed").into_iter().filter(|id| id.contains("/m/")).collect();
    assert_eq!(between.len(), 1, "{between:?}");
    let [leader] = leaders(&lab).try_into().unwrap();
    assert_eq!((&leader["kernel"], &leader["shape"], &leader["target"]), (&json!("m"), &json!("big"), &json!("h")));
    let [other] = leader["others"].as_array().cloned().unwrap().try_into().unwrap();
    assert_eq!((&other["kernel"], &other["variant"]), (&json!("k"), &json!("V=1")));
    let ratio = other["pairs"]["ratio"].as_f64().unwrap();
    assert!((1.02..1.05).contains(&ratio), "{ratio}");
    let line = "fastest kernel of twice on h at big: m, V=1 (k: slower, +3.";
    for words in [["report", "--offline"], ["explain", "k"], ["explain", "m"]] {
        let text = said(&lab, &words);
        assert!(text.contains(line), "{words:?}: {text}");
    }
    assert!(said(&lab, &["report", "--offline", "--format", "markdown"]).contains(line));
    let again = lab.built(&[]);
    assert_eq!((again.count("executed"), leaders(&lab).len()), (0, 1));
}

#[test]
fn of_equal_kernels_the_first_declared_leads() {
    let lab = lab(1000.0, 1000.0);
    lab.built(&[]);
    let [leader] = leaders(&lab).try_into().unwrap();
    assert_eq!(leader["kernel"], "k");
    let text = said(&lab, &["report", "--offline"]);
    assert!(text.contains("fastest kernel of twice on h at big: k, V=1 (m: same, "), "{text}");
}

#[test]
fn a_kernel_that_is_far_slower_is_not_paired() {
    let lab = lab(1000.0, 1500.0);
    let built = lab.built(&[]);
    assert!(!steps(&built, "pairs", "executed").iter().any(|id| id.contains("/m/")));
    let text = said(&lab, &["report", "--offline"]);
    let line = text.lines().find(|line| line.contains("fastest kernel of twice")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("big: k, V=1 (m: +") && line.ends_with(" % by medians)"), "{line}");
    // Of one kernel, a report and an explanation still say how it compares.
    for words in [["report", "--offline", "--kernel", "k"], ["report", "--offline", "--kernel", "m"]] {
        assert!(said(&lab, &words).contains(line), "{words:?}");
    }
    assert!(said(&lab, &["explain", "m"]).contains("fastest kernel of twice on h at big: k"));
    let champions: BTreeSet<String> = built.events("champion").map(|c| c["kernel"].as_str().unwrap().into()).collect();
    assert_eq!(champions, ids(&["k", "m"]));
}

#[test]
fn a_kernel_whose_confirmation_fails_does_not_lead() {
    let fast = |machine: Machine| machine.rule("^k<1>", "ns = 1000.0").rule("^k<[24]>", "ns = 2000.0");
    let lab = lab(1000.0, 970.0);
    lab.on(&fast(Machine { noise: 0.002, ..Machine::default() }).rule("^m<1>", "ns = 970.0\nisolated-error = 1.0"));
    let output = lab.project.command(&["build", "--offline"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && !text.contains("fastest kernel"), "{text}");
    assert_eq!(leaders(&lab), Vec::<Value>::new());
}

#[test]
fn pairs_with_another_kernel_are_no_pairs_of_an_own_variant() {
    let lab = lab(1000.0, 970.0).manifest("tune.V = [1]", "tune.V = [2]");
    lab.on(&Machine { noise: 0.002, ..Machine::default() }
        .rule("^k<1>", "ns = 1000.0")
        .rule("^k<[24]>", "ns = 2000.0")
        .rule("^m<2>", "ns = 970.0"));
    lab.built(&[]);
    let text = said(&lab, &["explain", "k"]);
    let own = text.lines().find(|line| line.trim_start().starts_with("V=2")).unwrap_or_else(|| panic!("{text}"));
    assert!(!own.contains("in pairs"), "{own}");
}

#[test]
fn evidence_of_pairs_between_kernels_is_not_required() {
    let lab = lab(1000.0, 970.0);
    lab.built(&["--kernel", "k"]);
    lab.built(&["--kernel", "m"]);
    let none = lab.anew("none");
    lab.give_evidence(&none);
    none.on(&Machine { device: None, ..Machine::default() });
    none.built(&["--require-evidence=claimed"]);
}

#[test]
fn a_kernel_that_nobody_has_written_yet_keeps_no_leader_from_the_others() {
    let lab = lab(1000.0, 970.0);
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let unwritten = "\n[agents.writer]\ncommand = [\"./agent.sh\"]\n\n[kernel.q]\noperator = \"twice\"\ntargets = [\"h\"]\ngenerate = { agent = \"writer\", rounds = 1 }\n";
    lab.project.write("kernel.toml", &format!("{manifest}{unwritten}"));
    let output = lab.project.command(&["build", "--offline", "--keep-going"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("fastest kernel of twice on h at big: m"), "{text}");
}

#[test]
fn kernels_are_compared_only_if_several_are_built_and_timed_alike() {
    let lab = lab(1000.0, 970.0);
    let built = lab.built(&["--kernel", "k"]);
    assert!(ids(&SELECTS).is_disjoint(&steps(&built, "select", "executed")));
    assert_eq!(leaders(&lab), Vec::<Value>::new());
    let hot = lab.manifest("source = \"m.cu\"", "source = \"m.cu\"\nselect = { metric = \"hot\" }");
    let built = hot.built(&[]);
    assert!(ids(&SELECTS).is_disjoint(&steps(&built, "select", "executed")));
    // Without a device, champions are provisional.
    let none = Lab::anew(&hot, "none");
    none.on(&Machine { device: None, ..Machine::default() });
    none.built(&[]);
    assert_eq!(leaders(&none), Vec::<Value>::new());
}
