//! Variants that never end: one time-out costs a variant its build, and no other.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::lab::{Lab, Machine, champion};
use crate::project::Built;

const SHAPES: [&str; 4] = ["tiny", "small", "middle", "big"];

/// A kernel of three variants at four shapes; the second variant never ends.
fn lab() -> Lab {
    let machine = Machine::with(&[(1, 1400.0), (4, 1200.0)]).first("^k<2>", "fault = \"time-out\"");
    Lab::new(&machine).manifest(
        "shapes.tiny = { n = 10 }",
        "shapes.tiny = { n = 10 }\nshapes.small = { n = 20 }\nshapes.middle = { n = 30 }",
    )
}

/// The verdicts on the variant that hangs, by shape.
fn verdicts(built: &Built) -> BTreeMap<&'static str, Value> {
    SHAPES.map(|shape| (shape, built.step(&format!("p/k/V=2/h/{shape}/judge"))["verdict"].clone())).into()
}

#[test]
fn a_variant_that_timed_out_is_not_launched_at_other_shapes() {
    let lab = lab();
    let built = lab.project.build(&["--keep-going", "--jobs", "1"]).expect(100).says("timed out");
    let verdicts = verdicts(&built);
    let failed: Vec<&str> =
        verdicts.iter().filter(|(_, verdict)| verdict["fail"].is_string()).map(|(s, _)| *s).collect();
    // Two steps at a time are at work for a device, so two may have been launched before the first has timed out.
    assert!((1..=2).contains(&failed.len()), "{verdicts:?}");
    for (shape, verdict) in verdicts.iter().filter(|(shape, _)| !failed.contains(shape)) {
        let why = verdict["unknown"]["missing"].as_str().unwrap_or_default();
        let named = failed.iter().any(|failed| why.ends_with(&format!("the variant timed out at shape `{failed}`")));
        assert!(named && why.starts_with("not launched"), "{shape}: {verdict}");
    }
    // The other variants are unharmed, and the rest of the build goes on.
    assert_eq!(champion(&built), ("V=4".into(), false));
    for shape in SHAPES {
        assert_eq!(built.step(&format!("p/k/V=1/h/{shape}/judge"))["verdict"], "pass");
    }
}

#[test]
fn another_build_asks_again() {
    let lab = lab();
    lab.project.build(&["--keep-going"]).expect(100);
    let again = lab.project.build(&["--keep-going"]).expect(100).says("timed out");
    let asked: Vec<String> = SHAPES.map(|shape| format!("p/k/V=2/h/{shape}/verify")).into();
    assert!(asked.iter().all(|id| again.executed().contains(id)), "{:?}", again.executed());
    assert!(!again.executed().iter().any(|id| id.starts_with("p/k/V=1/")), "{:?}", again.executed());
    // Nothing of a time-out is kept: where the variant ends, it is verified at all shapes.
    lab.on(&Machine::with(&[(1, 1400.0), (2, 1000.0), (4, 1200.0)]));
    assert_eq!(champion(&lab.built(&[])), ("V=2".into(), false));
}
