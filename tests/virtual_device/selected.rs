//! The selection of a champion with evidence of a device: the fastest by more than the margin, else the pinned one, else the first, with any noise.

use std::collections::BTreeSet;

use kforge::workspace::lockfile::{Lockfile, Pin, Seat};

use crate::lab::{Lab, Machine, champion, steps};
use crate::project::ids;

fn pin(lab: &Lab, variant: &str) {
    let mut lock = Lockfile::read(lab.project.root()).unwrap();
    let part = |text: &str| text.to_string();
    let seat =
        Seat { package: part("p"), kernel: part("k"), types: String::new(), target: part("h"), class: part("all") };
    lock.champions.insert(seat, Pin::Variant(variant.into()));
    lock.write(lab.project.root(), false).unwrap();
}

#[test]
fn the_fastest_by_far_stands_by_evidence_and_needs_no_pairs() {
    let lab = Lab::new(&Machine::with(&[(1, 1400.0), (2, 1000.0), (4, 1200.0)]));
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=2".into(), false));
    assert_eq!(lab.target()["champions"][0]["because"], "faster than every other by more than the margin");
    assert_eq!(steps(&built, "pairs", "executed"), ids(&[]));
    assert_eq!(
        lab.records(),
        6 + 2 + 3 + 1 + 1,
        "verifications, confirmations, benches, the profile of the champion and the device's peaks"
    );
    assert_eq!(lab.target()["variants"], serde_json::json!([3, 3, 0]));
}

#[test]
fn without_a_device_the_first_is_provisional_and_nothing_is_paired() {
    let machine = Machine { device: None, ..Machine::default() };
    let lab = Lab::new(&machine);
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=1".into(), true));
    assert_eq!(steps(&built, "bench", "unavailable").len(), 3);
    assert!(built.finished().all(|s| s["kind"] != "pairs"));
    assert_eq!(steps(&built, "select", "executed"), ids(&["p/k/h/nominate/select", "p/k/h/select"]));
}

#[test]
fn pairs_decide_where_clocks_drift_between_benches() {
    let machine = Machine { noise: 0.004, drift: 0.015, ..Machine::with(&[(1, 1030.0), (2, 1000.0), (4, 1004.0)]) };
    let mut best = BTreeSet::new();
    for seed in 0..6 {
        let lab = Lab::new(&Machine { seed, ..machine.clone() });
        let built = lab.built(&[]);
        assert_eq!(champion(&built), ("V=2".into(), false), "seed {seed}");
        assert!(!steps(&built, "pairs", "executed").is_empty(), "seed {seed}");
        best.insert(lab.fastest());
    }
    assert!(best.len() > 1, "medians alone would have flipped: {best:?}");
}

#[test]
#[ignore = "second tier: many builds"]
fn noise_flips_no_champion_over_rebuilds() {
    let machine = Machine { noise: 0.02, drift: 0.01, ..Machine::with(&[(1, 1002.0), (2, 1000.0), (4, 1003.0)]) };
    let lab = Lab::new(&machine);
    lab.built(&[]);
    let mut records = lab.records();
    for n in 2..8 {
        lab.on(&Machine { seed: u64::from(n), day: n, ..machine.clone() });
        let built = lab.built(&["--remeasure"]);
        assert_eq!(champion(&built), ("V=1".into(), false), "seed {n}");
        assert_eq!(steps(&built, "bench", "executed").len(), 3, "all are measured again");
        let step = built.finished().find(|s| s["kind"] == "bench").unwrap();
        assert_eq!(step["why"]["code"], "remeasure");
        assert_eq!(step["evidence"]["measured_at"], format!("2026-01-{n:02}T00:00:00Z"), "the newest record answers");
        let now = lab.records();
        assert!(now >= records + 9, "records are added: {records}, then {now}");
        records = now;
    }
    let built = lab.built(&[]);
    assert_eq!((built.count("executed"), champion(&built).0), (0, "V=1".into()));
}

/// The kinds of steps that another champion needs if everything is known of it except its distance from a peak.
const PINNED: [&str; 6] = ["inspect", "judge", "profile", "roofline", "select", "verify"];

#[test]
#[ignore = "second tier: many builds"]
fn a_pin_holds_among_equals_and_not_against_a_faster_one() {
    let equal = Machine { noise: 0.02, drift: 0.01, ..Machine::with(&[(1, 1001.0), (2, 1000.0), (4, 1002.0)]) };
    let lab = Lab::new(&equal);
    assert_eq!(champion(&lab.built(&[])).0, "V=1");
    pin(&lab, "V=4");
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=4".into(), false));
    assert_eq!(built.executed_kinds().into_keys().collect::<Vec<_>>(), PINNED, "a pin times nothing");
    for n in 2..5 {
        lab.on(&Machine { seed: u64::from(n), day: n, ..equal.clone() });
        assert_eq!(champion(&lab.built(&["--remeasure"])).0, "V=4", "seed {n}");
    }
    lab.on(&Machine { day: 9, ..Machine::with(&[(1, 1001.0), (2, 1000.0), (4, 1100.0)]) });
    assert_eq!(champion(&lab.built(&["--remeasure"])).0, "V=1");
}

#[test]
fn the_margin_is_one_per_cent() {
    for (first, wins) in [(1005.0, "V=1"), (1025.0, "V=2")] {
        let machine = Machine { noise: 0.003, ..Machine::with(&[(1, first), (2, 1000.0), (4, 2000.0)]) };
        assert_eq!(champion(&Lab::new(&machine).built(&[])).0, wins, "{first}");
    }
}

#[test]
fn who_has_no_sample_left_is_not_timed() {
    let machine = Machine::with(&[(1, 1400.0), (4, 1200.0)]).rule("^k<2>", "ns = 1000.0\nthrottled = 1.0");
    let lab = Lab::new(&machine);
    assert_eq!(champion(&lab.built(&[])), ("V=4".into(), false));
}

#[test]
fn what_is_wrong_on_the_device_is_never_champion_and_is_told_again() {
    let times = Machine::with(&[(1, 1400.0), (4, 1200.0)]);
    for (fault, says) in
        [("error = 1.0", "`y` is wrong at 0: got 2, want 1"), ("fault = \"crash\"", "illegal memory access")]
    {
        let lab = Lab::new(&times.clone().first("^k<2>", &format!("ns = 100.0\n{fault}")));
        let built = lab.project.build(&["--keep-going"]).expect(100).says(says);
        assert_eq!(champion(&built).0, "V=4", "{fault}");
        let again = lab.project.build(&["--keep-going"]).expect(100).says(says);
        assert_eq!(again.count("executed"), 0, "{fault}");
    }
}
