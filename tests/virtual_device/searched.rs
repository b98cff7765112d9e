//! Searches over tunables on a device: their results and their costs. A search is a part of the plan like any other: after an interruption, a repetition, a
//! replay without the device or an edit, it repeats only what changed and takes the same path.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::lab::{Lab, MANIFEST, Machine, champion, steps};
use crate::project::{Built, id, ids};

/// The values of each tunable and the factor by which each multiplies the time. All but one value cost time, so that one variant is the best.
const FACTORS: [[(u32, f64); 5]; 4] = [
    [(1, 1.9), (2, 1.5), (4, 1.2), (8, 1.0), (16, 1.15)],
    [(1, 1.3), (2, 1.1), (4, 1.0), (8, 1.1), (16, 1.4)],
    [(1, 1.0), (2, 1.1), (4, 1.25), (8, 1.5), (16, 2.0)],
    [(1, 1.5), (2, 1.3), (4, 1.15), (8, 1.06), (16, 1.0)],
];

const NAMES: [&str; 4] = ["A", "B", "C", "D"];

/// A machine on which every variant works, and takes a microsecond times its factors.
fn machine() -> Machine {
    let mut says = "ns = 1000.0".to_string();
    for (group, factors) in (1..).zip(FACTORS) {
        let list: Vec<String> = factors.iter().map(|(value, by)| format!("\"{value}\" = {by:?}")).collect();
        let _ = write!(says, "\nfactors.{group} = {{ {} }}", list.join(", "));
    }
    Machine { noise: 0.005, ..Machine::default() }.rule(r"^k<(\d+),(\d+),(\d+),(\d+)>", &says)
}

/// The true time of a variant, relative to the best.
fn cost(label: &str) -> f64 {
    let parts = label.split(',').zip(FACTORS).zip(NAMES);
    parts
        .map(|((part, factors), name)| {
            let value: u32 = part.strip_prefix(&format!("{name}=")).unwrap().parse().unwrap();
            factors.iter().find(|(v, _)| *v == value).unwrap().1
        })
        .product()
}

/// A kernel with 625 variants and this search.
fn lab(search: &str) -> Lab {
    let lab = Lab::new(&machine());
    let (head, _) = MANIFEST.split_once("tune.V").unwrap();
    let tunables: String = NAMES.iter().map(|name| format!("tune.{name} = [1, 2, 4, 8, 16]\n")).collect();
    let launch = r#"launch = [{ entry = "k<A,B,C,D>", grid = ["n"], block = ["32"], args = ["x", "y", "n"] }]"#;
    lab.project.write("kernel.toml", &format!("{head}{tunables}{search}\n{launch}\n"));
    source(&lab, "");
    lab
}

fn source(lab: &Lab, more: &str) {
    let kernel = "template <int A, int B, int C, int D> __global__ void k(const float *x, float *y, int n) {}\n";
    lab.project.write("k.cu", &format!("{more}{kernel}"));
}

const MODEL: &str = "tune.strategy = \"model\"\ntune.budget = { variants = 48 }";

/// The ids of executed steps that ask a device.
fn asked(built: &Built) -> BTreeSet<String> {
    let asks = |id: &&String| ["/verify", "/bench", "/pairs"].iter().any(|kind| id.ends_with(kind));
    built.executed().iter().filter(asks).cloned().collect()
}

/// The variants that were compiled or are known to compile.
fn visited(built: &Built) -> BTreeSet<String> {
    let compiles = built.finished().filter(|s| s["kind"] == "compile");
    compiles.map(|s| s["labels"]["variant"].as_str().unwrap().to_string()).collect()
}

#[test]
#[ignore = "second tier: many builds"]
fn a_search_finds_what_is_within_two_per_cent_of_the_best_of_hundreds_within_its_budget() {
    for strategy in ["model", "annealing"] {
        let budget = if strategy == "model" { 48 } else { 80 };
        let lab = lab(&format!("tune.strategy = \"{strategy}\"\ntune.budget = {{ variants = {budget} }}"));
        let built = lab.built(&[]);
        let (found, provisional) = champion(&built);
        assert!(cost(&found) <= 1.02 && !provisional, "{strategy}: {found} is {} times the best", cost(&found));
        // The variants that ablation compares would be additional, but there are no methods here.
        assert_eq!(visited(&built).len(), budget, "{strategy}");
        let search = lab.target()["search"].clone();
        assert_eq!((&search["visited"], &search["of"]), (&budget.into(), &625.into()));
        assert_eq!((&search["strategy"], &search["over"]), (&strategy.into(), &"variants".into()));
        assert!(search["best"][0]["visit"].as_u64().unwrap() <= budget as u64);
        assert!(search["on_samples"].as_u64().unwrap() > 0, "{search}");
        let report = lab.project.command(&["report"]).output().unwrap();
        let says = format!("{strategy} search: {budget} of 625 variants visited, 0 dropped on facts, ");
        assert!(String::from_utf8(report.stdout).unwrap().contains(&says), "{strategy}");
        // Slow variants are timed with only a few samples.
        let few = steps(&built, "bench", "executed").into_iter().filter(|id| id.ends_with("/few/bench")).count();
        assert_eq!(few, budget, "{strategy}");
        assert!(steps(&built, "bench", "executed").len() < 2 * budget, "{strategy}");
        let again = lab.built(&[]);
        assert_eq!((again.count("executed"), champion(&again).0), (0, found), "{strategy}");
        assert_eq!(again.keys(), built.keys(), "{strategy}");
    }
}

#[test]
fn a_search_is_planned_explained_and_run_like_any_other_step() {
    let lab = lab(MODEL);
    let output = lab.project.command(&["build", "--offline", "--dry-run"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|l| l == "will p/k/h/wave-0/search +"), "{text}");
    assert!(!text.contains("/compile"), "who is visited is not known yet: {text}");
    lab.built(&[]);
    let explained = lab.project.explain("p/k/h/wave-2/search");
    let fields: Vec<String> = explained["fields"].as_array().unwrap().iter().map(Value::to_string).collect();
    for part in ["params.strategy", "params.seed", "inputs.trail", "inputs.few:", "inputs.judgement:"] {
        assert!(fields.iter().any(|f| f.contains(part)), "{part} in {fields:?}");
    }
    assert!(fields.iter().all(|f| !f.contains("params.budget.seconds")), "{fields:?}");
    assert_eq!(lab.project.dry_run(), (BTreeSet::new(), BTreeSet::new()));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_search_that_is_killed_goes_on_where_it_was_and_measures_nothing_twice() {
    let undisturbed = lab(MODEL);
    let expected = undisturbed.built(&[]);
    let lab = undisturbed.anew("killed");
    // The number of benches after which each build except the last is killed.
    let mut done: BTreeSet<String> = BTreeSet::new();
    for kill in [3, 9, 20] {
        let mut child = lab.project.building(&["-j2"]).process_group(0).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut seen = 0;
        let mut line = String::new();
        while seen < kill {
            line.clear();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "it ended before it was killed");
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["reason"] == "step-finished" && event["kind"] == "bench" && event["outcome"] == "executed" {
                assert!(done.insert(id(&event)), "{} is measured twice", event["id"]);
                seen += 1;
            }
        }
        kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
    }
    let last = lab.built(&[]);
    let executed = last.executed();
    assert_eq!(done.intersection(&executed).collect::<Vec<_>>(), Vec::<&String>::new(), "measured twice");
    assert_eq!((last.keys(), champion(&last)), (expected.keys(), champion(&expected)));
    assert_eq!(lab.project.report(), undisturbed.project.report());
}

#[test]
#[ignore = "second tier: many builds"]
fn an_interrupted_search_goes_on_where_it_was() {
    let lab = lab(MODEL);
    let mut child = lab.project.building(&["-j1"]).process_group(0).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !(line.contains("step-finished") && line.contains("wave-4/search")) {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "it ended before it was interrupted");
    }
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<String> = out.lines().map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    let records = lab.records();
    let built = lab.built(&[]);
    let profiled = ["profile", "peaks"].map(|kind| steps(&built, kind, "executed").len()).iter().sum::<usize>();
    assert_eq!(lab.records(), records + asked(&built).len() + profiled, "each is asked once");
    assert!(steps(&built, "search", "fresh").contains("p/k/h/wave-4/search"));
    let clean = lab.anew("clean");
    assert_eq!(clean.built(&[]).keys(), built.keys());
}

#[test]
#[ignore = "second tier: builds many searches"]
fn a_search_is_replayed_without_the_device_and_never_wrong_where_its_way_is_not_recorded() {
    let lab = lab(MODEL);
    let with = lab.built(&[]);
    let nowhere = Machine { device: None, ..machine() };
    lab.on(&nowhere);
    let without = lab.built(&[]);
    assert_eq!((without.count("executed"), without.keys()), (0, with.keys()));
    // On another machine, which has only the records.
    let anew = lab.anew("anew");
    lab.give_evidence(&anew);
    let replayed = anew.built(&[]);
    assert_eq!(asked(&replayed), BTreeSet::new());
    assert_eq!((replayed.keys(), champion(&replayed)), (with.keys(), champion(&with)));
    assert_eq!(anew.project.report(), lab.project.report());
    // With another seed, the search leaves the recorded path.
    let other = lab.anew("other");
    lab.give_evidence(&other);
    let other = other.manifest("variants = 48 }", "variants = 48 }\ntune.seed = 7");
    let left = other.built(&[]).says("Finished");
    assert_eq!(asked(&left), BTreeSet::new());
    assert!(!steps(&left, "bench", "unavailable").is_empty());
    let search = other.target()["search"].clone();
    assert_eq!(search["over"], "unrecorded", "{search}");
    assert!(visited(&left).len() < 48);
    let report = String::from_utf8(other.project.command(&["report"]).output().unwrap().stdout).unwrap();
    assert!(
        report.contains("the measurements that it needs next are not recorded, and there is no device here"),
        "{report}"
    );
    // Without any records, a first batch is provisional.
    let empty = lab.anew("empty");
    let built = empty.built(&[]);
    assert_eq!((champion(&built).1, visited(&built).len()), (true, 8));
    // With the device present again, the search continues where it stopped.
    empty.on(&machine());
    let built = empty.built(&[]);
    assert_eq!((built.keys(), champion(&built)), (with.keys(), champion(&with)));
}

#[test]
#[ignore = "second tier: many whole searches"]
fn an_edit_searches_again_and_equals_a_build_from_nothing() {
    let lab = lab(MODEL);
    let first = lab.built(&[]);
    source(&lab, "// A comment.\n");
    let commented = lab.built(&[]);
    assert_eq!(asked(&commented), BTreeSet::new(), "the machine code is the same");
    source(&lab, "__device__ int more = 1;\n");
    let edited = lab.built(&[]);
    let few = |built: &Built| asked(built).iter().filter(|id| id.ends_with("/few/bench")).count();
    assert_eq!((few(&first), few(&edited)), (48, 48));
    assert!(cost(&champion(&edited).0) <= 1.02);
    // A larger budget continues where the smaller one ended.
    let lab = lab.manifest("variants = 48", "variants = 64");
    let more = lab.built(&[]);
    assert_eq!(visited(&more).len(), 64);
    assert_eq!(few(&more), 16);
    // Other values of a tunable make another space, and much of it has been measured.
    let lab = lab.manifest("tune.D = [1, 2, 4, 8, 16]", "tune.D = [4, 8, 16]");
    let fewer = lab.built(&[]);
    let anew = lab.anew("anew");
    lab.give_evidence(&anew);
    let began = anew.built(&["-j4"]);
    assert_eq!(asked(&began), BTreeSet::new());
    assert_eq!((began.keys(), champion(&began)), (fewer.keys(), champion(&fewer)));
    assert_eq!(anew.project.report(), lab.project.report());
}

#[test]
fn what_cannot_run_is_dropped_before_it_is_measured_and_fails_nothing() {
    let lab = lab("tune.strategy = \"random\"\ntune.budget = { variants = 32 }").manifest("[\"32\"]", "[\"512\"]");
    source(&lab, "#pragma fact ^k<(1|2), registers 255\n#pragma fact ^k<4,.*,16>$ shared 300000\n");
    let built = lab.built(&[]);
    let impossible =
        |v: &String| v.starts_with("A=1,") || v.starts_with("A=2,") || (v.starts_with("A=4,") && v.ends_with("D=16"));
    let compiled = visited(&built);
    let verified: BTreeSet<String> = built
        .finished()
        .filter(|s| s["kind"] == "verify")
        .map(|s| s["labels"]["variant"].as_str().unwrap().to_string())
        .collect();
    let expected: BTreeSet<String> = compiled.iter().filter(|v| !impossible(v)).cloned().collect();
    assert_eq!((verified, compiled.len()), (expected, 32));
    let search = lab.target()["search"].clone();
    assert_eq!(search["on_facts"], compiled.iter().filter(|v| impossible(v)).count());
    assert_eq!(lab.target()["variants"][0], compiled.iter().filter(|v| !impossible(v)).count());
}

#[test]
fn wrong_variants_of_a_search_are_shown_and_fail_as_others_do() {
    let lab = lab("tune.strategy = \"random\"\ntune.budget = { variants = 24 }");
    lab.on(&machine().first("^k<(1|2|4),", "ns = 10.0\nerror = 1.0"));
    let built = lab.project.build(&["--keep-going"]).expect(100);
    assert!(cost(&champion(&built).0) < 2.0, "{}", champion(&built).0);
    let wrong = visited(&built).iter().filter(|v| ["A=1,", "A=2,", "A=4,"].iter().any(|p| v.starts_with(p))).count();
    assert_eq!(lab.target()["variants"], serde_json::json!([24, 24 - wrong, wrong]));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_budget_in_seconds_is_spent_by_what_timings_took_and_replays_the_same() {
    let lab = lab("tune.strategy = \"random\"\ntune.budget = { seconds = 6 }");
    let built = lab.built(&[]);
    let search = lab.target()["search"].clone();
    assert_eq!(search["over"], "seconds", "{search}");
    assert!(search["took_s"].as_f64().unwrap() >= 6.0 && visited(&built).len() < 100, "{search}");
    lab.on(&Machine { device: None, ..machine() });
    let anew = lab.anew("anew");
    lab.give_evidence(&anew);
    assert_eq!((anew.built(&[]).keys(), anew.target()["search"].clone()), (built.keys(), search));
}

#[test]
fn a_pin_takes_part_and_does_not_change_the_way() {
    use kforge::workspace::lockfile::{Lockfile, Pin, Seat};
    let lab = lab("tune.strategy = \"random\"\ntune.budget = { variants = 16 }");
    let first = lab.built(&[]);
    let pinned = "A=8,B=4,C=1,D=16";
    assert!(!visited(&first).contains(pinned), "the best there is, which this search does not come by");
    let mut lock = Lockfile::read(lab.project.root()).unwrap();
    let part = |text: &str| text.to_string();
    let seat =
        Seat { package: part("p"), kernel: part("k"), types: String::new(), target: part("h"), class: part("all") };
    lock.champions.insert(seat, Pin::Variant(pinned.into()));
    lock.write(lab.project.root(), false).unwrap();
    let built = lab.built(&[]);
    assert_eq!(champion(&built), (pinned.into(), false));
    let big = format!("p/k/{pinned}/h/big");
    let tiny = format!("p/k/{pinned}/h/tiny/verify");
    let confirmed = ["big", "tiny"].map(|shape| format!("p/k/{pinned}/h/{shape}/confirmed/verify"));
    let ran = [&format!("{big}/verify"), &format!("{big}/bench"), &tiny, &confirmed[0], &confirmed[1]];
    assert_eq!(asked(&built), ids(&ran.map(String::as_str)));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_kernel_whose_classes_are_searched_has_a_champion_of_each() {
    let shapes = "role = \"bench\" }\nshapes.large = { n = 200, role = \"bench\" }";
    let lab = lab("tune.strategy = \"annealing\"\nselect = { per = \"n\" }").manifest("role = \"bench\" }", shapes);
    let built = lab.built(&[]);
    assert_eq!(visited(&built).len(), 64, "the budget where none is stated");
    let champions: Vec<(String, bool)> = built
        .events("champion")
        .map(|c| (c["class"].as_str().unwrap().to_string(), c["provisional"].as_bool().unwrap()))
        .collect();
    assert_eq!(champions, [("10".into(), true), ("100".into(), false), ("200".into(), false)]);
    let report = lab.target()["search"]["best"].clone();
    assert_eq!(report.as_array().unwrap().iter().map(|b| b["class"].clone()).collect::<Vec<_>>(), ["100", "200"]);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_bundle_brings_a_search_to_a_machine_without_the_device() {
    let lab = lab(MODEL);
    let with = lab.built(&[]);
    let exported = lab.project.command(&["evidence", "export"]).output().unwrap();
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let laptop = lab.anew("laptop");
    laptop.on(&Machine { device: None, ..machine() });
    let replayed = laptop.built(&["--require-evidence=claimed"]);
    assert_eq!((replayed.keys(), champion(&replayed)), (with.keys(), champion(&with)));
    // Without the bundle there is a first batch to measure, and no device to answer.
    let other = lab.anew("other");
    std::fs::remove_dir_all(other.project.root().join("evidence")).unwrap();
    assert!(
        other
            .project
            .build(&["--require-evidence=claimed", "-v"])
            .expect(103)
            .stderr()
            .contains("/few/bench: no device")
    );
}
