//! Two products of one architecture: their targets ask the same question, and each is answered by its own product.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::lab::{Lab, Machine, steps};
use crate::project::{Built, ids};

/// A lab with two targets whose code is the same: `h` is tied to Virtual H, `x` to Virtual X.
fn lab(machine: &Machine) -> Lab {
    Lab::new(machine)
        .manifest(
            "[targets.h]\narch = \"sm_90a\"",
            "[targets.h]\narch = \"sm_90a\"\ndevice = \"Virtual H\"\n[targets.x]\narch = \"sm_90a\"\ndevice = \"Virtual X\"",
        )
        .manifest("targets = [\"h\"]", "targets = [\"h\", \"x\"]")
}

/// A machine on which `k<1>` is the fastest on Virtual H, and `k<4>` on Virtual X.
fn times() -> Machine {
    Machine::default()
        .rule("^k<1> .* on Virtual H$", "ns = 1000.0")
        .rule("^k<4> .* on Virtual X$", "ns = 1000.0")
        .rule("^k", "ns = 2000.0")
}

fn both() -> Machine {
    Machine { more: vec![("Virtual X", "580.1")], ..times() }
}

fn none() -> Machine {
    Machine { device: None, ..times() }
}

/// The champion of each target, and whether it is provisional.
fn champions(built: &Built) -> BTreeMap<String, (String, bool)> {
    let text = |v: &Value| v.as_str().unwrap().to_string();
    built
        .events("champion")
        .map(|c| (text(&c["target"]), (text(&c["variant"]), c["provisional"].as_bool().unwrap())))
        .collect()
}

fn each(h: (&str, bool), x: (&str, bool)) -> BTreeMap<String, (String, bool)> {
    [("h", h), ("x", x)].map(|(target, (variant, open))| (target.to_string(), (variant.to_string(), open))).into()
}

/// The steps that ask a device, with this outcome.
fn asking(built: &Built, outcome: &str) -> BTreeSet<String> {
    ["verify", "bench", "pairs", "profile"].iter().flat_map(|kind| steps(built, kind, outcome)).collect()
}

/// The device classes that answered steps, by target.
fn answered(built: &Built) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for step in built.finished().filter(|s| !s["evidence"].is_null()) {
        let target = step["labels"]["target"].as_str().unwrap();
        let class = step["evidence"]["device_class"].as_str().unwrap();
        assert!(class.starts_with(step["product"].as_str().unwrap()), "{step}");
        all.entry(target.into()).or_default().insert(class.into());
    }
    all
}

fn of_its_own() -> BTreeMap<String, BTreeSet<String>> {
    [("h", "Virtual H (sm_90, driver 580)"), ("x", "Virtual X (sm_90, driver 580)")]
        .map(|(target, class)| (target.to_string(), BTreeSet::from([class.to_string()])))
        .into()
}

#[test]
fn each_target_is_answered_by_its_own_product() {
    let lab = lab(&both());
    let first = lab.built(&[]);
    let expected = each(("V=1", false), ("V=4", false));
    assert_eq!((champions(&first), answered(&first)), (expected.clone(), of_its_own()));
    // One question, measured once for each product.
    let ran = asking(&first, "executed");
    let of = |target: &str| ran.iter().filter(|id| id.contains(&format!("/{target}/"))).count();
    assert_eq!((of("h"), of("x")), (12, 12), "{ran:?}");
    let key = |id: &str| first.finished().find(|s| s["id"] == id).unwrap()["key"].clone();
    assert_eq!(key("p/k/V=1/h/big/bench"), key("p/k/V=1/x/big/bench"));
    assert_eq!(lab.records(), 24 + 2, "and what each device does at most");
    // The result is the same without either device, and on a machine with only one of them.
    let report = lab.project.report();
    for machine in [none(), Machine { device: Some(("Virtual X", "580.1")), ..times() }, both()] {
        lab.on(&machine);
        let built = lab.built(&["--require-evidence"]);
        assert_eq!((asking(&built, "executed"), champions(&built)), (ids(&[]), expected.clone()));
        assert_eq!((answered(&built), lab.project.report()), (of_its_own(), report.clone()));
    }
}

#[test]
fn a_target_whose_product_nobody_observed_is_unknown_beside_one_that_was() {
    let lab = lab(&Machine { more: vec![], ..times() });
    let first = lab.built(&[]);
    let expected = each(("V=1", false), ("V=1", true));
    assert_eq!(champions(&first), expected);
    for machine in [times(), none()] {
        lab.on(&machine);
        let built = lab.built(&[]);
        assert_eq!((asking(&built, "executed"), champions(&built)), (ids(&[]), expected.clone()));
        let open = asking(&built, "unavailable");
        assert!(!open.is_empty() && open.iter().all(|id| id.contains("/x/")), "{open:?}");
        lab.project.build(&["--require-evidence", "--target", "x"]).expect(103);
        lab.project.build(&["--require-evidence", "--target", "h"]).expect(0);
    }
    // Once the other product is present, only its own steps are measured.
    lab.on(&Machine { device: Some(("Virtual X", "580.1")), ..times() });
    let built = lab.built(&[]);
    let ran = asking(&built, "executed");
    assert!(ran.len() == 12 && ran.iter().all(|id| id.contains("/x/")), "{ran:?}");
    assert_eq!(champions(&built), each(("V=1", false), ("V=4", false)));
}

#[test]
fn targets_that_mean_one_product_share_its_runs() {
    let lab = lab(&times()).manifest("device = \"Virtual X\"", "device = \"Virtual H\"");
    let built = lab.built(&[]);
    assert_eq!((asking(&built, "executed").len(), lab.records()), (12, 13));
    assert_eq!(champions(&built), each(("V=1", false), ("V=1", false)));
    // A target without a product means the device that is present.
    let lab = lab.manifest("[targets.x]\narch = \"sm_90a\"\ndevice = \"Virtual H\"", "[targets.x]\narch = \"sm_90a\"");
    assert_eq!(asking(&lab.built(&[]), "executed"), ids(&[]));
}

#[test]
fn products_are_listed_where_none_is_named_and_several_answered() {
    let lab = lab(&both());
    lab.built(&[]);
    let lab = lab.manifest("device = \"Virtual X\"", "");
    lab.on(&none());
    let built = lab.built(&[]);
    let step = built.finished().find(|s| s["id"] == "p/k/V=1/x/big/bench").unwrap();
    let why = "no device of architecture sm_90a here, and evidence from Virtual H and Virtual X: choose one with the target's `device`";
    assert_eq!(step["outcome"], serde_json::json!({ "unavailable": why }));
    assert_eq!(champions(&built), each(("V=1", false), ("V=1", true)));
}

#[test]
fn the_product_is_said_by_explanation_and_report() {
    let lab = lab(&Machine { more: vec![], ..times() });
    lab.built(&[]);
    let explained = |target: &str| {
        let words = ["explain", "--offline", &format!("p/k/V=1/{target}/big/bench")];
        String::from_utf8(lab.project.command(&words).output().unwrap().stdout).unwrap()
    };
    let says = |target: &str, text: &str| {
        let said = explained(target);
        assert!(said.contains(text), "no `{text}` in:\n{said}");
    };
    says("h", "answered by Virtual H (sm_90, driver 580), observed 2026-01-01T00:00:00Z, from here");
    says("x", "asks Virtual X");
    says("x", "is unavailable: no Virtual X here, only Virtual H, and no evidence from one");
    let json = lab.project.explain("p/k/V=1/h/big/bench");
    assert_eq!((&json["product"], &json["evidence"]["origin"]), (&"Virtual H".into(), &"here".into()));
    let report = lab.project.report_value();
    let targets = &report["packages"][0]["kernels"][0]["targets"];
    assert_eq!(targets[0]["observed_on"], serde_json::json!(["Virtual H (sm_90, driver 580)"]));
    assert!(targets[1].get("observed_on").is_none());
    let shown = lab.project.command(&["report"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned() + &String::from_utf8_lossy(&shown.stderr);
    assert!(shown.contains("observed on Virtual H (sm_90, driver 580)"), "{shown}");
}
