//! Rounds by the agent `rules` on a device that times: a naive start, methods turned on round by round, each attributed, and a second run that asks and
//! measures nothing.

use serde_json::Value;

use crate::lab::{Lab, Machine, champion, steps};
use crate::project::{Built, ids};

/// Three methods, each with a tunable; the start has none of them.
const KERNEL: &str = r#"
[kernel.k]
operator = "twice"
source = "k.cu"
targets = ["h"]
generate = { agent = "rules", rounds = 3, branches = 2 }
tune = { BLOCK = [32, 64], V = [1, 4], P = [false, true], U = [1, 8] }
launch = [{ entry = "k<BLOCK,V,P,U>", grid = ["n"], block = ["BLOCK"], args = ["x", "y", "n"] }]

[kernel.k.methods."memory.vectorized_access"]
off = { V = 1 }
sass.any = ['LDG\.E\.128']

[kernel.k.methods."latency.async_pipeline"]
off = { P = false }
sass.any = ['LDGSTS']

[kernel.k.methods."compute.ilp_unroll_register_tile"]
off = { U = 1 }
sass.any = ['FFMA']
"#;

const SOURCE: &str = "#pragma sass k<\\d+,4,\\w+,\\d+> LDG.E.128 2\n#pragma sass k<\\d+,\\d+,true,\\d+> LDGSTS 4\n#pragma sass k<\\d+,\\d+,\\w+,8> FFMA 64\n\
    template <int BLOCK, int V, bool P, int U> __global__ void k(const float *x, float *y, int n) {}\n";

/// Vectorized access saves half, the pipeline a quarter of the rest, and unrolling nothing.
fn machine() -> Machine {
    let peaks = "peaks = { dram-bytes-per-s = 1e12, ops-per-s = { f32 = 1e13 } }\n";
    let mut machine = Machine { noise: 0.002, says: peaks, ..Machine::default() };
    for (v, p, ns) in [("4", "true", 3000.0), ("4", "false", 4000.0), ("1", "true", 7000.0), ("1", "false", 8000.0)] {
        machine = machine.rule(&format!("^k<\\d+, ?{v}, ?{p}, ?\\d+>"), &format!("ns = {ns:.1}"));
    }
    machine
}

fn lab() -> Lab {
    let lab = Lab::new(&machine());
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let operator = &manifest[..manifest.find("[kernel.k]").unwrap()];
    lab.project.write("kernel.toml", &format!("{operator}{KERNEL}"));
    lab.project.write("k.cu", SOURCE);
    lab
}

fn optimize(lab: &Lab) -> Built {
    let words = ["optimize", "--offline", "--message-format", "json"];
    Built::last_of(&lab.project.command(&words).output().unwrap())
}

fn of<'b>(built: &'b Built, id: &str) -> &'b Value {
    built.finished().find(|s| s["id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn rounds_turn_methods_on_until_none_is_left_and_say_what_each_buys() {
    let lab = lab();
    // Without recorded rounds there is only the start, and the next round is missing.
    let before = lab.built(&[]);
    assert_eq!(champion(&before), ("BLOCK=32,V=1,P=false,U=1".into(), false));
    assert_eq!(steps(&before, "bench", "executed").len(), 1);
    assert!(of(&before, "p/k/h/r1/generate")["outcome"]["unavailable"].as_str().unwrap().contains("kforge optimize k"));

    let built = optimize(&lab).expect(0);
    let (variant, provisional) = champion(&built);
    assert!(variant.contains("V=4,P=true") && !provisional, "{variant}");
    let fates = lab.built(&[]);
    assert_eq!(fates.count("executed"), 0, "{:?}", fates.executed());
    let fates = lab.fates();
    assert_eq!(fates["memory.vectorized_access"].0, "effective", "{fates:?}");
    assert_eq!(fates["latency.async_pipeline"].0, "effective", "{fates:?}");
    assert_eq!(fates["compute.ilp_unroll_register_tile"].0, "ineffective", "{fates:?}");
    // There is a selection after each round and a decision before each. The last decision states why the rounds end.
    for id in ["p/k/h/r0/select", "p/k/h/select", "p/k/h/r1/round", "p/k/h/r2/round"] {
        assert_ne!(of(&built, id)["result"], Value::Null, "{id}");
    }
    assert!(built.stderr().contains("no method is left"), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: many builds"]
fn a_method_that_spoils_every_kernel_that_has_it_does_not_keep_the_others_out() {
    let lab = lab();
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &manifest.replace("rounds = 3", "rounds = 8"));
    // Unrolling is wrong, and the first round tries all three methods at once.
    lab.on(&machine().first(", ?8>", "ns = 100.0\nerror = 1.0"));
    let built = optimize(&lab).expect(0);
    let (variant, _) = champion(&built);
    assert!(variant.contains("V=4,P=true,U=1"), "{variant}: {}", built.stderr());
    let fates = lab.fates();
    assert_eq!(
        (fates["memory.vectorized_access"].0.as_str(), fates["latency.async_pipeline"].0.as_str()),
        ("effective", "effective")
    );
    assert!(built.stderr().contains("no method is left"), "{}", built.stderr());
}

#[test]
fn a_method_whose_every_variant_was_tried_takes_no_slot() {
    let lab = lab();
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    // One variant has the first two methods, and one the third. The first round tries the first variant, which is wrong.
    let space = "tune = { BLOCK = [32], V = [1, 4], P = [false, true], U = [1, 8], where = [\"P or V == 1\", \"V == 4 or not P\", \"U == 1 or not P\"] }";
    let tune = "tune = { BLOCK = [32, 64], V = [1, 4], P = [false, true], U = [1, 8] }";
    assert!(manifest.contains(tune));
    lab.project.write("kernel.toml", &manifest.replace(tune, space).replace("rounds = 3", "rounds = 8"));
    lab.on(&machine().first("^k<\\d+, ?4", "ns = 100.0\nerror = 1.0").first("1, ?false, ?8>", "ns = 2000.0"));
    let built = optimize(&lab).expect(0);
    assert_eq!(champion(&built).0, "BLOCK=32,V=1,P=false,U=8", "{}", built.stderr());
}

#[test]
fn a_second_run_and_a_build_without_the_device_measure_nothing_and_say_the_same() {
    let lab = lab();
    let first = champion(&optimize(&lab).expect(0));
    let records = lab.records();
    let again = optimize(&lab).expect(0);
    assert_eq!((champion(&again), again.count("executed"), lab.records()), (first.clone(), 0, records));
    lab.on(&Machine { device: None, ..machine() });
    let away = lab.built(&[]);
    assert_eq!((champion(&away), away.executed()), (first, ids(&[])));
    // Without a device nothing can be tried. The command reports that and does not continue with guesses.
    let lab = self::lab();
    lab.on(&Machine { device: None, ..machine() });
    optimize(&lab).expect(0).says("Unchanged p/k/h: nothing can be measured");
}

#[test]
fn a_round_that_makes_nothing_faster_keeps_the_champion_and_its_candidates_fail_no_build() {
    let lab = lab();
    // Every variant that is tried is wrong.
    let wrong =
        machine().first("^k<\\d+, ?4", "ns = 100.0\nerror = 1.0").first("true, ?\\d+>", "ns = 100.0\nerror = 1.0");
    lab.on(&wrong.first(", ?8>", "ns = 100.0\nerror = 1.0"));
    let built = optimize(&lab).expect(0);
    assert_eq!(champion(&built).0, "BLOCK=32,V=1,P=false,U=1");
    assert!(
        built.finished().any(|s| s["kind"] == "judge" && s["verdict"]["fail"].is_string() && s["labels"]["round"] == 1)
    );
}

#[test]
fn a_report_shows_the_bottleneck_the_candidates_and_what_became_of_each_method() {
    let lab = lab();
    let built = optimize(&lab).expect(0);
    let target = lab.target();
    let found = &target["rounds"];
    assert_eq!(found["shape"], "big");
    let rounds = found["rounds"].as_array().unwrap();
    assert!(rounds.len() >= 2, "{found}");
    assert_eq!(rounds[0]["champion"], "BLOCK=32,V=1,P=false,U=1");
    assert!((rounds[0]["time_ns"].as_f64().unwrap() - 8000.0).abs() < 200.0, "{found}");
    let gains: f64 = rounds[1..].iter().filter_map(|r| r["gain"].as_f64()).product();
    assert!((gains - 8.0 / 3.0).abs() < 0.1, "{found}");
    assert!(!rounds[1]["methods"].as_array().unwrap().is_empty() && !rounds[1]["gaps"]["memory"].is_null(), "{found}");
    assert_eq!(rounds.last().unwrap()["champion"].as_str().unwrap(), champion(&built).0);
    // Every candidate is a descendant of the champion before it, and one candidate is the final champion.
    let candidates = found["candidates"].as_array().unwrap();
    for of in candidates.iter().filter(|c| c["round"].as_u64().unwrap() > 0) {
        let before = of["round"].as_u64().unwrap() as usize - 1;
        assert_eq!(of["parent"], rounds[before]["champion"], "{found}");
        assert_eq!(of["became"], "right", "{found}");
    }
    let fates: Vec<&str> = found["methods"].as_array().unwrap().iter().filter_map(|m| m["fate"].as_str()).collect();
    assert_eq!(fates, ["ineffective", "effective", "effective"], "{found}");
    assert!(found["over"].as_str().unwrap().contains("no method is left"), "{found}");
    let say = |words: &[&str]| String::from_utf8(lab.project.command(words).output().unwrap().stdout).unwrap();
    let text = say(&["report"]);
    for part in
        ["start: BLOCK=32,V=1,P=false,U=1 8.0", "round 1: used compute", "times as fast", "champion after round"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let markdown = say(&["report", "--format", "markdown"]);
    assert!(markdown.contains("| round | used before | tried | candidates | champion after |"), "{markdown}");
    // A build summarizes the rounds in one line.
    let told = lab.project.command(&["build", "--offline"]).output().unwrap();
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(
        told.contains("times as fast as the start; `kforge report` shows them") && !told.contains("round 1:"),
        "{told}"
    );
}

#[test]
fn wrong_candidates_are_told_of_in_the_tree_and_nowhere_else() {
    let lab = lab();
    let wrong =
        machine().first("^k<\\d+, ?4", "ns = 100.0\nerror = 1.0").first("true, ?\\d+>", "ns = 100.0\nerror = 1.0");
    lab.on(&wrong.first(", ?8>", "ns = 100.0\nerror = 1.0"));
    optimize(&lab).expect(0);
    let target = lab.target();
    let candidates = target["rounds"]["candidates"].as_array().unwrap();
    let wrong: Vec<&Value> = candidates.iter().filter(|c| c["became"] == "wrong").collect();
    assert!(!wrong.is_empty() && wrong.iter().all(|c| c["because"].as_str().unwrap().starts_with("at ")), "{target}");
    let shapes = target["shapes"].as_array().unwrap();
    assert!(shapes.iter().all(|s| s["variant"] == "BLOCK=32,V=1,P=false,U=1"), "{target}");
}

#[test]
fn what_was_accepted_stands_alone_until_it_is_freed() {
    let lab = lab();
    let first = champion(&optimize(&lab).expect(0));
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let accept =
        |words: &[&str]| Built::last_of(&lab.project.command(&[&["accept", "k"], words].concat()).output().unwrap());
    accept(&[]).expect(0).says("in kforge.lock");
    assert_eq!(std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap(), manifest);
    let records = lab.records();
    // The rounds and their records are no longer needed.
    std::fs::remove_dir_all(lab.project.home().join("answers")).unwrap();
    let built = lab.built(&[]);
    assert_eq!(champion(&built), first);
    // The former candidate is the package's own now, and compiled as such. Its binary is the same.
    let kinds: Vec<String> = built.executed_kinds().into_keys().collect();
    assert!(kinds.iter().all(|kind| ["compile", "select"].contains(&kind.as_str())), "{kinds:?}");
    assert!(
        built.finished().all(|s| !id_of(s).contains("/round") && !id_of(s).contains("/r0/")),
        "{:?}",
        built.executed()
    );
    assert_eq!((lab.records(), lab.target()["accepted"].as_bool()), (records, Some(true)));
    optimize(&lab).expect(0).says("`kforge accept k --undo` releases it");
    accept(&["--undo"]).expect(0);
    assert_eq!(champion(&lab.built(&[])).0, "BLOCK=32,V=1,P=false,U=1", "its rounds have no record any more");
}

#[test]
fn candidates_are_remembered_with_their_speed_their_methods_and_after_they_were_accepted() {
    let lab = lab();
    let first = champion(&optimize(&lab).expect(0)).0;
    let listed = || -> Vec<Value> {
        let output = lab.project.command(&["candidates", "--message-format", "json"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = listed();
    let of =
        |variant: &str| all.iter().find(|c| c["variant"] == variant).unwrap_or_else(|| panic!("{variant}: {all:?}"));
    let start = of("BLOCK=32,V=1,P=false,U=1");
    assert_eq!((&start["round"], &start["champion"], &start["speedup"]), (&0.into(), &true.into(), &1.0.into()));
    assert_eq!((&start["methods"], &start["chain"]), (&serde_json::json!([]), &Value::Null));
    let best = of(&first);
    assert!((best["speedup"].as_f64().unwrap() - 8.0 / 3.0).abs() < 0.1, "{best}");
    assert!((best["time_ns"].as_f64().unwrap() - 3000.0).abs() < 100.0 && best["became"] == "right", "{best}");
    let methods = best["methods"].as_array().unwrap();
    assert!(methods.contains(&"memory.vectorized_access".into()) && best["chain"].is_string(), "{best}");
    // An accepted variant is built without its rounds, which are still remembered.
    lab.project.command(&["accept", "k"]).output().unwrap();
    lab.built(&[]);
    let after = listed();
    for tried in all.iter().filter(|c| c["round"].as_u64().unwrap() > 0) {
        assert!(after.contains(tried), "{tried} in {after:?}");
    }
    let stands = after.iter().find(|c| c["round"] == 0).unwrap();
    assert_eq!((&stands["variant"], &stands["became"]), (&first.as_str().into(), &"right".into()));
}

#[test]
fn a_champion_without_rounds_is_remembered_by_how_much_faster_than_the_first_it_is() {
    let lab = lab();
    let manifest = std::fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let (before, after) = manifest.split_once("generate = {").unwrap();
    let after = after.split_once('\n').unwrap().1;
    lab.project.write("kernel.toml", &format!("{before}\n{after}"));
    let built = lab.built(&[]);
    let output = lab.project.command(&["candidates", "--message-format", "json"]).output().unwrap();
    let one: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((one["variant"].as_str().unwrap(), &one["became"]), (champion(&built).0.as_str(), &"right".into()));
    assert!((one["speedup"].as_f64().unwrap() - 8.0 / 3.0).abs() < 0.1, "{one}");
}

fn id_of(step: &Value) -> &str {
    step["id"].as_str().unwrap()
}

#[test]
#[ignore = "second tier: many builds"]
fn a_trajectory_has_the_failed_confirmation_of_a_champion_in_place_of_the_pass() {
    let verdicts = |says: &str| -> Vec<Value> {
        let lab = lab();
        lab.on(&machine().first("^k<\\d+, ?4, ?true", &format!("ns = 3000.0\n{says}")));
        optimize(&lab);
        let output = lab.project.command(&["export", "trajectories", "--offline"]).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let tried = |line: &str| serde_json::from_str::<Value>(line).unwrap()["candidates"].as_array().unwrap().clone();
        let all = lines.lines().flat_map(tried).filter(|c| c["champion"] == true);
        all.flat_map(|c| c["verdicts"].as_array().unwrap().clone()).collect()
    };
    let passes = verdicts("");
    assert!(!passes.is_empty() && passes.iter().all(|v| v["verdict"] == "pass"), "{passes:?}");
    let failed = verdicts("isolated-error = 1.0");
    let fails = failed.iter().filter(|v| v["verdict"] == "fail" && !v["explanation"].as_str().unwrap().is_empty());
    assert!(fails.count() >= 2, "{failed:?}");
}

#[test]
fn timed_attempts_have_rewards_and_returns_and_are_filtered_by_their_times() {
    let lab = lab();
    lab.on(&machine().first("^k<64, ?4, ?true", "ns = 3600.0"));
    optimize(&lab);
    let export = |words: &[&str]| -> Vec<Value> {
        let output = lab.project.command(&[&["export", "trajectories", "--offline"], words].concat()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = export(&["--discount", "0.5"]);
    assert!(!all.is_empty() && all.iter().all(|t| t["groups"]["rollout"] == all[0]["groups"]["rollout"]), "{all:?}");
    let value = |of: &Value| {
        assert_eq!(of["at_least"], of["at_most"], "{of}");
        of["at_least"].as_f64().unwrap()
    };
    for (turn, later) in all.iter().zip(all.iter().skip(1).map(Some).chain([None])) {
        let best =
            turn["candidates"].as_array().unwrap().iter().map(|c| c["speedup"].as_f64().unwrap()).fold(0.0, f64::max);
        let reward = value(&turn["turn"]["rewards"]["logistic"]);
        assert!((reward - best / (1.0 + best)).abs() < 1e-9, "{turn}");
        let after = later.map_or(0.0, |later| value(&later["turn"]["returns"]["logistic"]));
        assert!((value(&turn["turn"]["returns"]["logistic"]) - reward - 0.5 * after).abs() < 1e-9, "{turn}");
        // All launches are the kernel's own, so the profiling ratio is known.
        assert!(turn["candidates"].as_array().unwrap().iter().all(|c| value(&c["rewards"]["weighted"]) >= 0.75));
        assert!(value(&turn["turn"]["rewards"]["smoothed"]).abs() <= 1.5);
    }
    let times: Vec<f64> =
        all.iter().flat_map(|t| t["candidates"].as_array().unwrap()).filter_map(|c| c["time_ns"].as_f64()).collect();
    let within = export(&["--runtime", "..3500ns"]);
    let kept = within.iter().flat_map(|t| t["candidates"].as_array().unwrap()).map(|c| c["time_ns"].as_f64().unwrap());
    assert_eq!(kept.collect::<Vec<_>>(), times.iter().copied().filter(|ns| *ns <= 3500.0).collect::<Vec<_>>());
    assert!(times.iter().any(|ns| *ns <= 3500.0) && times.iter().any(|ns| *ns > 3500.0), "{times:?}");
    assert_eq!((export(&["--balance=1"]).len(), export(&["--runtime", "..2us"]).len()), (1, 0));
}
