//! What bounds a champion: its profile at its bench shapes and its roofline, computed, shown, and stored like any observation.

use serde_json::{Value, json};

use crate::lab::{Lab, Machine, champion, steps};
use crate::project::ids;

/// Peaks at which `k` at `big`, with 800 bytes and 200 operations in 1000 ns, reaches 43 % of the memory and 8 % of the arithmetic.
const PEAKS: &str = "peaks = { dram-bytes-per-s = 1.8604651162790698e9, ops-per-s = { f32 = 2.5e9 } }\n";
const REFUSED: &str = "peaks = { dram-bytes-per-s = 1.8604651162790698e9, ops-per-s = { f32 = 2.5e9 } }\nrefused = \"ERR_NVGPUCTRPERM\"\n";

const METRICS: &str = "ns = 1000.0\nmetrics = { sm_throughput = 8.0, pipe_fp32 = 5.0, dram_throughput = 43.0, \
                       stall_long_scoreboard = 61.0, stall_short_scoreboard = 1.0, stall_barrier = 2.0, dram_read = 600.0, dram_write = 800.0 }";

fn machine() -> Machine {
    Machine { noise: 0.0, says: PEAKS, ..Machine::with(&[(1, 1400.0), (4, 1200.0)]) }.rule("^k<2>", METRICS)
}

fn roofline(lab: &Lab) -> Value {
    let all = lab.target()["rooflines"].as_array().cloned().unwrap_or_default();
    let [one] = &all[..] else { panic!("{all:?}") };
    one.clone()
}

/// The output of a command.
fn told(lab: &Lab, words: &[&str]) -> String {
    let output = lab.project.command(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Gaps in hundredths; -1 where unknown.
fn gaps(roofline: &Value) -> [i64; 3] {
    ["compute", "memory", "latency"]
        .map(|axis| roofline["roofline"]["gaps"][axis].as_f64().map_or(-1, |gap| (gap * 100.0).round() as i64))
}

#[test]
fn a_champion_is_profiled_and_its_gaps_come_from_counters() {
    let lab = Lab::new(&machine());
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=2".into(), false));
    assert_eq!(steps(&built, "profile", "executed"), ids(&["p/k/V=2/h/big/profile"]));
    assert_eq!(steps(&built, "roofline", "executed"), ids(&["p/k/V=2/h/roofline"]));
    let found = roofline(&lab);
    assert_eq!((gaps(&found), &found["roofline"]["bound"]), ([92, 57, 61], &json!("latency")));
    assert_eq!((&found["variant"], &found["shape"]), (&json!("V=2"), &json!("big")));
    assert_eq!(found["roofline"]["from"]["memory"], "counters");
    // Computed from measured values: 1400 bytes moved where 800 suffice, 800 written where 400 suffice.
    let metrics = &found["roofline"]["metrics"];
    assert_eq!((&metrics["traffic_excess"], &metrics["write_excess"]), (&json!(1.75), &json!(2.0)));
    let line = "bound by latency: used compute 8 %, memory 43 %; 61 % of warps wait (by counters)";
    for format in ["text", "markdown"] {
        assert!(told(&lab, &["report", "--format", format]).contains(line));
    }
    let records = lab.records();
    let again = lab.built(&[]);
    assert_eq!((again.count("executed"), lab.records()), (0, records), "and nothing again");
}

#[test]
fn where_counters_are_refused_timing_tells_two_gaps_and_the_build_ends_well() {
    let lab = Lab::new(&Machine { says: REFUSED, ..machine() });
    let built = lab.built(&[]);
    assert_eq!((built.count("unavailable"), built.count("skipped")), (0, 0));
    let found = roofline(&lab);
    assert_eq!((gaps(&found), &found["roofline"]["bound"]), ([92, 57, -1], &json!("memory")));
    assert_eq!(
        found["roofline"]["from"],
        json!({ "compute": "timing of theoretical peaks", "memory": "timing of theoretical peaks" })
    );
    assert_eq!(found["roofline"]["near_peak"], false);
    let line = "bound by memory: used compute 8 %, memory 43 % (by timing of theoretical peaks); waiting unknown (no counters: ERR_NVGPUCTRPERM)";
    assert!(told(&lab, &["report"]).contains(line));
    assert_eq!(lab.built(&["--require-evidence"]).count("executed"), 0);
}

#[test]
fn a_metric_that_is_missing_is_unknown_with_its_reason() {
    let lab =
        Lab::new(&Machine { says: "", ..machine() }.first("^k<2>", "ns = 1000.0\nmetrics = { sm_throughput = 8.0 }"));
    lab.built(&[]);
    let found = roofline(&lab);
    assert_eq!((gaps(&found), &found["roofline"]["bound"]), ([92, -1, -1], &Value::Null));
    let why = found["roofline"]["missing"]["memory"].as_str().unwrap();
    assert!(why.contains("no `dram_throughput`: the device has no such counter"), "{why}");
    assert!(why.contains("does not report the peak of its memory"), "{why}");
}

#[test]
fn without_the_device_a_profile_is_evidence_like_any_other_and_lacking_one_is_no_lack_of_evidence() {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    let report = lab.project.report();
    lab.on(&Machine { device: None, ..machine() });
    let built = lab.built(&["--require-evidence"]);
    assert_eq!((built.count("unavailable"), lab.project.report()), (0, report));
    // Nothing was profiled for another champion.
    let lab = lab.manifest("tune.V = [1, 2, 4]", "tune.V = [1, 4]");
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=4".into(), false));
    assert_eq!(steps(&built, "profile", "unavailable"), ids(&["p/k/V=4/h/big/profile"]));
    assert_eq!(gaps(&roofline(&lab)), [93, 64, -1], "the times are known");
    // Nor was it confirmed, and that is a lack of evidence.
    let built = lab.project.build(&["--require-evidence", "-v"]).expect(103);
    built.says("p/k/V=4/h/big/confirmed/verify: no device").says("  p/k/V=4/h/tiny/confirmed/verify: no device");
    let lab = lab.manifest("tune.V = [1, 4]", "tune.V = [1, 2, 4]");
    assert_eq!(lab.built(&["--require-evidence"]).count("unavailable"), 0);
}

#[test]
fn what_is_provisional_has_no_roofline() {
    let lab = Lab::new(&Machine { device: None, ..machine() });
    let built = lab.built(&[]);
    assert!(champion(&built).1 && built.finished().all(|s| s["kind"] != "profile" && s["kind"] != "roofline"));
    assert_eq!(lab.target()["rooflines"], Value::Null);
}

#[test]
fn the_least_arithmetic_is_part_of_a_benchs_question_where_it_is_stated_and_of_no_other() {
    let lab = Lab::new(&machine());
    let asked = |lab: &Lab, step: &str| lab.project.explain(step)["fields"].to_string();
    let silent = asked(&lab, "p/k/V=2/h/big/bench");
    assert!(!silent.contains("flops_min"), "{silent}");
    lab.built(&[]);
    let lab = lab.manifest("tolerance =", "flops = \"4 * n\"\nflops_min = \"2 * n\"\ntolerance =");
    let stated = lab.built(&[]);
    let asked = asked(&lab, "p/k/V=2/h/big/bench");
    assert!(asked.contains("params.flops_min") && asked.contains("200"), "{asked}");
    let kinds: std::collections::BTreeSet<&str> =
        stated.finished().filter(|s| s["outcome"] == "executed").filter_map(|s| s["kind"].as_str()).collect();
    assert!(kinds.contains("bench") && !kinds.contains("verify") && !kinds.contains("profile"), "{kinds:?}");
}

/// The measured peaks are just over half of the memory's peak, and two fifths of the arithmetic's.
const MEASURED: &str = "peaks = { dram-bytes-per-s = 1.8604651162790698e9, ops-per-s = { f32 = 2.5e9 } }\n\
    measured = { dram-bytes-per-s = { copy = { per_s = 9e8, sustained_per_s = 9e8, with = 'copy' }, read = { per_s = 1e9, sustained_per_s = 9e8, with = 'read' } }, \
    ops-per-s = { f32 = { per_s = 1e9, sustained_per_s = 9e8, with = 'fma' } } }\nrefused = \"ERR_NVGPUCTRPERM\"\n";

#[test]
fn what_a_device_does_at_most_is_measured_once_and_rooflines_are_of_that() {
    let lab = Lab::new(&Machine { says: MEASURED, ..machine() });
    let built = lab.built(&[]);
    assert_eq!(steps(&built, "peaks", "executed"), ids(&["p/h/peaks"]));
    let found = roofline(&lab);
    // The kernel writes as much as it reads, so the copy rate is its ceiling.
    assert_eq!(gaps(&found), [80, 11, -1]);
    let measured = "timing of measured peaks";
    assert_eq!(found["roofline"]["from"], json!({ "compute": measured, "memory": measured }));
    let reached = &found["achieved"]["big"];
    assert_eq!((&reached["time_ns"], &reached["bytes_per_s"]), (&json!(1000.0), &json!(8e8)), "{found}");
    let of = |what: &str| reached["memory"][what].as_f64().unwrap();
    assert!((of("share") - 8.0 / 9.0).abs() < 1e-9 && (of("peak_per_s") - 9e8).abs() < 1.0, "{reached}");
    assert_eq!((of("written"), &reached["memory"]["measured"]), (0.5, &json!(true)));
    assert_eq!(found["roofline"]["achieved"], Value::Null, "shapes have names");
    let line = "0.8 GB/s, 89 % of measured 0.9 GB/s at half written; 0.2 G/s of f32, 20 % of measured 1.0 G/s";
    for format in ["text", "markdown"] {
        let told = told(&lab, &["report", "--format", format]);
        assert!(told.contains(line), "{told}");
    }
    // The question is about only the device: no kernel, and no change of one, asks it again.
    let records = lab.records();
    let lab = lab.manifest("tune.V = [1, 2, 4]", "tune.V = [1, 4]");
    let built = lab.built(&[]);
    assert_eq!(champion(&built).0, "V=4");
    assert!(lab.records() > records && steps(&built, "peaks", "executed").is_empty());
    // The observation is exported and imported like other evidence.
    lab.on(&Machine { device: None, says: MEASURED, ..machine() });
    assert_eq!(lab.built(&["--require-evidence"]).count("unavailable"), 0);
    assert_eq!(roofline(&lab)["roofline"]["from"]["memory"], measured);
}
