//! Kernels in PyTorch on a device: which steps they have, what their verifications are keyed by, and what is said where there is no device or no PyTorch for it.
//! The system's PyTorch is a module of this test in a virtual environment; the virtual device stands in for the process that would import it.

use std::fs;

use serde_json::{Value, json};

use crate::baselined::{python, told};
use crate::lab::{Lab, Machine, steps};
use crate::project::Built;

const KERNEL: &str = r#"
[kernel.fast]
operator = "twice"
language = "torch"
source = "own/fast.py::Fast"
"#;

const FAST: &str =
    "from helper import twice\n\n\nclass Fast:\n    def forward(self, x):\n        return twice(x) + 1\n";
const DEVICE: &str = "import triton\n\n\n@triton.jit\ndef twice(x):\n    pass\n";
const HELPER: &str = "# Doubles.\ndef twice(x):\n    return 2 * x\n";

/// The package with a kernel in PyTorch beside the one in CUDA C++.
pub(crate) fn lab(machine: Machine) -> Option<Lab> {
    let lab = Lab::new(&machine);
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{KERNEL}"));
    lab.project.write("own/fast.py", FAST);
    lab.project.write("own/helper.py", HELPER);
    let python = python(&lab, "2.11.0")?;
    Some(Lab { project: lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", python), ..lab })
}

pub(crate) fn machine(says: &str) -> Machine {
    Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]).rule("^Fast in PyTorch on Virtual H$", says)
}

/// What the report says of the kernel in PyTorch.
pub(crate) fn target(lab: &Lab) -> Value {
    let report = lab.project.report_value();
    let kernels = report["packages"][0]["kernels"].as_array().unwrap();
    kernels.iter().find(|kernel| kernel["name"] == "fast").unwrap()["targets"][0].clone()
}

/// The ids of the executed steps of the kernel in PyTorch.
fn executed(built: &Built) -> Vec<String> {
    built.executed().into_iter().filter(|id| id.starts_with("p/fast/")).collect()
}

const VERIFIED: [&str; 2] = ["p/fast/h/big/verify", "p/fast/h/tiny/verify"];

#[test]
fn a_kernel_in_pytorch_is_verified_on_a_device_and_its_calls_are_timed_at_bench_shapes() {
    let Some(lab) = lab(machine("ns = 1.0")) else { return };
    let built = lab.built(&[]);
    let kinds = |kind: &str| -> Vec<String> {
        steps(&built, kind, "executed").into_iter().filter(|id| id.starts_with("p/fast/")).collect()
    };
    assert_eq!(kinds("verify"), VERIFIED, "once at each shape, each in processes of its own");
    for kind in ["bench", "pairs", "profile", "fatbin", "baseline"] {
        assert_eq!(kinds(kind), [""; 0], "{kind}");
    }
    assert!(!steps(&built, "bench", "executed").is_empty(), "the other kernel is timed");
    let target = target(&lab);
    assert_eq!(target["champions"][0]["provisional"], false, "{target}");
    assert!(target["times"].as_array().is_none_or(Vec::is_empty), "calls are no device times: {target}");
    assert!(target["basis"]["called"].as_bool().unwrap(), "{target}");
    for shape in target["shapes"].as_array().unwrap() {
        assert_eq!((&shape["verdict"], &shape["emulated"]), (&json!("pass"), &json!(false)), "{shape}");
        assert!(shape["no_fresh"].is_null(), "{shape}");
    }
    assert_eq!(target["observed_on"].as_array().map(Vec::len), Some(1), "{target}");
    assert_eq!(kinds("calls"), ["p/fast/h/big/confirmed/calls"]);
    let calls = target["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["shape"], &calls[0]["hand_over_ns"]), (1, &json!("big"), &json!(20_000.0)));
    assert!(calls[0]["call_ns"].as_f64().unwrap() > 0.0 && calls[0]["interval"].is_array(), "{target}");
    let confirmed = |shape: &str| {
        let shapes = target["shapes"].as_array().unwrap();
        shapes.iter().find(|of| of["shape"] == shape).unwrap()["confirmed"].clone()
    };
    assert_eq!((confirmed("big"), confirmed("tiny")), (json!(true), Value::Null));
    assert_eq!(lab.built(&[]).count("executed"), 0);
}

#[test]
fn a_wrong_timed_call_fails_a_kernel_in_pytorch() {
    let Some(lab) = lab(machine("fault = \"evades\"")) else { return };
    let built = lab.project.build(&["--keep-going"]);
    assert_eq!(built.code(), 100);
    let target = target(&lab);
    let shapes = target["shapes"].as_array().unwrap();
    let big = shapes.iter().find(|of| of["shape"] == "big").unwrap();
    let why = big["verdict"]["fail"].as_str().unwrap();
    assert!(why.starts_with("when its calls are timed: `y` is wrong"), "{why}");
    assert!(target["calls"].is_null(), "what is wrong has no time: {target}");
}

/// The package, whose kernel in PyTorch has this policy and launches these kernels.
fn under(policy: &str, launched: &str) -> Option<Lab> {
    let lab = lab(machine(&format!("ns = 1.0\nlaunched = {launched}")))?;
    lab.project.write("own/device.py", DEVICE);
    Some(lab.manifest("source = \"own/fast.py::Fast\"", &format!("source = \"own/fast.py::Fast\"\npolicy = {policy}")))
}

/// The verdict at the bench shape, and whether it is confirmed.
fn big(lab: &Lab) -> (Value, Value) {
    let target = target(lab);
    let shapes = target["shapes"].as_array().unwrap();
    let big = shapes.iter().find(|of| of["shape"] == "big").unwrap();
    (big["verdict"].clone(), big["confirmed"].clone())
}

#[test]
#[ignore = "second tier: many builds"]
fn a_kernel_in_pytorch_whose_own_kernels_take_too_little_of_the_time_fails_and_names_what_takes_it() {
    let slight = "{ twice = 10.0, nvjet_x = 90.0 }";
    let Some(lab) = under("{}", slight) else { return };
    assert_eq!(lab.project.build(&["--keep-going"]).code(), 100);
    let why = "its own kernels take 10.0 % of the device time of its calls, less than the 30.0 % of its policy: `nvjet_x` (cublas) 90.0 %";
    assert_eq!(big(&lab).0["fail"], why);
    let Some(lenient) = under("{ own_share = 0.05 }", slight) else { return };
    lenient.built(&[]);
    assert_eq!(big(&lenient), (json!("pass"), json!(true)));
    let own = target(&lenient)["calls"][0]["own"].clone();
    assert_eq!((&own["at_least"], &own["at_most"]), (&json!(0.1), &json!(0.1)), "{own}");
    let said = told(&lenient, &["report"], 0);
    assert!(said.contains("its own kernels take 10.0 % of 100 ns of the device a call: `nvjet_x` (cublas)"), "{said}");
    assert_eq!(lenient.built(&[]).count("executed"), 0);
    // Another policy judges the same observation.
    let stricter = lenient.manifest("own_share = 0.05", "own_share = 0.2");
    let built = stricter.project.build(&["--keep-going"]);
    assert_eq!((built.code(), steps(&built, "calls", "executed").len()), (100, 0));
}

#[test]
fn a_name_of_a_library_in_a_comment_or_a_text_is_no_kernel_of_its_own() {
    let launched = "{ twice = 30.0, gemv2T_kernel_val = 70.0 }";
    let named = |text: &str| {
        let lab = under("{ libraries = [\"torch\"] }", launched)?;
        lab.project.write("own/device.py", &format!("{DEVICE}\n\n{text}\n"));
        Some(lab)
    };
    let Some(commented) = named("# __global__ void gemv2T_kernel_val() {}\n'Calls gemv2T_kernel_val.'") else { return };
    assert_eq!(commented.project.build(&["--keep-going"]).code(), 100);
    let why = big(&commented).0["fail"].as_str().unwrap().to_string();
    assert!(why.contains("does not allow kernels that its calls launch: `gemv2T_kernel_val` (cublas) 70.0 %"), "{why}");
    // A function of that name, which may or may not be what is launched.
    let Some(defined) = named("TEXT = '__global__ void gemv2T_kernel_val() {}'") else { return };
    defined.built(&[]);
    let shape = target(&defined)["shapes"].as_array().unwrap().iter().find(|of| of["shape"] == "big").unwrap().clone();
    let why = shape["not_confirmed"].to_string() + &shape["verdict"].to_string();
    assert!(why.contains("does not list: `gemv2T_kernel_val` (of unknown origin) 70.0 %"), "{shape}");
    assert!(shape["confirmed"].is_null(), "{shape}");
}

#[test]
fn a_library_that_a_policy_does_not_list_fails_and_what_is_not_recorded_is_unknown() {
    let Some(lab) = under("{ libraries = [\"torch\"] }", "{ twice = 99.0, nvjet_x = 1.0 }") else { return };
    assert_eq!(lab.project.build(&["--keep-going"]).code(), 100);
    assert!(big(&lab).0["fail"].as_str().unwrap().contains("does not allow kernels that its calls launch: `nvjet_x`"));
    let Some(unknown) = under("{}", "{}") else { return };
    unknown.built(&[]);
    let target = target(&unknown);
    let shapes = target["shapes"].as_array().unwrap();
    let big = shapes.iter().find(|of| of["shape"] == "big").unwrap();
    let why = big["not_confirmed"].to_string() + &big["verdict"].to_string();
    assert!(why.contains("whether it keeps to its policy"), "{big}");
}

#[test]
fn a_wrong_kernel_in_pytorch_fails_on_a_device() {
    let Some(lab) = lab(machine("error = 1.0")) else { return };
    let built = lab.project.build(&["--keep-going"]);
    assert_eq!(built.code(), 100);
    let target = target(&lab);
    assert!(target["shapes"][0]["verdict"]["fail"].as_str().unwrap().starts_with("`y` is wrong"), "{target}");
    assert!(target["champions"][0]["variant"].is_null(), "{target}");
}

#[test]
fn a_verification_on_a_device_is_keyed_by_the_kernel_and_by_what_pytorch_uses_there() {
    let Some(lab) = lab(machine("ns = 1.0")) else { return };
    lab.built(&[]);
    let again = |edit: &dyn Fn()| {
        edit();
        let built = lab.built(&[]);
        executed(&built).into_iter().filter(|id| id.ends_with("/verify")).collect::<Vec<_>>()
    };
    assert_eq!(again(&|| lab.project.edit("own/helper.py", "# Doubles", "# It doubles")), [""; 0], "a comment");
    assert_eq!(again(&|| lab.project.edit("own/helper.py", "2 * x", "x + x")), VERIFIED);
    assert_eq!(again(&|| lab.project.edit("k.cu", "int n) {}", "int n) { }")), [""; 0], "another kernel");
    let site = fs::read_dir(lab.project.place().join("venv/lib")).unwrap().next().unwrap().unwrap();
    let site = site.path().join("site-packages");
    let cublas = |release: &str| site.join(format!("nvidia_cublas-{release}.dist-info"));
    assert_eq!(again(&|| fs::rename(cublas("13.0.0.19"), cublas("13.1.0.3")).unwrap()), VERIFIED, "another cuBLAS");
    let other = || fs::write(site.join("torch/__init__.py"), "__version__ = \"2.12.0\"\n").unwrap();
    assert_eq!(again(&other), VERIFIED, "another PyTorch");
}

#[test]
#[ignore = "second tier: many builds"]
fn without_the_device_its_evidence_answers_and_without_evidence_the_verdict_is_unknown() {
    let Some(lab) = lab(machine("ns = 1.0")) else { return };
    lab.built(&[]);
    let elsewhere = Machine { device: None, ..machine("ns = 1.0") };
    let other = lab.anew("other");
    other.on(&elsewhere);
    let unknown = other.built(&[]);
    assert_eq!(executed(&unknown).iter().filter(|id| id.ends_with("/verify")).count(), 0);
    let verdict = target(&other)["shapes"][0]["verdict"].clone();
    assert!(verdict["unknown"].to_string().contains("nothing observed on"), "{verdict}");
    let known = lab.anew("known");
    lab.give_evidence(&known);
    known.built(&[]);
    assert_eq!(target(&known)["shapes"][0]["verdict"], "pass");
    assert!(target(&known)["calls"][0]["call_ns"].is_number(), "{}", target(&known));
}

#[test]
fn a_release_of_ours_runs_nothing_on_a_device_and_says_what_to_state() {
    let Some(lab) = lab(machine("ns = 1.0")) else { return };
    let lab = lab.manifest("[toolchain]\n", "[toolchain]\ntorch = \"2.15\"\n");
    lab.project.write("kforge.lock", include_str!("../../examples/torch/kforge.lock"));
    lab.built(&[]);
    let target = target(&lab);
    assert!(target["shapes"][0]["verdict"]["unknown"].is_object(), "{target}");
    let why = target["unavailable"].to_string();
    assert!(why.contains("state `toolchain.torch = { release = \\\"2.15\\\", cuda = true }`"), "{target}");
}

/// The package with variants of the kernel in PyTorch and another one, whose calls take these nanoseconds.
fn competing(rules: &[(&str, &str)]) -> Option<Lab> {
    let all = rules.iter().fold(Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]), |machine, (text, says)| {
        machine.rule(&format!("^{text} in PyTorch on Virtual H$"), says)
    });
    let lab = lab(Machine { noise: 0.0, ..all })?;
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let manifest =
        manifest.replace("source = \"own/fast.py::Fast\"", "source = \"own/fast.py::Fast\"\ntune.BLOCK = [2, 4, 8]");
    let other = "\n[kernel.other]\noperator = \"twice\"\nlanguage = \"torch\"\nsource = \"other.py::Other\"\n\
                 \n[baseline.eager]\nsource = \"eager.py::twice\"\n";
    lab.project.write("kernel.toml", &(manifest + other));
    lab.project.write("own/fast.py", &format!("BLOCK = 2\n{FAST}"));
    lab.project.write("other.py", "class Other:\n    def forward(self, x):\n        return 2 * x + 1\n");
    lab.project.write("eager.py", "def twice(x):\n    return 2 * x + 1\n");
    let scenario = fs::read_to_string(&lab.scenario).unwrap();
    let eager = "\n[[baseline]]\nmatches = '^eager eager.py::twice on Virtual H$'\nns = 3000.0\ndevice-ns = 1200.0\ncall-ns = 9000.0\n";
    fs::write(&lab.scenario, scenario + eager).unwrap();
    Some(lab)
}

const COMPETING: [(&str, &str); 4] = [
    ("Fast BLOCK=2", "ns = 1030.0"),
    ("Fast BLOCK=4", "ns = 1000.0"),
    ("Fast BLOCK=8", "ns = 1400.0"),
    ("Other", "ns = 1020.0"),
];

#[test]
fn variants_in_pytorch_compete_by_pairs_of_call_times() {
    let Some(lab) = competing(&COMPETING) else { return };
    let built = lab.built(&[]);
    let of = |kind: &str| -> Vec<String> {
        steps(&built, kind, "executed").into_iter().filter(|id| id.starts_with("p/fast/")).collect()
    };
    assert_eq!(of("calls").len(), 3, "of each variant");
    assert_eq!(of("pairs"), ["p/fast/BLOCK=2/h/big/against/BLOCK=4/pairs"], "the one near the best");
    let target = target(&lab);
    let champion = &target["champions"][0];
    assert_eq!((&champion["variant"], &champion["provisional"]), (&json!("BLOCK=4"), &json!(false)), "{champion}");
    let [versus] = &champion["versus"].as_array().unwrap()[..] else { panic!("{champion}") };
    let thousandths = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as i64;
    assert_eq!((&versus["variant"], thousandths(&versus["ratio"])), (&json!("BLOCK=2"), 1030), "{versus}");
    let calls = target["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["variant"]), (1, &json!("BLOCK=4")), "those of the champion");
    assert_eq!(lab.built(&[]).count("executed"), 0);
}

#[test]
fn kernels_in_pytorch_lead_among_each_other_and_never_beside_device_times() {
    let Some(lab) = competing(&COMPETING) else { return };
    lab.built(&[]);
    let report = lab.project.report_value();
    let [leader] = &report["packages"][0]["leaders"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!(
        (&leader["kernel"], &leader["variant"], &leader["called"]),
        (&json!("fast"), &json!("BLOCK=4"), &json!(true))
    );
    let others = leader["others"].as_array().unwrap();
    assert_eq!((others.len(), &others[0]["kernel"]), (1, &json!("other")), "not the one in CUDA C++: {leader}");
    let said = told(&lab, &["report"], 0);
    let line = "fastest kernel in PyTorch, by call times, of twice on h at big: fast, BLOCK=4 (other: slower, +2.0 %";
    assert!(said.contains(line), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_baseline_is_paired_with_a_champion_in_pytorch_by_call_times_and_a_score_takes_the_pairs() {
    let Some(lab) = competing(&COMPETING) else { return };
    lab.built(&[]);
    let found = target(&lab)["baselines"][0].clone();
    let rating = &found["rating"];
    assert_eq!((&found["variant"], &rating["of_calls"]), (&json!("BLOCK=4"), &json!(true)), "{found}");
    assert_eq!((&rating["device_ns"], &rating["call_ns"]), (&json!(1200.0), &json!(3000.0)), "{rating}");
    assert_eq!((&rating["champion_ns"], &rating["versions"]["torch"]), (&json!(1000.0), &json!("2.11.0")), "{rating}");
    assert!((rating["ratio"]["median"].as_f64().unwrap() - 3.0).abs() < 1e-9, "{rating}");
    let said = told(&lab, &["report", "--kernel", "fast"], 0);
    assert!(
        said.contains(
            "big  eager  call   3.00 us, device   1.20 us  3.000 (3.000 to 3.000, of calls) of the champion's 1.00 us"
        ),
        "{said}"
    );
    let scores = told(&lab, &["report", "--score", "speedup", "--baseline", "eager", "--format", "json"], 0);
    let scores: Value = serde_json::Deserializer::from_str(&scores).into_iter().next().unwrap().unwrap();
    let of = |kernel: &str| {
        let all = scores["candidates"].as_array().unwrap();
        all.iter().find(|one| one["kernel"] == kernel).unwrap()["speedup"].as_f64().unwrap()
    };
    assert!((of("fast") - 3.0).abs() < 1e-9 && (of("other") - 3000.0 / 1020.0).abs() < 1e-9, "{scores}");
}

#[test]
fn a_variant_that_is_wrong_only_beside_another_one_is_no_champion() {
    let rules = [COMPETING[0], ("Fast BLOCK=4", "ns = 1000.0\nstress-error = 1.0"), COMPETING[2], COMPETING[3]];
    let Some(lab) = competing(&rules) else { return };
    assert_eq!(lab.project.build(&["--keep-going"]).code(), 100);
    let target = target(&lab);
    assert_eq!(target["champions"][0]["variant"], "BLOCK=2", "{target}");
    let shapes = target["shapes"].as_array().unwrap();
    let wrong = shapes.iter().find(|of| of["variant"] == "BLOCK=4").unwrap();
    let why = wrong["verdict"]["fail"].as_str().unwrap();
    assert!(why.starts_with("when its calls are timed: `y` is wrong"), "{why}");
}
