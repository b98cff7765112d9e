//! Rounds by the agent `rules` on a device that times: a naive start, methods turned on round by round, each classified, and a second run that asks and measures
//! nothing.

use serde_json::Value;

use crate::lab::{Lab, Machine, champion, steps};
use crate::project::{Built, ids};

/// Three methods, each a tunable, over a start that has none of them.
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

/// Vectorised access saves half, the pipeline a quarter of what is left, unrolling nothing.
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
    // Without a record there is only the start, and what comes next is missing.
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
    // A selection after each round, and the decision before each; the last says why it ends.
    for id in ["p/k/h/r0/select", "p/k/h/select", "p/k/h/r1/round", "p/k/h/r2/round"] {
        assert_ne!(of(&built, id)["result"], Value::Null, "{id}");
    }
    assert!(built.stderr().contains("no method is left"), "{}", built.stderr());
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
    // Without a device nothing can be tried: the command says so rather than going on by guesses.
    let lab = self::lab();
    lab.on(&Machine { device: None, ..machine() });
    optimize(&lab).expect(0).says("nothing can be measured");
}

#[test]
fn a_round_that_makes_nothing_faster_keeps_the_champion_and_its_candidates_fail_no_build() {
    let lab = lab();
    // All that is tried is wrong.
    let wrong =
        machine().first("^k<\\d+, ?4", "ns = 100.0\nerror = 1.0").first("true, ?\\d+>", "ns = 100.0\nerror = 1.0");
    lab.on(&wrong.first(", ?8>", "ns = 100.0\nerror = 1.0"));
    let built = optimize(&lab).expect(0);
    assert_eq!(champion(&built).0, "BLOCK=32,V=1,P=false,U=1");
    assert!(
        built.finished().any(|s| s["kind"] == "judge" && s["verdict"]["fail"].is_string() && s["labels"]["round"] == 1)
    );
}
