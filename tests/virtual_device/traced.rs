//! Traces of what a device said: each verdict under its status, and what has no place in the form left out with the reason.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, Machine};

const ORIGIN: &str = "[operator.twice]\norigin = { set = \"flashinfer-trace\", name = \"twice\" }\n";

fn spec() -> Value {
    json!({ "shape": ["n"], "dtype": "float32" })
}

/// The package of the lab as if it was imported, on a machine.
fn lab(machine: &Machine) -> Lab {
    let lab = Lab::new(machine).manifest("[operator.twice]\n", ORIGIN);
    let definition = json!({
        "name": "twice", "op_type": "elementwise", "axes": { "n": { "type": "var" } }, "inputs": { "x": spec() },
        "outputs": { "y": spec() }, "reference": "def run(x):\n    return 2 * x + 1\n",
    });
    let line = |uuid: &str, n: u32| {
        let workload = json!({ "uuid": uuid, "axes": { "n": n }, "inputs": { "x": { "type": "random", "seed": 7 } } });
        json!({ "definition": "twice", "workload": workload, "solution": null, "evaluation": null }).to_string() + "\n"
    };
    let write = |path: &str, text: String| lab.project.write(&format!("flashinfer-trace/{path}"), &text);
    write("definitions/elementwise/twice.json", definition.to_string());
    write("workloads/elementwise/twice.jsonl", line("tiny", 10) + &line("big", 100));
    lab
}

/// What the command says, and the traces of kforge.
fn exported(lab: &Lab) -> (String, Vec<Value>) {
    let output = lab.project.command(&["export", "flashinfer-trace", "out"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = fs::read_to_string(lab.project.root().join("out/traces/kforge/elementwise/twice.jsonl"));
    let traces = text.unwrap_or_default().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (said, traces)
}

/// The status at a workload.
fn status<'t>(traces: &'t [Value], uuid: &str) -> Option<&'t str> {
    traces.iter().find(|trace| trace["workload"]["uuid"] == uuid)?["evaluation"]["status"].as_str()
}

#[test]
fn a_champion_passes_with_its_time_and_is_a_solution_that_can_be_imported() {
    let lab = lab(&Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]));
    lab.built(&[]);
    let (said, traces) = exported(&lab);
    assert!(said.contains("1 definition with 2 files of the dataset, 1 new solution and 1 trace"), "{said}");
    assert!(said.contains("no trace of k on h at tiny: it passes, and it has no time"), "{said}");
    let trace = &traces[0];
    assert_eq!(
        trace["workload"],
        json!({ "uuid": "big", "axes": { "n": 100 }, "inputs": { "x": { "type": "random", "seed": 7 } } })
    );
    let evaluation = &trace["evaluation"];
    assert_eq!(
        (&evaluation["status"], &evaluation["environment"]["hardware"]),
        (&json!("PASSED"), &json!("Virtual H (sm_90, driver 580)"))
    );
    let latency = evaluation["performance"]["latency_ms"].as_f64().unwrap();
    assert!(
        (0.0009..0.0011).contains(&latency) && evaluation["correctness"]["max_absolute_error"] == 0.0,
        "{evaluation}"
    );
    let name = trace["solution"].as_str().unwrap();
    let path = lab.project.root().join(format!("out/solutions/kforge/elementwise/twice/{name}.json"));
    let solution: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(
        (&solution["spec"]["entry_point"], &solution["kforge"]["variant"]),
        (&json!("k.cu::k"), &json!("V=2")),
        "{solution}"
    );
    // A second export adds nothing.
    assert_eq!(exported(&lab).1, traces);

    // The dataset with its solution is a package again, and its kernel is that solution.
    let import = ["import", "flashinfer-trace", "out", "--output", "again", "--torch", "2.9"];
    let output = lab.project.command(&import).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("no Python") {
        kforge::base::testing::skipped("there is no Python");
        return;
    }
    assert!(said.contains(&format!("the solution `{name}` is the kernel `{name}`")), "{said}");
    let manifest = fs::read_to_string(lab.project.root().join("again/elementwise/twice/kernel.toml")).unwrap();
    for part in [format!("[kernel.{name}]"), "V = [2]".into(), format!("source = \"solutions/{name}/k.cu\"")] {
        assert!(manifest.contains(&part), "{part}\n{manifest}");
    }
}

#[test]
fn what_a_device_found_wrong_has_the_status_of_its_reason() {
    let wrong = |says: &str| {
        let lab = lab(&Machine::default().rule("^k<", says)).manifest("[1, 2, 4]", "[1]");
        lab.project.build(&["--keep-going"]);
        exported(&lab).1
    };
    let traces = wrong("ns = 1000.0\nerror = 0.5");
    assert_eq!(status(&traces, "big"), Some("INCORRECT_NUMERICAL"), "{traces:?}");
    assert_eq!(traces[0]["evaluation"]["correctness"]["max_absolute_error"], 0.5);
    assert!(traces[0]["evaluation"]["performance"].is_null());
    assert!(!traces[0]["evaluation"]["log"].as_str().unwrap().is_empty());
}

/// The dataset's own solution: a function of PyTorch that is a baseline.
fn solution() -> String {
    let source = json!({ "path": "main.py", "content": "def run(x):\n    return 2 * x + 1\n" });
    json!({
        "name": "theirs", "definition": "twice", "author": "someone", "sources": [source],
        "spec": {
            "language": "python", "target_hardware": ["cuda"], "entry_point": "main.py::run", "dependencies": [],
            "destination_passing_style": false,
        },
    })
    .to_string()
}

/// The traces of a machine on which a kernel in PyTorch and the dataset's own solution do what the rules say.
fn in_torch(kernel: &str, baseline: &str) -> Option<(Lab, Vec<Value>)> {
    let machine = Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]).rule("^Fast in PyTorch", kernel);
    let lab = lab(&machine);
    let rule = format!("[[baseline]]\nmatches = 'main.py::run'\nns = 3000.0\ncall-ns = 9000.0\n{baseline}\n");
    fs::write(&lab.scenario, fs::read_to_string(&lab.scenario).unwrap() + &rule).unwrap();
    let more = "\n[kernel.fast]\noperator = \"twice\"\nlanguage = \"torch\"\nsource = \"own/fast.py::Fast\"\ncall.names = { y = \"x\" }\n\
        [baseline.theirs]\nsource = \"solutions/theirs/main.py::run\"\n";
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &(manifest + more));
    lab.project.write("own/fast.py", "class Fast:\n    def forward(self, y):\n        return y\n");
    lab.project.write("solutions/theirs/main.py", "def run(x):\n    return 2 * x + 1\n");
    lab.project.write("flashinfer-trace/solutions/someone/elementwise/twice/theirs.json", &solution());
    let python = crate::baselined::python(&lab, "2.11.0")?;
    let lab = Lab { project: lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", python), ..lab };
    lab.project.build(&["--keep-going"]);
    let traces = exported(&lab).1;
    Some((lab, traces))
}

/// The status of a solution whose name begins so.
fn of<'t>(traces: &'t [Value], solution: &str) -> &'t Value {
    let is_it = |trace: &&Value| trace["solution"].as_str().is_some_and(|name| name.starts_with(solution));
    &traces.iter().find(is_it).unwrap_or_else(|| panic!("{solution}: {traces:?}"))["evaluation"]
}

#[test]
#[ignore = "second tier: many builds"]
fn outputs_of_another_shape_or_type_have_their_own_status() {
    let shaped = ("finds = \"wrong-shape\"", "raises = \"returned the shape [10, 1]\"\nfinds = \"wrong-shape\"");
    let Some((lab, traces)) = in_torch(shaped.0, shaped.1) else { return };
    for name in ["kforge_fast_", "theirs"] {
        let evaluation = of(&traces, name);
        assert_eq!(evaluation["status"], "INCORRECT_SHAPE", "{traces:?}");
        assert!(evaluation["correctness"].is_null() && evaluation["performance"].is_null(), "{evaluation}");
    }
    // The kernel in PyTorch travels with how it is called, and comes back.
    let mut solutions = fs::read_dir(lab.project.root().join("out/solutions/kforge/elementwise/twice")).unwrap();
    let is_fast = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("kforge_fast_");
    let path = solutions.by_ref().map(|entry| entry.unwrap().path()).find(is_fast).unwrap();
    let own: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(
        (&own["spec"]["language"], &own["spec"]["entry_point"]),
        (&json!("python"), &json!("own/fast.py::Fast")),
        "{own}"
    );
    let import = ["import", "flashinfer-trace", "out", "--output", "again", "--torch", "2.9"];
    let output = lab.project.command(&import).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = own["name"].as_str().unwrap();
    assert!(said.contains(&format!("the solution `{name}` is the kernel `{name}`")), "{said}");
    let manifest = fs::read_to_string(lab.project.root().join("again/elementwise/twice/kernel.toml")).unwrap();
    for part in [format!("source = \"solutions/{name}/own/fast.py::Fast\""), "call.names = { y = \"x\" }".into()] {
        assert!(manifest.contains(&part), "{part}\n{manifest}");
    }

    // A baseline is converted where it returns another type, and its times stand. As a solution it is wrong.
    let Some((_, traces)) = in_torch("finds = \"wrong-type\"", "converted = { y = \"float16\" }") else { return };
    for name in ["kforge_fast_", "theirs"] {
        assert_eq!(of(&traces, name)["status"], "INCORRECT_DTYPE", "{traces:?}");
    }
    assert_eq!(of(&traces, "theirs")["log"], "returned `y` as float16, which is not its declared type");
    let Some((_, traces)) = in_torch("finds = \"wrong-form\"", "raises = \"raised ValueError\"") else { return };
    for name in ["kforge_fast_", "theirs"] {
        assert_eq!(of(&traces, name)["status"], "RUNTIME_ERROR", "{traces:?}");
    }
}

#[test]
fn what_nobody_knows_is_no_trace() {
    let lab = lab(&Machine { device: None, ..Machine::with(&[(1, 1.0), (2, 1.0), (4, 1.0)]) });
    lab.project.build(&[]);
    let (said, traces) = exported(&lab);
    assert_eq!(traces, [] as [Value; 0]);
    assert!(said.contains("no trace of k on h at") && said.contains("unknown: no device"), "{said}");
}

#[test]
fn a_source_that_does_not_compile_is_said_once() {
    let lab = lab(&Machine::with(&[(1, 1.0)])).manifest("[1, 2, 4]", "[1]");
    lab.project
        .write("k.cu", "#pragma refuse\ntemplate <int V> __global__ void k(const float *x, float *y, int n) {}\n");
    // A build says when it ended in whole seconds.
    let age = |name: &str| {
        let file = fs::File::options().write(true).open(lab.project.root().join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(10)).unwrap();
    };
    ["k.cu", "kernel.toml"].into_iter().for_each(age);
    lab.project.build(&["--keep-going"]);
    let (said, traces) = exported(&lab);
    assert!(!traces.is_empty(), "{said}");
    assert_eq!((status(&traces, "big"), status(&traces, "tiny")), (Some("COMPILE_ERROR"), Some("COMPILE_ERROR")));
    assert!(traces.iter().all(|trace| trace["evaluation"]["correctness"].is_null()));
    assert_eq!(exported(&lab).1, traces);
    // Of an edited source nothing is known.
    fs::remove_dir_all(lab.project.root().join("out")).unwrap();
    lab.project.edit("k.cu", "int n) {}", "int n) { int other; }");
    assert_eq!(exported(&lab).1, [] as [Value; 0]);
}

/// The models that flashinfer-bench publishes, without what else it needs.
const MODELS: [&str; 3] = ["flashinfer-bench==0.1.2", "--no-deps", "--quiet"];

#[test]
#[ignore = "second tier: installs the published models of FlashInfer-Trace from PyPI"]
fn the_published_models_accept_what_is_exported() {
    let lab = lab(&Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]));
    lab.built(&[]);
    exported(&lab);
    // The same kernel, wrong: another solution.
    lab.on(&Machine::default().rule("^k<", "ns = 1000.0\nerror = 0.5"));
    lab.project.edit("k.cu", "int n) {}", "int n) { int other; }");
    lab.project.build(&["--keep-going"]);
    exported(&lab);
    let venv = lab.project.place().join("models");
    let ran = |program: &std::path::Path, words: &[&str]| {
        let output = std::process::Command::new(program).args(words).output();
        output.is_ok_and(|output| output.status.success())
    };
    let python = venv.join("bin/python3");
    let host = ["/usr/local/bin/python3", "/usr/bin/python3"].map(std::path::PathBuf::from);
    let made = host.iter().any(|host| ran(host, &["-m", "venv", &venv.display().to_string()]));
    let install = |what: &[&str]| ran(&python, &[&["-m", "pip", "install"], what].concat());
    if !(made && install(&MODELS) && install(&["pydantic", "--quiet"])) {
        kforge::base::testing::skipped("flashinfer-bench cannot be installed");
        return;
    }
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/virtual_device/flashinfer_models.py");
    let output = std::process::Command::new(&python).arg(script).arg(lab.project.root().join("out")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.trim(), "1 2 [('INCORRECT_NUMERICAL', 2), ('PASSED', 1), ('workload', 2)]");
}
