//! `kforge diff`: what builds have found out about two variants of a kernel, or about a kernel at two revisions.

use serde_json::Value;

use crate::compared::{commit, git};
use crate::lab::{Lab, Machine, SOURCE};

/// V=2 is the fastest of three; V=4 is near, and V=1 is not.
fn machine() -> Machine {
    Machine { noise: 0.004, ..Machine::with(&[(1, 1400.0), (2, 1000.0), (4, 1030.0)]) }
}

/// The output of a command that ends with this code.
#[track_caller]
fn said(lab: &Lab, words: &[&str], code: i32) -> String {
    let output = lab.project.command(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}:\n{text}");
    text
}

/// The lines of `kforge diff --message-format json`.
#[track_caller]
fn documents(lab: &Lab, words: &[&str]) -> Vec<Value> {
    let words = [&["diff", "k"], words, &["--message-format", "json"]].concat();
    let output = lab.project.command(&words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn side(document: &Value, side: &str) -> String {
    document[side]["variant"].as_str().unwrap().to_string()
}

#[test]
fn two_variants_differ_in_what_was_found_of_them() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    let [found] = documents(&lab, &["V=2", "V=4"]).try_into().unwrap();
    assert_eq!((side(&found, "a"), side(&found, "b")), ("V=2".into(), "V=4".into()));
    assert_eq!((&found["reason"], &found["target"]), (&"diffed".into(), &"h".into()));
    assert_eq!(found["a"]["champion_of"], serde_json::json!(["all"]));
    assert_eq!((&found["sources"], &found["same_sources"]), (&serde_json::json!([]), &serde_json::json!(["k.cu"])));
    let entries = found["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == "entries").unwrap();
    assert_eq!((&entries["a"], &entries["b"]), (&"k<2>".into(), &"k<4>".into()));
    let shapes = found["shapes"].as_array().unwrap();
    let big = shapes.iter().find(|shape| shape["shape"] == "big").unwrap();
    let ratio = &big["ratio"];
    let (of, low, high) = (ratio["ratio"].as_f64(), ratio["interval"][0].as_f64(), ratio["interval"][1].as_f64());
    assert!(ratio["paired"] == true && low <= of && of <= high && (1.02..1.04).contains(&of.unwrap()), "{big}");
    // The other way round is the inverse, from the same samples.
    let [turned] = documents(&lab, &["V=4", "V=2", "--shape", "big"]).try_into().unwrap();
    let inverse = turned["shapes"][0]["ratio"]["ratio"].as_f64().unwrap();
    assert!((inverse * of.unwrap() - 1.0).abs() < 1e-9, "{turned}");
    assert_eq!(turned["shapes"].as_array().unwrap().len(), 1);
    // V=1 is too slow to be paired: its time has few samples, and the ratio is of medians.
    let [apart] = documents(&lab, &["V=2", "V=1"]).try_into().unwrap();
    let big = apart["shapes"].as_array().unwrap().iter().find(|shape| shape["shape"] == "big").unwrap().clone();
    assert!(big["ratio"]["paired"] == false && big["no_pairs"] == "they were not timed in turn", "{big}");
    let text = said(&lab, &["diff", "k", "V=2", "V=1"], 0);
    assert!(text.contains("by separate medians") && text.contains("  A  V=2  champion\n"), "{text}");
}

#[test]
fn one_variant_is_compared_with_the_champion_and_none_with_the_first() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    let sides = |words: &[&str]| -> Vec<(String, String)> {
        documents(&lab, words).iter().map(|found| (side(found, "a"), side(found, "b"))).collect()
    };
    assert_eq!(sides(&["V=4"]), [("V=2".to_string(), "V=4".to_string())]);
    assert_eq!(sides(&[]), [("V=2".to_string(), "V=1".to_string())]);
    assert!(said(&lab, &["diff", "k", "V=2"], 4).contains("`V=2` is the champion of kernel `k` on h"));
    let text = said(&lab, &["diff", "k", "V=3"], 4);
    assert!(text.contains("has no variant `V=3`") && text.contains("one of `V=1`, `V=2`, `V=4`"), "{text}");
    assert!(said(&lab, &["diff", "l", "V=1"], 4).contains("`l`"));
    assert!(said(&lab, &["diff", "k", "V=1", "V=2", "--shape", "nope"], 4).contains("no shape matches `nope`"));
    assert!(said(&lab, &["diff", "k", "--target", "cpu", "V=1"], 4).contains("has no kernel `k` for this selection"));
}

#[test]
fn what_no_build_has_found_out_is_said_to_be_missing() {
    let lab = Lab::new(&machine());
    let text = said(&lab, &["diff", "k", "V=1", "V=2"], 0);
    for part in ["Source: the same in both (k.cu)", "A: no machine code", "B: no times"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(said(&lab, &["diff", "k", "V=1"], 4).contains("no champion of kernel `k` on h is known"));
    assert!(!lab.project.root().join("target/kforge/journal").exists(), "it only looks");
}

#[test]
fn opcodes_are_counted_in_stored_binaries_without_a_device() {
    let lab = Lab::new(&machine());
    lab.project.write("k.cu", &format!("#pragma sass k<4> LDG.E.128 2\n#pragma sass k<2> LDG.E.64 4\n{SOURCE}"));
    lab.built(&[]);
    // The machine has lost its device.
    lab.on(&Machine { device: None, ..machine() });
    let [found] = documents(&lab, &["V=2", "V=4"]).try_into().unwrap();
    let function = &found["functions"][0];
    assert_eq!(function["a"]["opcodes"]["LDG.E.64"], 4, "{found}");
    assert_eq!(function["b"]["opcodes"]["LDG.E.128"], 2, "{found}");
    assert!(found["shapes"][0]["ratio"]["paired"] == true || found["shapes"][1]["ratio"]["paired"] == true, "{found}");
    let text = said(&lab, &["diff", "k", "V=2", "V=4"], 0);
    assert!(text.contains("LDG.E.128") && text.contains("k<2> against k<4>"), "{text}");
}

#[test]
fn a_kernel_is_compared_with_an_earlier_revision_of_it() {
    let lab = Lab::new(&machine());
    git(&lab, &["init", "--quiet"]);
    commit(&lab, "first");
    lab.built(&[]);
    lab.project.write("k.cu", &format!("// edited\n{SOURCE}"));
    let lab = lab.manifest("block = [\"32\"]", "block = [\"64\"]");
    lab.built(&[]);
    let [found] = documents(&lab, &["--base", "HEAD"]).try_into().unwrap();
    assert_eq!((side(&found, "a"), side(&found, "b")), ("V=2".into(), "V=2".into()));
    assert!(found["a"]["state"].as_str().unwrap().starts_with("HEAD ("), "{found}");
    assert_eq!(found["b"]["state"], "the working tree");
    let unified = found["sources"][0]["unified"].as_str().unwrap();
    assert!(unified.starts_with("--- a/k.cu\n+++ b/k.cu\n") && unified.contains("+// edited\n"), "{unified}");
    let settings = found["settings"].as_array().unwrap();
    let launch = settings.iter().find(|setting| setting["name"].as_str().unwrap().starts_with("launch 1 at ")).unwrap();
    assert!(launch["a"].as_str().unwrap().contains("block 32 x 1 x 1"), "{launch}");
    let big = found["shapes"].as_array().unwrap().iter().find(|shape| shape["shape"] == "big").unwrap();
    assert!(big["time_a"].is_object() && big["time_b"].is_object(), "{big}");
    // A variant of the revision against another one of now.
    let [named] = documents(&lab, &["V=1", "V=4", "--base", "HEAD"]).try_into().unwrap();
    assert_eq!((side(&named, "a"), side(&named, "b")), ("V=1".into(), "V=4".into()));
    assert!(said(&lab, &["diff", "k", "--base", "nowhere"], 101).contains("nowhere"));
}
