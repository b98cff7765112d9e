//! Baselines beside champions in Triton: timed in pairs with them as with champions in CUDA C++, also where both implement one operator. The virtual device
//! stands in for the process with PyTorch and for Triton's compiler.

use std::fs;

use serde_json::{Value, json};

use crate::baselined::{BASELINES, FAST, RULES, python, told};
use crate::lab::{Lab, Machine, steps};
use crate::packaged_triton::wheels;
use crate::project::ids;

/// A kernel in Triton of the operator that `k` implements in CUDA C++.
const KERNEL: &str = r#"
[kernel.t]
operator = "twice"
language = "triton"
source = "own/t.py"
targets = ["h"]
tune.W = [1, 2]

[[kernel.t.launch]]
entry = "t"
grid = ["ceil_div(n, 64)"]
args = ["x", "y", "n"]
constexprs = { BLOCK = 64 }
options = { num_warps = "W" }
"#;

/// A second function of global scratch, whose size only the machine code says.
const SOURCE: &str = "#pragma fact t shared 1024\n#pragma fact t scratch 384\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef t(x, y, n, BLOCK: tl.constexpr):\n    pass\n";

/// A machine on which the kernel in Triton takes this time with one warp, and that in CUDA C++ a microsecond.
fn machine(ns: f64) -> Machine {
    Machine { noise: 0.0, ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]) }
        .rule("^t grid 2,1,1 block 32,1,1", &format!("ns = {ns:.1}"))
        .rule("^t grid", "ns = 4000.0")
}

/// The package of [`crate::lab::MANIFEST`] with the kernel in Triton beside, and baselines.
fn lab(ns: f64) -> Option<Lab> {
    let lab = Lab::new(&machine(ns));
    let scenario = fs::read_to_string(&lab.scenario).unwrap();
    // In a folder of their own: a baseline may import every Python file below its own.
    let beside = |text: &str| text.replace("fast.py::", "pt/fast.py::");
    fs::write(&lab.scenario, scenario + &beside(RULES)).unwrap();
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{KERNEL}{}", beside(BASELINES)));
    lab.project.write("own/t.py", SOURCE);
    lab.project.write("pt/fast.py", FAST);
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/triton/kforge.lock")).unwrap();
    lab.project.write("kforge.lock", &lock);
    wheels(&lab);
    let python = python(&lab, "2.11.0")?;
    Some(Lab { project: lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", python), ..lab })
}

/// What the report says of a kernel's baselines, by name.
fn rated(lab: &Lab, kernel: &str) -> Value {
    let report = lab.project.report_value();
    let kernels = report["packages"][0]["kernels"].as_array().unwrap();
    let of = kernels.iter().find(|one| one["name"] == kernel).unwrap();
    let all = of["targets"][0]["baselines"].as_array().cloned().unwrap_or_default();
    Value::Object(all.into_iter().map(|one| (one["baseline"].as_str().unwrap().to_string(), one)).collect())
}

const AT: &str = "p/t/W=1/h/big/against";

#[test]
fn baselines_are_timed_in_pairs_with_a_champion_in_triton() {
    let Some(lab) = lab(500.0) else { return };
    let built = lab.built(&[]);
    let beside = |id: &&String| id.starts_with("p/t/");
    let of_triton: Vec<String> = steps(&built, "baseline", "executed").iter().filter(beside).cloned().collect();
    assert_eq!(of_triton, ["eager", "tuned", "wrong"].map(|name| format!("{AT}/{name}/baseline")));
    let found = rated(&lab, "t");
    let eager = &found["eager"];
    assert_eq!((&eager["shape"], &eager["variant"]), (&json!("big"), &json!("W=1")));
    let rating = &eager["rating"];
    assert_eq!(rating["verdict"], "pass", "{rating}");
    assert_eq!((rating["ratio"]["median"].as_f64().unwrap() * 1000.0).round(), 6000.0, "pairs of device times");
    assert_eq!((&rating["call_ns"], &rating["device_ns"]), (&json!(9000.0), &json!(3000.0)));
    assert_eq!((&rating["champion_ns"], &rating["of_calls"]), (&json!(500.0), &Value::Null));
    assert_eq!(rating["versions"]["torch"], "2.11.0");
    let wrong = &found["wrong"]["rating"];
    assert!(wrong["verdict"]["fail"].as_str().unwrap().contains("`y`") && wrong["ratio"].is_null(), "{wrong}");
    let text = told(&lab, &["report", "--kernel", "t"], 0);
    assert!(
        text.contains("big  eager  call   9.00 us, device   3.00 us  6.000 (6.000 to 6.000) of the champion's 500 ns"),
        "{text}"
    );
    let score = told(&lab, &["report", "--score", "speedup", "--baseline", "eager", "--kernel", "t"], 0);
    assert!(score.contains("6.000"), "{score}");
    assert_eq!(lab.built(&[]).count("executed"), 0, "and nothing again");
}

#[test]
fn kernels_in_cuda_and_triton_of_one_operator_compete_each_beside_its_baselines() {
    let Some(lab) = lab(900.0) else { return };
    lab.built(&[]);
    let report = lab.project.report_value();
    let leader = &report["packages"][0]["leaders"][0];
    assert_eq!((&leader["kernel"], &leader["others"][0]["kernel"]), (&json!("t"), &json!("k")), "{leader}");
    let ratio = |kernel: &str| {
        let found = rated(&lab, kernel)["eager"]["rating"]["ratio"]["median"].as_f64().unwrap();
        (found * 1000.0).round() as i64
    };
    assert_eq!((ratio("k"), ratio("t")), (3000, 3333));
}

#[test]
fn an_edit_of_a_kernel_in_triton_times_its_baselines_again_and_those_of_no_other_kernel() {
    let Some(lab) = lab(500.0) else { return };
    lab.built(&[]);
    lab.project.edit("own/t.py", "t shared 1024", "t shared 2048");
    let all = ["eager", "tuned", "wrong"].map(|name| format!("{AT}/{name}/baseline"));
    assert_eq!(steps(&lab.built(&[]), "baseline", "executed"), ids(&all.each_ref().map(String::as_str)));
}
