//! What `explain`, `run` and `report` say after a build of a selection: every step of that build is found, its choice is explained, and results are shown with
//! where they come from and what has changed since.

use serde_json::Value;

use crate::lab::{Lab, Machine, SOURCE, champion};

/// V=2 is the fastest of three, on a device; the package also has the target `cpu`, on which the kernel computes nothing.
fn lab() -> Lab {
    let machine = Machine { noise: 0.004, ..Machine::with(&[(1, 1400.0), (2, 1000.0), (4, 1030.0)]) };
    Lab::new(&machine).manifest("[targets.h]", "[targets.cpu]\n\n[targets.h]").manifest("[\"h\"]", "[\"cpu\", \"h\"]")
}

/// The output of a command that ends with this code.
#[track_caller]
fn said(lab: &Lab, words: &[&str], code: i32) -> String {
    let output = lab.project.command(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}:\n{text}");
    text
}

const SELECT: &str = "p/k/h/select";

#[test]
#[ignore = "second tier: many builds"]
fn every_step_of_a_build_of_one_target_is_found() {
    let lab = lab();
    let built = lab.built(&["--target", "h"]);
    assert_eq!(champion(&built), ("V=2".into(), false));
    let ids: Vec<String> = built.finished().map(|step| step["id"].as_str().unwrap().to_string()).collect();
    assert!(ids.iter().any(|id| id == SELECT) && ids.iter().any(|id| id.ends_with("/pairs")), "{ids:?}");
    for id in &ids {
        assert_eq!(lab.project.explain(id)["standing"], "fresh", "{id}");
    }
    assert!(said(&lab, &["run", "--offline", SELECT], 0).contains("fresh"));
    // A build that a certificate or the store answers is the last one, too.
    lab.built(&["--target", "h"]);
    assert_eq!(lab.project.explain(SELECT)["standing"], "fresh");
    // What that build did not select is found in the plan of everything.
    assert_eq!(lab.project.explain("p/k/V=1/cpu/tiny/judge")["id"], "p/k/V=1/cpu/tiny/judge");
    // A selection of its own is looked at alone.
    assert!(said(&lab, &["explain", "--offline", "--target", "cpu", SELECT], 4).contains("no step of the plan"));
    said(&lab, &["explain", "--offline", "--target", "h", SELECT], 0);
}

#[test]
fn the_step_that_chose_the_champion_names_its_rivals_and_what_decided() {
    let lab = lab();
    lab.built(&["--target", "h"]);
    let choice = lab.project.explain(SELECT)["choices"][0].clone();
    assert_eq!(
        (&choice["class"], &choice["champion"], &choice["provisional"]),
        (&"all".into(), &"V=2".into(), &false.into())
    );
    let rivals: Vec<&str> =
        choice["rivals"].as_array().unwrap().iter().map(|r| r["variant"].as_str().unwrap()).collect();
    assert_eq!(rivals, ["V=1", "V=4"]);
    let (far, near) = (&choice["rivals"][0], &choice["rivals"][1]);
    let by = far["slower_by"].as_f64().unwrap();
    assert!((0.36..0.44).contains(&by) && far.get("pairs").is_none(), "{far}");
    let pairs = &near["pairs"][0];
    let (by, low, high) = (pairs["slower_by"].as_f64(), pairs["interval"][0].as_f64(), pairs["interval"][1].as_f64());
    assert!(pairs["shape"] == "big" && low <= by && by <= high && (0.02..0.04).contains(&by.unwrap()), "{near}");
    let text = said(&lab, &["explain", "--offline", SELECT], 0);
    assert!(text.contains("  champion: V=2") && text.contains("    V=1  correct; median +4"), "{text}");
    assert!(text.contains("    V=4  correct; median +") && text.contains("in pairs at big: slower, +"), "{text}");
    assert_eq!(text.matches(LEGEND).count(), 1, "{text}");
}

/// What signs mean beside rivals.
const LEGEND: &str = "+ means that the other variant is slower than the champion, - that it is faster; ";

#[test]
fn the_last_line_of_a_build_says_what_is_unknown() {
    let lab = Lab::new(&Machine { device: None, ..Machine::default() });
    let built = lab.built(&[]);
    let says = " unknown (no evidence of h); ";
    assert!(built.stderr().contains("; their verdicts: ") && built.stderr().contains(says), "{}", built.stderr());
    let again = said(&lab, &["build", "--offline"], 0);
    assert!(again.contains(says), "so does a build that has nothing to do: {again}");
}

#[test]
fn the_name_of_a_kernel_explains_its_champions() {
    let lab = lab();
    lab.built(&["--target", "h"]);
    let text = said(&lab, &["explain", "--offline", "k"], 0);
    assert!(text.contains("p/k, a kernel of operator twice") && text.contains("on h, by `p/k/h/select`"), "{text}");
    assert!(text.contains("  champion: V=2") && text.contains("`kforge tree --kernel k` lists them"), "{text}");
    assert!(text.contains(" steps of this kernel: ") && text.matches(LEGEND).count() == 1, "{text}");
    let follows = "depends on k.cu; [kernel.k], [operator.twice], [targets.h] in the manifest; the reference ";
    assert!(text.contains(follows), "{text}");
    assert!(text.contains("; the device Virtual H (sm_90, driver 580)"), "{text}");
    let json: Value = serde_json::from_str(&said(&lab, &["explain", "--offline", "--json", "k"], 0)).unwrap();
    assert_eq!(json[0]["seats"][0]["reads"]["sources"], serde_json::json!(["k.cu"]));
    assert_eq!((&json[0]["kernel"], &json[0]["seats"][0]["choices"][0]["champion"]), (&"k".into(), &"V=2".into()));
}

#[test]
fn a_step_that_an_edit_hides_is_told_of_as_the_last_build_had_it() {
    let lab = lab();
    lab.built(&["--target", "h"]);
    lab.project.write("k.cu", &format!("#define EDITED\n{SOURCE}"));
    let gone = lab.project.explain(SELECT);
    assert_eq!(gone["standing"], "gone");
    assert!(!gone["fields"].as_array().unwrap().is_empty() && !gone["because"].as_array().unwrap().is_empty());
    let text = said(&lab, &["run", "--offline", SELECT], 4);
    assert!(text.contains("is no step of the plan now") && text.contains("kforge build"), "{text}");
    // The kernel has no step that selects before it is compiled again.
    let text = said(&lab, &["explain", "--offline", "k"], 0);
    let last = "nothing is selected yet\non h, the last build selected: V=2  (";
    assert!(text.contains(last) && text.contains(" to run: `p/k/generate`"), "{text}");
    let json: Value = serde_json::from_str(&said(&lab, &["explain", "--offline", "--json", "k"], 0)).unwrap();
    let of = &json[0]["last_build"][0];
    assert_eq!((&of["target"], &of["chosen"][0]["champion"]), (&"h".into(), &"V=2".into()), "{json}");
    // Whoever names a selection asks about its plan only.
    let text = said(&lab, &["explain", "--offline", "--target", "h", "k"], 0);
    assert!(!text.contains("the last build"), "{text}");
    lab.built(&["--target", "h"]);
    assert!(!said(&lab, &["explain", "--offline", "k"], 0).contains("the last build"));
}

#[test]
fn a_report_says_where_its_results_come_from_and_what_was_edited_since() {
    let lab = lab();
    lab.built(&["--target", "h"]);
    let report = lab.project.report_value();
    assert_eq!(report["built"]["kforge"], env!("CARGO_PKG_VERSION"));
    assert!(report["built"]["at"].as_str().unwrap().ends_with('Z') && report["built"]["interrupted"] == false);
    let observed = &lab.target()["observed"];
    assert_eq!(observed.as_array().unwrap().len(), 1, "{observed}");
    assert_eq!(
        (&observed[0]["device"], &observed[0]["driver"]),
        (&"Virtual H (sm_90, driver 580)".into(), &"580.1".into())
    );
    assert_eq!((&observed[0]["origin"], &observed[0]["standing"]), (&"here".into(), &"here".into()));
    let day = Value::from("2026-01-01T00:00:00Z");
    assert_eq!((&observed[0]["oldest"], &observed[0]["newest"]), (&day, &day));
    let shown = |format: &str| said(&lab, &["report", "--offline", "--format", format], 0);
    let text = shown("text");
    assert!(
        text.contains("    observed on Virtual H (sm_90, driver 580), 2026-01-01 (") && text.contains(" ago), here\n"),
        "{text}"
    );
    assert!(text.contains("\nbuilt just now by kforge ") && !text.contains("stale"), "{text}");
    assert!(shown("markdown").contains("* `k` on `h`: observed on Virtual H (sm_90, driver 580), 2026-01-01 ("));
    assert_eq!(text.lines().filter(|line| line.contains("observed on")).count(), 1, "{text}");
    // An edit of a comment compiles again, and until then nobody knows what it changes.
    lab.project.write("k.cu", &format!("#define EDITED\n{SOURCE}"));
    let stale = "`k.cu` was edited since this was built";
    assert!(shown("text").contains(&format!("    stale: {stale}\n")), "{}", shown("text"));
    assert!(shown("markdown").contains(&format!("* `k` on `h` is stale: {stale}")));
    let json: Value = serde_json::from_str(&shown("json")).unwrap();
    assert_eq!(json["packages"][0]["kernels"][0]["targets"][0]["stale"], stale);
    assert!(lab.target().get("stale").is_none(), "the stored report does not age");
    lab.project.write("k.cu", SOURCE);
    assert!(!shown("text").contains("stale"));
    lab.project.edit("kernel.toml", "atol = 1e-6", "atol = 2e-6");
    let stale = "    stale: the tolerance of `y` (`atol`) changed since this was built\n";
    assert!(shown("text").contains(stale), "{}", shown("text"));
}

#[test]
fn a_bundle_s_results_are_claimed_by_its_file() {
    let lab = lab();
    lab.built(&["--target", "h"]);
    said(&lab, &["evidence", "export", "--target", "h"], 0);
    let other = lab.anew("laptop");
    other.on(&Machine { device: None, ..Machine::default() });
    other.built(&["--target", "h", "--require-evidence=claimed"]);
    let observed = &other.target()["observed"][0];
    assert_eq!((&observed["origin"], &observed["standing"]), (&"evidence/virtual-h.kfe".into(), &"claimed".into()));
    let text = said(&other, &["report", "--offline"], 0);
    assert!(text.contains(", claimed by `evidence/virtual-h.kfe`\n"), "{text}");
}

/// The kernel with a method that V=1 lacks.
fn with_method(machine: &Machine) -> Lab {
    let lab = Lab::new(machine);
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let method =
        "[kernel.k.methods.\"memory.own\"]\naxis = \"memory\"\noff = { V = 1 }\nsass.any = ['LDG\\.E\\.128']\n";
    lab.project.write("kernel.toml", &format!("{manifest}\n{method}"));
    lab.project.write("k.cu", &format!("#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab
}

#[test]
fn a_method_is_explained_by_who_uses_it() {
    let fastest = |v: u32| {
        let time = |of: u32| (of, if of == v { 1000.0 } else { 1200.0 });
        Machine { noise: 0.004, ..Machine::with(&[time(1), time(2), time(4)]) }
    };
    let unused = with_method(&fastest(1));
    unused.built(&[]);
    let text = said(&unused, &["explain", "--offline", "memory.own"], 0);
    assert!(text.contains("memory.own in p/k on h: not used by the champion: V=1"), "{text}");
    let json: Value =
        serde_json::from_str(&said(&unused, &["explain", "--offline", "--json", "memory.own"], 0)).unwrap();
    assert_eq!((&json["method"], &json["uses"][0]["used"]), (&"memory.own".into(), &"no".into()));
    let used = with_method(&fastest(4));
    used.built(&[]);
    let text = said(&used, &["explain", "--offline", "memory.own"], 0);
    assert!(
        text.contains("memory.own in p/k on h: used by the champion: V=4; effective: without it slower, +"),
        "{text}"
    );
    assert!(text.contains("  p/k/V=4/h/memory.own/attribute"), "{text}");
    // The same pair reads the same wherever it is shown, also where the selection did not read it.
    let pair = text.split("without it ").nth(1).unwrap().lines().next().unwrap();
    let rivals = said(&used, &["explain", "--offline", SELECT], 0);
    assert!(rivals.contains(&format!("in pairs at big: {pair}")), "{pair} in {rivals}");
    let off = rivals.lines().find(|line| line.contains(pair)).unwrap().split_whitespace().next().unwrap();
    let difference = said(&used, &["diff", "k", "V=4", off, "--target", "h"], 0);
    assert!(difference.contains(&format!("B in pairs with A: {pair}")), "{pair} in {difference}");
}
