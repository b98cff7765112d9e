//! `kforge verify-artifact --rebuild` of an artifact with several classes, and `--rerun`: whether the evidence of an artifact holds on a device that is here.

use std::fs;

use kforge::release::artifact::KERNELS;
use serde_json::Value;

use crate::lab::{Lab, Machine};
use crate::packaged::{ARCHIVE, files, licensed, machine, run};

#[test]
#[ignore = "second tier: many builds"]
fn a_rebuild_asks_only_for_the_shapes_at_which_a_variant_is_champion() {
    let machine = machine().first("^k<4> grid 100,", "ns = 2000.0").first("^k<1> grid 90,", "ns = 2000.0");
    let lab = licensed().manifest("source = \"k.cu\"", "source = \"k.cu\"\nselect = { per = \"shape\" }");
    let lab = lab.manifest("shapes.tiny = { n = 10 }", "shapes.tiny = { n = 90, role = \"bench\" }");
    lab.on(&machine);
    lab.built(&[]);
    run(&lab, &["package"], 0);
    let document: Value = serde_json::from_slice(&files(&lab)[KERNELS]).unwrap();
    let champions: Vec<&Value> =
        document["kernels"][0]["shapes"].as_array().unwrap().iter().map(|shape| &shape["variant"]).collect();
    assert_eq!(champions, ["V=4", "V=1"]);
    lab.on(&Machine { device: None, ..machine });
    let path = lab.project.root().join(ARCHIVE);
    // A relative path is one of the folder that the command runs in, not of the artifact.
    fs::write(lab.project.root().join("trusted"), "# nobody\n").unwrap();
    let words = ["verify-artifact", path.to_str().unwrap(), "--allow-untrusted", "--trust", "trusted", "--rebuild"];
    let said = run(&lab, &words, 0);
    assert!(said.contains("Rebuilt 2 of 2 binaries with equal bytes"), "{said}");
}

/// An artifact without methods, and `verify-artifact --rerun` of it on a machine.
fn rerun(machine: &Machine, code: i32) -> String {
    rerun_of(licensed(), machine, code)
}

fn rerun_of(lab: Lab, machine: &Machine, code: i32) -> String {
    lab.on(&self::machine());
    lab.built(&[]);
    run(&lab, &["package"], 0);
    lab.on(machine);
    let path = lab.project.root().join(ARCHIVE);
    run(&lab, &["verify-artifact", path.to_str().unwrap(), "--allow-untrusted", "--rerun"], code)
}

#[test]
#[ignore = "second tier: packages and builds again"]
fn the_evidence_of_an_artifact_holds_on_the_device_it_is_of() {
    let said = rerun(&machine(), 0);
    assert!(said.contains("Reran on this machine: 2 of 2 shapes pass, 1 of 1 time hold"), "{said}");
    let faster = Machine::with(&[(4, 600.0), (1, 1400.0)]);
    rerun(&faster, 0);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_champion_that_is_slower_here_is_named_with_both_times() {
    let said = rerun(&Machine::with(&[(4, 1300.0), (1, 1400.0)]), 102);
    assert!(said.contains("`k` on h at big: it takes 1") && said.contains(" ns in the artifact"), "{said}");
}

#[test]
fn a_champion_that_is_wrong_here_is_named() {
    let said = rerun(&machine().first("^k<4>", "ns = 1000.0\nerror = 1.0"), 100);
    assert!(said.contains("p/k/h: "), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_verdict_that_is_unknown_here_is_missing_evidence_and_no_failure() {
    let packaged = |machine: &Machine, code| {
        rerun_of(
            licensed().manifest("source = \"k.cu\"", "source = \"k.cu\"\nselect = { per = \"n > 50\" }"),
            machine,
            code,
        )
    };
    // The class of `tiny` has no bench shape, so a champion stands for it that is not known to be correct.
    let said = packaged(&machine().first("grid 10,", "ns = 1000.0\nfault = \"not-launched\""), 103);
    assert!(
        said.contains("its champion is not verified on a device: shape `tiny`")
            && said.contains("the device starts no launch"),
        "{said}"
    );
    let said = packaged(
        &machine()
            .first("^k<4> grid 10,", "ns = 1000.0\nerror = 1.0")
            .first("^k<1> grid 10,", "ns = 1000.0\nerror = 1.0"),
        100,
    );
    assert!(said.contains("there is no champion"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn nothing_is_said_of_an_artifact_whose_device_is_not_here() {
    let said = rerun(&Machine { device: None, ..machine() }, 103);
    assert!(said.contains("Reran nothing on this machine: 2 shapes are unknown"), "{said}");
    assert!(said.contains("`k` on h: not run: it needs a device sm_90a, and this machine has none"), "{said}");
    assert!(!said.contains("0 of"), "{said}");
    let other = Machine { device: Some(("NVIDIA H100 80GB HBM3", "580.10")), ..machine() };
    let said = rerun(&other, 103);
    assert!(said.contains("the times are not compared"), "{said}");
}
