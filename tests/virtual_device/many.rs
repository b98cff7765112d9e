//! Spaces with more variants than are timed in full: a few samples of each, and full timings of only those that may be the fastest.

use std::collections::BTreeSet;
use std::fs;

use kforge::base::Digest;
use serde_json::Value;

use crate::lab::{Lab, Machine, champion, steps};
use crate::project::Built;

/// The values of the tunable; the first one is the best.
const VALUES: [u32; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

/// A machine on which each value takes this many percent longer than the one before.
fn machine(per_cent: f64) -> Machine {
    let ns = |v: u32| 20_000.0 * (1.0 + per_cent / 100.0).powi(v as i32 - 1);
    let machine = Machine { noise: 0.002, ..Machine::default() };
    // The patterns cannot match a longer number: `^k<1>` does not match `k<11>`. Rules are read in order.
    VALUES.iter().fold(machine, |machine, v| machine.rule(&format!("^k<{v}>"), &format!("ns = {:.1}", ns(*v))))
}

fn lab(machine: &Machine) -> Lab {
    Lab::new(machine).manifest("tune.V = [1, 2, 4]", &format!("tune.V = {VALUES:?}"))
}

/// Benches with few samples, and full ones.
fn timed(ids: BTreeSet<String>) -> (BTreeSet<String>, BTreeSet<String>) {
    ids.into_iter().partition(|id| id.ends_with("/few/bench"))
}

fn full(values: &[u32]) -> BTreeSet<String> {
    values.iter().map(|v| format!("p/k/V={v}/h/big/bench")).collect()
}

#[test]
fn of_many_variants_those_near_the_best_alone_are_timed_in_full() {
    let lab = lab(&machine(6.0));
    let built = lab.built(&[]);
    let (few, in_full) = timed(steps(&built, "bench", "executed"));
    assert_eq!((few.len(), in_full), (12, full(&[1, 2])));
    assert_eq!(champion(&built), ("V=1".into(), false));
    let times = lab.target()["times"].as_array().unwrap().clone();
    let few: BTreeSet<String> = times.iter().filter(|t| t["few"] == true).map(|t| t["variant"].to_string()).collect();
    assert_eq!((times.len(), few.len()), (12, 10), "each once, and those of few samples say so: {times:?}");
    let again = lab.built(&[]);
    assert_eq!((again.count("executed"), champion(&again).0), (0, "V=1".into()));
    assert_eq!(lab.project.dry_run(), (BTreeSet::new(), BTreeSet::new()));
    let field = |fields: &Value, part: &str| fields.as_array().unwrap().iter().any(|f| f.to_string().contains(part));
    let explained = lab.project.explain("p/k/h/finals-0/select");
    assert!(field(&explained["fields"], "params.finals.within") && field(&explained["fields"], "inputs.few:"));
}

#[test]
fn a_variant_is_timed_once_it_is_verified() {
    let built = lab(&machine(6.0)).built(&[]);
    let ms = |id: &str, field: &str| built.step(id)[field].as_u64().unwrap();
    for v in VALUES {
        let (verify, few) = (format!("p/k/V={v}/h/big/verify"), format!("p/k/V={v}/h/big/few/bench"));
        assert!(ms(&verify, "started_ms") + ms(&verify, "duration_ms") <= ms(&few, "started_ms"), "{v}");
    }
}

#[test]
fn who_is_found_out_when_timed_in_full_hides_nobody() {
    let evades = "ns = 100.0\nfault = \"evades\"";
    let lab = lab(&machine(6.0).first("^k<12>", evades).first("^k<11>", evades));
    let built = lab.project.build(&["--keep-going"]);
    let (few, in_full) = timed(steps(&built, "bench", "executed"));
    assert_eq!((few.len(), in_full), (12, full(&[1, 2, 11, 12])));
    assert_eq!(champion(&built), ("V=1".into(), false));
}

#[test]
fn who_is_named_and_never_timed_in_full_keeps_no_build_from_its_end() {
    let lab = lab(&machine(6.0));
    let built = lab.built(&[]);
    // A machine without a device gets all records except the full timings, which it cannot measure.
    let laptop = lab.anew("laptop");
    lab.give_evidence(&laptop);
    for id in full(&[1, 2]) {
        let key: Digest = serde_json::from_value(built.step(&id)["key"].clone()).unwrap();
        fs::remove_dir_all(laptop.project.home().join("evidence").join(key.hex())).unwrap();
    }
    laptop.on(&Machine { device: None, ..Machine::default() });
    let built = laptop.built(&[]);
    assert_eq!(timed(steps(&built, "bench", "unavailable")).1, full(&VALUES));
    assert_eq!(champion(&built), ("V=1".into(), true), "nobody is more than provisional without a full timing");
}

#[test]
fn few_variants_are_all_timed_in_full() {
    let lab = lab(&machine(6.0)).manifest(", 9, 10, 11, 12]", "]");
    let (few, in_full) = timed(steps(&lab.built(&[]), "bench", "executed"));
    assert_eq!((few.len(), in_full.len()), (0, 8));
}

#[test]
fn who_asks_for_times_gets_full_ones() {
    let lab = lab(&machine(6.0));
    let output = lab.project.command(&["bench", "--offline", "--message-format", "json"]).output().unwrap();
    let built = Built::of(&output).expect(0);
    let (few, in_full) = timed(steps(&built, "bench", "executed"));
    assert_eq!((few.len(), in_full.len()), (0, 12));
}
