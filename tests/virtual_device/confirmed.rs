//! The confirmation of a champion: its verification in a process that ran no other kernel, and launches on inputs of a stress class while it is timed.

use serde_json::Value;

use crate::lab::{Lab, Machine, champion, steps};
use crate::project::Built;

const CONFIRMED: [&str; 2] = ["p/k/V=2/h/big/confirmed/judge", "p/k/V=2/h/tiny/confirmed/judge"];

/// A machine on which the second of three variants is the fastest and has these properties.
fn machine(says: &str) -> Machine {
    Machine::with(&[(1, 90_000.0), (4, 80_000.0)]).rule("^k<2>", &format!("ns = 50000.0\n{says}"))
}

fn shape(lab: &Lab, name: &str) -> Value {
    let shapes = lab.target()["shapes"].as_array().unwrap().clone();
    shapes.into_iter().find(|shape| shape["shape"] == name).unwrap()
}

/// The report as text.
fn told(lab: &Lab) -> String {
    told_with(lab, &["report"])
}

fn told_with(lab: &Lab, words: &[&str]) -> String {
    let output = lab.project.command(words).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_champion_is_confirmed_at_each_shape_and_only_once() {
    let lab = Lab::new(&machine(""));
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=2".into(), false));
    for step in CONFIRMED {
        assert_eq!(built.step(step)["verdict"], "pass", "{}", built.step(step));
    }
    let verified = steps(&built, "verify", "executed");
    assert_eq!(verified.iter().filter(|id| id.contains("/confirmed/")).count(), 2, "{verified:?}");
    assert_eq!(shape(&lab, "big")["confirmed"], true);
    let again = lab.built(&[]);
    assert!(steps(&again, "verify", "executed").is_empty());
}

#[test]
fn a_champion_that_passes_only_after_another_candidate_fails_and_says_where() {
    let lab = Lab::new(&machine("isolated-error = 1.0"));
    let built = lab.project.build(&[]).expect(100);
    assert_eq!(champion(&built), ("V=2".into(), false));
    let why = built.step(CONFIRMED[0])["verdict"]["fail"].as_str().unwrap_or_default().to_string();
    assert!(why.starts_with("in a process that ran no other kernel: `y` is wrong at "), "{why}");
    assert_eq!(built.step("p/k/V=2/h/big/judge")["verdict"], "pass");
    let shown = shape(&lab, "big");
    assert_eq!(shown["verdict"]["fail"].as_str(), Some(why.as_str()), "{shown}");
}

#[test]
fn a_champion_whose_confirmation_fails_is_not_accepted() {
    let lab = Lab::new(&machine("isolated-error = 1.0"));
    lab.project.build(&[]).expect(100);
    let lock = || std::fs::read_to_string(lab.project.root().join("kforge.lock")).unwrap_or_default();
    let before = lock();
    let refused = Built::last_of(&lab.project.command(&["accept", "k"]).output().unwrap());
    let why = refused.stderr();
    assert!(refused.code() != 0 && why.contains("is not verified: shape `"), "{why}");
    assert!(why.contains("in a process that ran no other kernel"), "{why}");
    assert_eq!(lock(), before);
    // Nothing else keeps it from being accepted.
    let other = lab.anew("other");
    other.on(&machine(""));
    other.built(&[]);
    Built::last_of(&other.project.command(&["accept", "k"]).output().unwrap()).expect(0).says("in kforge.lock");
}

#[test]
fn a_champion_that_is_careless_while_it_is_timed_fails_and_names_the_class() {
    let lab = Lab::new(&machine("stress-error = 0.0001"));
    let built = lab.project.build(&[]).expect(100);
    let why = built.step(CONFIRMED[0])["verdict"]["fail"].as_str().unwrap_or_default().to_string();
    assert!(why.starts_with("when it is timed on inputs of the stress class `tiny`: `y` is wrong at "), "{why}");
    // At a shape that is not timed there is nothing to say.
    assert_eq!(built.step(CONFIRMED[1])["verdict"], "pass");
    // Another tolerance permits the error: nothing runs again.
    lab.project.edit("kernel.toml", "atol = 1e-6", "atol = 1e-3");
    let built = lab.built(&[]);
    assert!(steps(&built, "bench", "executed").is_empty() && steps(&built, "verify", "executed").is_empty());
    assert_eq!(built.step(CONFIRMED[0])["verdict"], "pass");
}

#[test]
fn a_time_that_differs_by_class_is_reported_and_enters_no_median() {
    let lab = Lab::new(&machine("stress-ns = 90000.0"));
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=2".into(), false));
    let times = lab.target()["times"].as_array().unwrap().clone();
    let time = times.iter().find(|time| time["variant"] == "V=2").unwrap();
    assert!((time["cold_ns"].as_f64().unwrap() / 50_000.0 - 1.0).abs() < 0.02, "{time}");
    assert_eq!((&time["by_class"]["class"], &time["by_class"]["differs"]), (&"tiny".into(), &true.into()), "{time}");
    let said = "us on inputs of the class `tiny`, 49.";
    assert!(told(&lab).contains(said), "{}", told(&lab));
    // An ordinary kernel has no such line.
    let lab = Lab::new(&machine(""));
    lab.built(&[]);
    assert!(!told(&lab).contains("depends on the data"));
}

#[test]
fn a_champion_whose_confirmation_gives_nothing_is_marked_in_reports() {
    let lab = Lab::new(&machine("isolated-gone = true"));
    let built = lab.project.build(&[]);
    assert_eq!(champion(&built), ("V=2".into(), false));
    assert_eq!(shape(&lab, "big")["verdict"], "pass");
    assert_eq!(shape(&lab, "big")["confirmed"], Value::Null);
    let text = told(&lab);
    let after = text.split_once("champion: V=2").unwrap().1;
    assert_eq!(after.lines().nth(1).unwrap().trim(), "not confirmed: the device is gone", "{text}");
    assert_eq!(text.matches("not confirmed").count(), 1, "{text}");
    let markdown = told_with(&lab, &["report", "--format", "markdown"]);
    assert!(markdown.contains("; not confirmed: the device is gone |"), "{markdown}");
    // One that is confirmed has no such line, and neither has one that is known to be wrong.
    for (says, code) in [("", 0), ("isolated-error = 1.0", 100)] {
        let lab = Lab::new(&machine(says));
        lab.project.build(&[]).expect(code);
        let all = told(&lab) + &told_with(&lab, &["report", "--format", "markdown"]);
        assert!(all.contains("V=2") && !all.contains("not confirmed"), "{all}");
    }
    // A provisional champion that no device ever observed has nothing to confirm.
    let nowhere = Lab::new(&Machine { device: None, ..machine("") });
    nowhere.project.build(&[]);
    assert!(!told(&nowhere).contains("not confirmed"), "{}", told(&nowhere));
}

#[test]
fn without_a_device_the_evidence_of_one_confirms_a_champion() {
    let lab = Lab::new(&machine(""));
    lab.built(&[]);
    let other = lab.anew("other");
    lab.give_evidence(&other);
    other.on(&Machine { device: None, ..machine("") });
    let built = other.built(&[]);
    assert_eq!(built.step(CONFIRMED[0])["verdict"], "pass", "{}", built.step(CONFIRMED[0]));
    assert_eq!(shape(&other, "big")["confirmed"], true);
}

#[test]
#[ignore = "second tier: many builds"]
fn an_index_type_that_no_shape_comes_near_is_said_of_one_kernel() {
    let lab = Lab::new(&machine(""));
    lab.built(&[]);
    let limit = &lab.target()["index_limit"];
    assert_eq!(
        (&limit["arguments"][0], &limit["dtype"], &limit["elements"]),
        (&"n".into(), &"i32".into(), &100.into())
    );
    let said = "nothing is shown near the limit of its indices: `n` is i32 and can count 2147483648 elements, and the largest tensor of any shape has 100";
    let detailed = told_with(&lab, &["report", "--kernel", "k"]);
    assert!(detailed.contains(said) && !told(&lab).contains(said), "{detailed}");
    // An argument of 64 bits is no sign, and a shape near the limit of a narrower one shows it.
    let wide = lab.anew("wide").manifest("\"n\"] }]", "{ value = \"n\", dtype = \"i64\" }] }]");
    wide.built(&[]);
    assert_eq!(wide.target()["index_limit"], Value::Null);
    let near = lab.anew("near").manifest("\"n\"] }]", "{ value = \"n\", dtype = \"i16\" }] }]");
    near.project.edit("kernel.toml", "n = 100,", "n = 20000,");
    near.built(&[]);
    assert_eq!(near.target()["index_limit"], Value::Null);
}
