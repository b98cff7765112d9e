//! Observations of a device answer where there is none: by content, with their origin, for the classes of devices for which they are valid, and for nothing
//! else.

use std::collections::BTreeSet;

use crate::lab::{Lab, Machine, champion, steps};
use crate::project::{Built, ids};

fn machine() -> Machine {
    Machine::with(&[(1, 1004.0), (2, 1000.0), (4, 1500.0)])
}

fn without(machine: &Machine) -> Machine {
    Machine { device: None, ..machine.clone() }
}

/// The executed steps that ask a device.
fn asked(built: &Built) -> BTreeSet<String> {
    ["verify", "bench", "pairs", "profile"].iter().flat_map(|kind| steps(built, kind, "executed")).collect()
}

#[test]
fn what_was_observed_answers_without_the_device() {
    let lab = Lab::new(&machine());
    let first = lab.built(&[]);
    let report = lab.project.report();
    lab.on(&without(&machine()));
    let second = lab.built(&["--require-evidence"]);
    assert_eq!((second.count("executed"), second.keys()), (0, first.keys()));
    assert_eq!((champion(&second), lab.project.report()), (champion(&first), report));
    for step in second.finished().filter(|s| ["verify", "bench", "pairs"].iter().any(|k| s["kind"] == *k)) {
        assert_eq!((&step["outcome"], &step["cache"]), (&"fresh".into(), &"evidence".into()), "{step}");
        let evidence = &step["evidence"];
        assert_eq!(evidence["origin"], "here");
        assert_eq!(evidence["measured_at"], "2026-01-01T00:00:00Z");
        assert_eq!(evidence["device_class"], "Virtual H (sm_90, driver 580)");
    }
    // Another workspace with the same home knows the records too.
    let clone = Lab { project: lab.project.cloned("clone"), ..lab.clone() };
    let third = clone.built(&["--require-evidence"]);
    assert_eq!((asked(&third), third.keys()), (ids(&[]), first.keys()));
}

#[test]
fn another_home_that_is_given_the_evidence_decides_alike() {
    let lab = Lab::new(&machine());
    let first = lab.built(&[]);
    let other = lab.anew("laptop");
    lab.give_evidence(&other);
    other.on(&without(&machine()));
    let built = other.built(&["--require-evidence"]);
    assert_eq!((asked(&built), built.keys()), (ids(&[]), first.keys()));
    assert_eq!((champion(&built), other.project.report()), (champion(&first), lab.project.report()));
}

#[test]
#[ignore = "second tier: many builds"]
fn an_edited_kernel_is_unavailable_again_and_no_other() {
    let lab = Lab::new(&machine().rule("^j<", "ns = 900.0"));
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let (_, kernel) = manifest.split_once("[kernel.k]").unwrap();
    let other = kernel.replace("k.cu", "j.cu").replace("k<V>", "j<V>");
    lab.project.write("kernel.toml", &format!("{manifest}\n[kernel.j]{other}"));
    lab.project.write("j.cu", "template <int V> __global__ void j(const float *x, float *y, int n) {}\n");
    lab.built(&[]);
    lab.on(&without(&machine()));
    assert_eq!(lab.built(&["--require-evidence"]).count("executed"), 0);
    lab.project.edit("j.cu", "{}", "{ /* nothing yet */ }");
    let built = lab.built(&[]);
    let gone = |kind: &str| steps(&built, kind, "unavailable");
    for (kind, count) in [("verify", 6), ("bench", 3), ("pairs", 0)] {
        assert_eq!(gone(kind).len(), count, "{kind}");
        assert!(gone(kind).iter().all(|id| id.starts_with("p/j/")), "{:?}", gone(kind));
    }
    let stands = |kernel: &str| {
        let of = built.events("champion").find(|c| c["kernel"] == kernel).unwrap();
        (of["variant"].as_str().unwrap().to_string(), of["provisional"].as_bool().unwrap())
    };
    assert_eq!((stands("k"), stands("j")), (("V=1".into(), false), ("V=1".into(), true)));
    lab.project.build(&["--require-evidence"]).expect(103).says("evidence from a device was required");
    lab.project.build(&["--require-evidence", "--kernel", "k"]).expect(0);
    // A comment does not change the binary, and undoing the edit makes the evidence valid again.
    lab.project.edit("j.cu", "{ /* nothing yet */ }", "{} // as before");
    assert_eq!(asked(&lab.built(&["--require-evidence"])), ids(&[]));
}

#[test]
fn a_step_that_is_skipped_lacks_evidence_for_the_reason_of_its_cause() {
    let builtin = "reference = { builtin = \"elementwise\", y = \"2 * x + 1\" }";
    let lab = Lab::new(&machine()).manifest(builtin, "reference = \"ref.py::twice\"");
    lab.project.write("ref.py", "def twice(x, n):\n    return 2 * x + 1\n");
    let project = lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", "/nowhere");
    let built = project.build(&["--require-evidence"]).expect(103);
    let said = built.stderr();
    // Each step waits for another oracle, and all oracles wait for Python.
    assert!(!said.contains("skipped: "), "{said}");
    assert!(said.contains(" steps: ") && said.matches("/nowhere").count() == 1, "{said}");
}

#[test]
fn a_target_that_names_a_product_takes_its_evidence_only() {
    let lab = Lab::new(&machine()).manifest("arch = \"sm_90a\"", "arch = \"sm_90a\"\ndevice = \"Virtual H\"");
    lab.built(&[]);
    lab.on(&Machine { device: Some(("Virtual X", "580.1")), ..machine() });
    let built = lab.built(&["--require-evidence"]);
    assert_eq!((built.count("executed"), champion(&built).0), (0, "V=1".into()));
    lab.project.write("k.cu", "template <int V> __global__ void k(const float *x, float *y, int n) { return; }\n");
    let built = lab.built(&[]);
    let step = built.finished().find(|s| s["kind"] == "bench").unwrap();
    let why = "no Virtual H here, only Virtual X, and no evidence from one";
    assert_eq!(step["outcome"], serde_json::json!({ "unavailable": why }));
}

#[test]
fn a_target_that_names_none_asks_the_device_that_is_here() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    let records = lab.records();
    let other =
        Machine { device: Some(("Virtual X", "580.1")), ..Machine::with(&[(1, 3000.0), (2, 2000.0), (4, 1000.0)]) };
    lab.on(&other);
    let built = lab.built(&[]);
    assert_eq!((asked(&built).len(), lab.records()), (12, records + 13), "another product knows nothing of this one");
    assert_eq!(champion(&built).0, "V=4");
    // Now two products have answered, and without a device neither answer counts.
    lab.on(&without(&machine()));
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=1".into(), true));
    assert_eq!(steps(&built, "bench", "unavailable").len(), 3);
    // The answers of the first machine still exist.
    lab.on(&machine());
    let built = lab.built(&[]);
    assert_eq!((asked(&built), champion(&built)), (ids(&[]), ("V=1".into(), false)));
}

#[test]
fn a_verification_outlives_a_driver_and_a_timing_does_not() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    lab.on(&Machine { device: Some(("Virtual H", "580.2")), ..machine() });
    assert_eq!(asked(&lab.built(&[])), ids(&[]), "a minor release changes nothing");
    let newer =
        Machine { device: Some(("Virtual H", "590.1")), ..Machine::with(&[(1, 1500.0), (2, 1000.0), (4, 1500.0)]) };
    lab.on(&newer);
    let built = lab.built(&[]);
    let benches = ["p/k/V=1/h/big/bench", "p/k/V=2/h/big/bench", "p/k/V=4/h/big/bench"];
    let champions = ["p/k/V=2/h/big/profile", "p/k/V=2/h/big/confirmed/verify", "p/k/V=2/h/tiny/confirmed/verify"];
    assert_eq!(asked(&built), ids(&[&benches[..], &champions].concat()));
    assert_eq!(champion(&built).0, "V=2");
    lab.on(&without(&machine()));
    let built = lab.built(&["--require-evidence"]);
    assert_eq!(champion(&built).0, "V=2", "the newer driver speaks where no device is here");
    lab.on(&machine());
    assert_eq!(champion(&lab.built(&[])).0, "V=1", "and the older one where it is");
}

#[test]
fn a_machine_with_no_scenario_at_all_is_answered_by_evidence() {
    let lab = Lab::new(&machine());
    let first = lab.built(&[]);
    let bare = lab.project.clone().var("KFORGE_VIRTUAL_DEVICE", "");
    let built = bare.built(&["--require-evidence"]);
    assert_eq!((built.count("executed"), champion(&built)), (0, champion(&first)));
}

#[test]
fn code_for_another_architecture_finds_no_device() {
    let lab = Lab::new(&machine()).manifest("sm_90a", "sm_100a");
    let built = lab.built(&[]);
    let step = built.finished().find(|s| s["kind"] == "verify").unwrap();
    let why = "no device of architecture sm_100a here, only Virtual H, and no evidence from one";
    assert_eq!(step["outcome"], serde_json::json!({ "unavailable": why }));
    assert_eq!(champion(&built), ("V=1".into(), true));
}

#[test]
fn a_kernel_that_knows_the_fixed_inputs_fails_by_those_that_were_drawn() {
    let lab = Lab::new(&machine().first("^k<1>", "ns = 100.0\nfresh-error = 1.0"));
    let built = lab.project.build(&["--keep-going"]).expect(100);
    let failed: Vec<String> = built
        .finished()
        .filter(|s| s["kind"] == "judge" && s["verdict"]["fail"].is_string())
        .map(crate::project::id)
        .collect();
    assert!(!failed.is_empty() && failed.iter().all(|id| id.contains("/V=1/")), "{failed:?}");
    let explained = built.stderr().to_string();
    assert!(explained.contains("these inputs were drawn for this verification only; `seeds = ["), "{explained}");
    assert_eq!(champion(&built), ("V=2".into(), false));
}

#[test]
fn evidence_without_fresh_trials_still_answers_and_the_report_says_so() {
    let old = Machine::default().rule("^k<", "ns = 1000.0\nno-fresh = true");
    let lab = Lab::new(&old);
    let first = lab.built(&[]);
    lab.on(&without(&machine()));
    let second = lab.built(&["--require-evidence"]);
    assert_eq!((second.count("executed"), second.keys()), (0, first.keys()));
    let shape = |lab: &Lab| {
        let shape = lab.target()["shapes"][0].clone();
        assert_eq!(shape["verdict"], "pass");
        shape["no_fresh"].as_str().map(str::to_string)
    };
    assert_eq!(shape(&lab).as_deref(), Some("the kforge that observed it ran none"));
    let lab = Lab::new(&machine());
    lab.built(&[]);
    assert_eq!(shape(&lab), None);
}
