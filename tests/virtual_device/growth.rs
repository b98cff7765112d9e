//! The plan grows by results in readable steps, and a second build finds all of it done without using a device.

use std::collections::BTreeSet;

use crate::lab::{Lab, Machine, SOURCE, champion, paired, steps};
use crate::project::{Built, id, ids};

fn all(built: &Built) -> BTreeSet<String> {
    built.finished().map(id).collect()
}

#[test]
fn the_plan_grows_by_pairs_then_the_decision_then_the_champion() {
    // Without noise, V=2 is the best by medians, and V=1 is close enough.
    let lab = Lab::new(&Machine { noise: 0.0, ..Machine::with(&[(1, 1004.0), (2, 1000.0), (4, 1060.0)]) });
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=1".into(), false));
    let grown = all(&built);
    let late: BTreeSet<String> =
        grown.iter().filter(|id| ["pairs", "select", "sass"].iter().any(|part| id.contains(part))).cloned().collect();
    assert_eq!(paired(&built, "executed"), ids(&["big: V=1, V=2"]));
    let pairs = steps(&built, "pairs", "executed").pop_first().unwrap();
    let pairs = pairs.as_str();
    assert_eq!(late, ids(&["p/k/h/nominate/select", pairs, "p/k/h/select", "p/k/V=1/h/sass/inspect"]));
    let when = |id: &str| built.finished().position(|s| s["id"] == id).unwrap();
    assert!(when("p/k/h/nominate/select") < when(pairs) && when(pairs) < when("p/k/h/select"));
    // The same on a machine that can answer nothing: no step asks it.
    lab.on(&Machine::default());
    let again = lab.built(&["-j1"]);
    assert_eq!((again.count("executed"), again.count("fresh")), (0, grown.len() as u64));
    assert_eq!((all(&again), again.keys()), (grown, built.keys()));
}

#[test]
fn a_dry_run_before_anything_is_known_names_no_step_that_does_not_come() {
    let lab = Lab::new(&Machine::with(&[(1, 1004.0), (2, 1000.0), (4, 1060.0)]));
    let (will, may) = lab.project.dry_run();
    let built = lab.built(&[]);
    assert!(will.is_subset(&built.executed()), "{:?}", will.difference(&built.executed()).collect::<Vec<_>>());
    assert!(may.is_subset(&all(&built)));
    assert_eq!(lab.project.dry_run(), (BTreeSet::new(), BTreeSet::new()));
}

#[test]
fn one_variant_needs_no_nomination_and_each_class_of_shapes_pairs_its_own() {
    let alone = Lab::new(&Machine::with(&[(4, 1000.0)])).manifest("[1, 2, 4]", "[4]");
    assert_eq!(steps(&alone.built(&[]), "select", "executed"), ids(&["p/k/h/select"]));

    let machine = Machine { noise: 0.0, ..Machine::default() }
        .rule("^k<1> grid 100,", "ns = 1003.0")
        .rule("^k<2> grid 200,", "ns = 1003.0")
        .rule("^k<4>", "ns = 3000.0")
        .rule("", "ns = 1000.0");
    let lab = Lab::new(&machine)
        .manifest("role = \"bench\" }", "role = \"bench\" }\nshapes.large = { n = 200, role = \"bench\" }")
        .manifest("tune.V", "select = { per = \"n\" }\ntune.V");
    let built = lab.built(&[]);
    assert_eq!(paired(&built, "executed"), ids(&["big: V=1, V=2", "large: V=1, V=2"]));
    let champions = lab.target()["champions"].as_array().unwrap().clone();
    let of = |c: &serde_json::Value| format!("{}: {} {}", c["class"], c["variant"], c["provisional"]);
    assert_eq!(
        champions.iter().map(of).collect::<Vec<_>>(),
        [r#""10": "V=1" true"#, r#""100": "V=1" false"#, r#""200": "V=1" false"#]
    );
}

#[test]
fn names_of_kernels_and_shapes_are_in_no_key_of_what_is_asked_of_a_device() {
    let lab = Lab::new(&Machine::with(&[(1, 1004.0), (2, 1000.0), (4, 1060.0)]));
    lab.built(&[]);
    let records = lab.records();
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let renamed = manifest.replace("shapes.big", "shapes.wide").replace("kernel.k]", "kernel.other]");
    lab.project.write("kernel.toml", &renamed.replace("targets.h]", "targets.gpu]").replace("[\"h\"]", "[\"gpu\"]"));
    lab.project.write("k.cu", &format!("// A comment.\n{SOURCE}"));
    let built = lab.built(&[]);
    assert_eq!(built.executed_kinds().into_keys().collect::<Vec<_>>(), ["compile", "generate"]);
    assert_eq!(lab.records(), records);
}
