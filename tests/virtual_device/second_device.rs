//! A speed-up above a factor is measured again on a second device of the class. Knows what the two virtual devices measure; a real second device is in
//! `tests/gpu/parts/several.py`.

use std::fs;

use serde_json::Value;

use crate::baselined::{FAST, python, told};
use crate::lab::{Lab, Machine, steps};

const AT: &str = "p/k/V=2/h/big/against/eager";

/// A lab with so many equal devices, on which a baseline is five times as slow as the champion, or on the second device by a factor more.
fn lab(devices: usize, factor: f64) -> Option<Lab> {
    let lab = Lab::new(&Machine::default());
    equip(&lab, devices, factor);
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}\n[baseline.eager]\nsource = \"fast.py::twice\"\n"));
    lab.project.write("fast.py", FAST);
    let python = python(&lab, "2.11.0")?;
    Some(Lab { project: lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", python), ..lab })
}

/// Gives the machine of a lab so many equal devices.
fn equip(lab: &Lab, devices: usize, factor: f64) {
    let mut machine = Machine { noise: 0.0, ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]) };
    machine.more = vec![("Virtual H", "580.1"); devices - 1];
    lab.on(&machine);
    let rule = format!(
        "[[baseline]]\nmatches = '^eager fast.py::twice'\nns = 5000.0\ncall-ns = 9000.0\non = {{ GPU-virtual-1 = {factor:?} }}\n"
    );
    let scenario = fs::read_to_string(&lab.scenario).unwrap();
    fs::write(&lab.scenario, scenario + &rule).unwrap();
}

/// What the report says of the baseline.
fn eager(lab: &Lab) -> Value {
    let found = lab.target()["baselines"].as_array().cloned().unwrap_or_default();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
#[ignore = "second tier: many builds"]
fn a_second_device_confirms_a_large_speed_up() {
    let Some(lab) = lab(2, 1.05) else { return };
    let built = lab.built(&[]);
    let key = |step: &str| lab.project.explain(step).to_string();
    assert!(!key(&format!("{AT}/baseline")).contains("apart_from"), "the first question is as it was");
    let first = eager(&lab)["rating"]["device"].as_str().unwrap().to_string();
    let second = key(&format!("{AT}/second/baseline"));
    assert!(second.contains("apart_from") && second.contains(&first), "the second names the first device: {second}");
    let both = [format!("{AT}/baseline"), format!("{AT}/second/baseline")];
    assert_eq!(steps(&built, "baseline", "executed").into_iter().collect::<Vec<_>>(), both);
    let found = eager(&lab);
    let ratios = [&found["rating"]["ratio"], &found["confirmation"]["confirmed"]["ratio"]];
    let mut ratios = ratios.map(|ratio| (ratio["median"].as_f64().unwrap() * 1000.0).round() as i64);
    ratios.sort_unstable();
    assert_eq!(ratios, [5000, 5250], "{found}");
    let text = told(&lab, &["report"], 0);
    assert!(text.contains("on a second device)") && !text.contains("unconfirmed"), "{text}");
    let explained = told(&lab, &["explain", "k"], 0);
    assert!(explained.contains("on a second device)"), "{explained}");
    let score = told(&lab, &["report", "--score", "speedup", "--baseline", "eager"], 0);
    assert!(!score.contains("unconfirmed"), "{score}");
    assert_eq!(lab.built(&[]).count("executed"), 0, "and nothing again");
}

#[test]
fn a_speed_up_that_differs_on_a_second_device_stands_as_unconfirmed() {
    let Some(lab) = lab(2, 1.3) else { return };
    lab.built(&[]);
    let found = eager(&lab);
    let why = found["confirmation"]["unconfirmed"]["why"].as_str().unwrap();
    assert!(why.starts_with("a second device measures ") && why.ends_with("by more than 10 %"), "{found}");
    let text = told(&lab, &["report"], 0);
    assert!(text.contains("unconfirmed: a second device measures"), "{text}");
    let score = told(&lab, &["report", "--score", "speedup", "--baseline", "eager"], 0);
    assert!(score.contains("unconfirmed: a second device measures"), "{score}");
}

#[test]
fn without_a_second_device_a_large_speed_up_is_unconfirmed_and_nothing_fails() {
    let Some(lab) = lab(1, 1.0) else { return };
    let built = lab.built(&["--require-evidence"]);
    assert_eq!(steps(&built, "baseline", "executed").len(), 1);
    let found = eager(&lab);
    let why = "no second Virtual H here, and no evidence from one";
    assert_eq!(found["confirmation"]["unconfirmed"]["why"], why, "{found}");
    let text = told(&lab, &["report"], 0);
    assert!(text.contains(&format!("unconfirmed: {why}")) && !text.contains("unavailable"), "{text}");
    // Below the factor that the manifest states, no second device is asked.
    let lab = lab.manifest("[baseline.eager]\n", "[baseline.eager]\nconfirm_above = 6\n");
    lab.built(&[]);
    assert!(eager(&lab)["confirmation"].is_null());
    let wrong = lab.manifest("confirm_above = 6", "confirm_above = 0.5");
    let said = told(&wrong, &["check"], 101);
    assert!(said.contains("`confirm_above` is not a speed-up"), "{said}");
}

#[test]
fn evidence_of_two_devices_confirms_where_there_is_one() {
    let Some(lab) = lab(2, 1.05) else { return };
    lab.built(&[]);
    let bundle = lab.project.place().join("two.kfe");
    let exported = told(&lab, &["evidence", "export", "--output", bundle.to_str().unwrap()], 0);
    let alone = lab.anew("alone");
    equip(&alone, 1, 1.0);
    fs::create_dir_all(alone.project.root().join("evidence")).unwrap();
    fs::copy(&bundle, alone.project.root().join("evidence/two.kfe")).unwrap();
    let built = alone.built(&[]);
    assert_eq!(steps(&built, "baseline", "executed").len(), 0, "{exported}");
    let found = eager(&alone);
    assert!(found["confirmation"]["confirmed"].is_object() && found["second_standing"] == "claimed", "{found}");
    for words in [["report", "--offline"], ["explain", "k"]] {
        let said = told(&alone, &words, 0);
        assert!(said.contains("on a second device, only claimed)"), "{said}");
    }
    assert!(!told(&lab, &["report"], 0).contains("claimed"), "what was observed here is no claim");
}

#[test]
fn a_machine_with_one_device_confirms_what_another_machine_measured_first() {
    let Some(lab) = lab(1, 1.0) else { return };
    lab.built(&[]);
    assert!(eager(&lab)["confirmation"]["unconfirmed"].is_object());
    let other = lab.anew("other");
    lab.give_evidence(&other);
    let scenario = fs::read_to_string(&other.scenario).unwrap();
    fs::write(&other.scenario, scenario.replace("[[device]]\n", "[[device]]\nuuid = \"GPU-other\"\n")).unwrap();
    let built = other.built(&[]);
    let measured: Vec<String> = steps(&built, "baseline", "executed").into_iter().collect();
    assert_eq!(measured, [format!("{AT}/second/baseline")], "the first is evidence");
    assert!(eager(&other)["confirmation"]["confirmed"].is_object(), "{}", eager(&other));
}
