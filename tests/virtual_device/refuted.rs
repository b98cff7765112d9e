//! A champion that is found wrong while it is timed beside a baseline is a wrong kernel: the build fails, and reports say where. Its other verdicts pass.

use std::fs;

use serde_json::Value;

use crate::baselined::{FAST, RULES, python, told};
use crate::in_torch;
use crate::lab::{Lab, Machine, steps};

const EAGER: &str = "\n[baseline.eager]\nsource = \"fast.py::twice\"\n";

/// A lab whose champion has this property, with a baseline beside it.
fn lab(says: &str) -> Option<Lab> {
    let machine = Machine { noise: 0.0, ..Machine::with(&[(1, 2000.0), (4, 1500.0)]) };
    let lab = Lab::new(&machine.first("^k<2>", &format!("ns = 1000.0\n{says}")));
    baselined(&lab);
    let python = python(&lab, "2.11.0")?;
    Some(Lab { project: lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", python), ..lab })
}

/// Adds a baseline to the package, and what it takes to the scenario.
fn baselined(lab: &Lab) {
    let scenario = fs::read_to_string(&lab.scenario).unwrap();
    fs::write(&lab.scenario, scenario + RULES).unwrap();
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{EAGER}"));
    lab.project.write("fast.py", FAST);
}

fn big(target: &Value) -> Value {
    target["shapes"].as_array().unwrap().iter().find(|shape| shape["shape"] == "big").unwrap().clone()
}

#[test]
fn a_champion_that_is_wrong_beside_a_baseline_fails_although_its_other_verdicts_pass() {
    let Some(lab) = lab("beside-error = 1.0") else { return };
    let built = lab.project.build(&[]).expect(100);
    let judge = "p/k/V=2/h/big/against/eager/launched/judge";
    let why = "timed beside a baseline: `y` differs from its value before the timing";
    assert_eq!(built.step(judge)["verdict"]["fail"], why);
    for passes in ["p/k/V=2/h/big/judge", "p/k/V=2/h/big/confirmed/judge"] {
        assert_eq!(built.step(passes)["verdict"], "pass", "{passes}");
    }
    let target = lab.target();
    assert_eq!(big(&target)["verdict"]["fail"], why, "{target}");
    let rating = &target["baselines"][0]["rating"];
    assert!(rating["ratio"].is_null() && rating["champion_wrong"] == why, "{rating}");
    let text = told(&lab, &["report"], 0);
    assert!(text.contains(why) && text.contains("the champion is wrong beside it"), "{text}");
    let score = told(&lab, &["report", "--score", "speedup", "--baseline", "eager"], 0);
    assert!(!score.contains("3.000"), "{score}");
    // Nothing runs again, and the verdict stays.
    let again = lab.project.build(&[]).expect(100);
    assert_eq!(again.count("executed"), 0);
    // Where it is correct, no such step exists.
    lab.on(&Machine { day: 2, ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]) });
    let scenario = fs::read_to_string(&lab.scenario).unwrap();
    fs::write(&lab.scenario, scenario + RULES).unwrap();
    let right = lab.built(&["--remeasure"]);
    assert!(!steps(&right, "judge", "executed").contains(judge));
    assert_eq!(big(&lab.target())["verdict"], "pass");
}

#[test]
fn a_champion_that_is_wrong_beside_a_baseline_is_neither_packed_nor_pinned() {
    let Some(lab) = lab("beside-error = 1.0") else { return };
    let lab = lab.manifest("version = \"0.1.0\"", "version = \"0.1.0\"\nlicense = \"MIT\"");
    let cuda = lab.project.root().join("cuda").display().to_string();
    let lab = lab.manifest("path = \"cuda\"", &format!("path = \"{cuda}\""));
    lab.project.build(&[]).expect(100);
    let why = "shape `big`: timed beside a baseline: `y` differs from its value before the timing";
    let said = told(&lab, &["package", "--offline", "--allow-claimed"], 100);
    assert!(said.contains(why), "{said}");
    assert!(!lab.project.root().join("target/kforge/package").exists());
    told(&lab, &["update", "--champions"], 0);
    let locked = || fs::read_to_string(lab.project.root().join("kforge.lock")).unwrap_or_default();
    assert!(!locked().contains("V=2"), "{}", locked());
    // Where it is correct, it is both.
    lab.on(&Machine { day: 2, ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]) });
    let scenario = fs::read_to_string(&lab.scenario).unwrap();
    fs::write(&lab.scenario, scenario + RULES).unwrap();
    lab.built(&["--remeasure"]);
    told(&lab, &["update", "--champions"], 0);
    assert!(locked().contains("V=2"), "{}", locked());
    told(&lab, &["package", "--offline", "--allow-claimed"], 0);
}

#[test]
fn a_champion_that_is_wrong_beside_a_baseline_on_a_second_device_only_fails() {
    let Some(lab) = lab("") else { return };
    let mut machine = Machine { noise: 0.0, ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]) };
    machine.more = vec![("Virtual H", "580.1")];
    lab.on(&machine);
    let rule = "[[baseline]]\nmatches = '^eager fast.py::twice'\nns = 5000.0\ncall-ns = 9000.0\nspoils-second = true\n";
    let scenario = fs::read_to_string(&lab.scenario).unwrap();
    fs::write(&lab.scenario, scenario + rule).unwrap();
    let built = lab.project.build(&[]).expect(100);
    let why = "timed beside a baseline: `y` differs from its value before the timing";
    assert_eq!(built.step("p/k/V=2/h/big/against/eager/second/launched/judge")["verdict"]["fail"], why);
    let target = lab.target();
    assert_eq!(big(&target)["verdict"]["fail"], why, "{target}");
    let found = &target["baselines"][0];
    assert!((found["rating"]["ratio"]["median"].as_f64().unwrap() - 5.0).abs() < 1e-9, "the first stands: {found}");
    let unconfirmed = &found["confirmation"]["unconfirmed"]["why"];
    assert_eq!(unconfirmed, &format!("on a second device the champion is wrong: {why}"), "{found}");
}

#[test]
fn a_kernel_in_pytorch_that_is_wrong_beside_a_baseline_fails() {
    let Some(lab) = in_torch::lab(in_torch::machine("ns = 1000.0\nbeside-error = 1.0")) else { return };
    baselined(&lab);
    let built = lab.project.build(&["--keep-going"]).expect(100);
    let judge = built.step("p/fast/h/big/against/eager/called/judge");
    let why = judge["verdict"]["fail"].as_str().unwrap().to_string();
    assert!(why.starts_with("when its calls are timed: `y` is wrong at "), "{why}");
    assert_eq!(built.step("p/fast/h/big/confirmed/judge")["verdict"], "pass");
    let target = in_torch::target(&lab);
    assert_eq!(big(&target)["verdict"]["fail"], why.as_str(), "{target}");
    assert!(target["baselines"][0]["rating"]["ratio"].is_null(), "{target}");
}
