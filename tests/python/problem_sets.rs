//! Imports of problem sets with the real PyTorch, in the second tier: tasks of our own writing are imported, built and judged. It installs the part of PyTorch
//! that runs on processors below `target/kforge-test-home` when it is missing, which needs the network and 1.7 GB.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod custom;
mod gpu_mode;
mod kernels;

use crate::folders::folder;
use serde_json::Value;

const RELEASE: &str = "2.15";

/// A folder with the tasks, and a home.
struct Lab {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
}

struct Ran {
    out: String,
    said: String,
    code: Option<i32>,
}

impl Ran {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.said);
        self
    }

    fn lines(&self) -> Vec<Value> {
        self.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

impl Lab {
    /// None, with a message, if PyTorch cannot be installed.
    fn new() -> Option<Self> {
        let lab = Lab { folder: folder(), home: folder() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        copy(&root.join("tests/python/problem_sets/tasks"), &lab.path("tasks"));
        // The wheels are those of the example, so that nothing is resolved.
        fs::copy(root.join("examples/torch/kforge.lock"), lab.path("kforge.lock")).unwrap();
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home/toolchains");
        fs::create_dir_all(&kept).unwrap();
        std::os::unix::fs::symlink(&kept, lab.home.path().join("toolchains")).unwrap();
        let example = Lab { folder: folder(), home: lab.home };
        for file in [
            "kernel.toml",
            "kforge.lock",
            "model.py",
            "activation.py",
            "linear_gelu.cu",
            "batch_norm.cu",
            "rms_norm.cu",
        ] {
            fs::copy(root.join("examples/torch").join(file), example.path(file)).unwrap();
        }
        let fetched = example.run(&["fetch"]);
        if fetched.code != Some(0) {
            kforge::base::testing::skipped(&format!("PyTorch cannot be installed: {}", fetched.said));
            return None;
        }
        Some(Lab { folder: lab.folder, home: example.home })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn run(&self, words: &[&str]) -> Ran {
        self.run_in(".", words)
    }

    fn run_in(&self, folder: &str, words: &[&str]) -> Ran {
        let mut command = Command::new(crate::program::program());
        command.args(words).current_dir(self.path(folder)).env_clear().env("KFORGE_HOME", self.home.path());
        for (name, value) in environment().into_iter().filter(|(name, _)| passed(name)) {
            command.env(name, value);
        }
        if let Some(python) = crate::python::python() {
            command.env("KFORGE_TOOLCHAIN_PYTHON", python);
        }
        let done = command.stdin(Stdio::null()).output().unwrap();
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        Ran { said: format!("{out}{}", String::from_utf8_lossy(&done.stderr)), out, code: done.status.code() }
    }

    /// The document of an import of all tasks.
    fn imported(&self, output: &str) -> Value {
        let words = ["import", "kernelbench", "tasks", "--torch", RELEASE, "--output", output, "--format", "json"];
        let ran = self.run(&words).expect(0);
        ran.lines().pop().unwrap_or_else(|| panic!("{}", ran.said))
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from).into_iter().flatten() {
        let place = to.join(entry.path().strip_prefix(from).unwrap());
        match entry.file_type().is_dir() {
            true => fs::create_dir_all(place).unwrap(),
            false => drop(fs::copy(entry.path(), place).unwrap()),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test stands where a shell does, and hands PATH and the index of packages on"
)]
fn environment() -> BTreeMap<String, String> {
    std::env::vars().collect()
}

fn passed(name: &str) -> bool {
    matches!(name, "PATH" | "HOME") || name.starts_with("PIP_") || name.to_lowercase().ends_with("_proxy")
}

/// The files below a folder with their texts.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    let named = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
    files.map(|entry| (named(entry.path()), fs::read_to_string(entry.path()).unwrap())).collect()
}

/// The task of a document by its path.
#[track_caller]
fn task<'d>(document: &'d Value, path: &str) -> &'d Value {
    let tasks = document["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["path"] == path).unwrap_or_else(|| panic!("{path}: {document}"))
}

/// The kinds of what is said of a task.
fn findings(task: &Value) -> Vec<&str> {
    task["findings"].as_array().unwrap().iter().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

/// The lines that manifests must have, by task.
const LINES: &[(&str, &[&str])] = &[
    ("level1/1_SquareProduct", &["dims = [\"SIDE\"]", "outputs.y = { dtype = \"f32\", shape = [\"SIDE\", \"SIDE\"] }"]),
    (
        "level1/2_Product",
        &["dims = [\"rows\", \"inner\", \"cols\"]", "inputs.b = { dtype = \"f32\", shape = [\"inner\", \"cols\"] }"],
    ),
    ("level1/3_ScaleByNumber", &["params.factor = { dtype = \"f32\", value = 2.5 }", "dims = [\"height\", \"width\"]"]),
    ("level1/4_Rectify", &["dims = [\"rows\", \"cols\"]"]),
    ("level1/5_RunningMaximum", &["inputs.x = { dtype = \"f32\", shape = [\"batch\", \"features\"] }"]),
    (
        "level1/6_BatchNorm",
        &[
            "origin = { set = \"kernelbench\", level = 1, number = 6, name = \"BatchNorm\" }",
            "inputs.norm_weight = { dtype = \"f32\", shape = [\"channels\"] }",
            "inouts.norm_running_mean = { dtype = \"f32\", shape = [\"channels\"] }",
            "inouts.norm_running_var = { dtype = \"f32\", shape = [\"channels\"], init = \"positive\" }",
            "inouts.norm_num_batches_tracked = { dtype = \"i64\", shape = [], init = { range = [0, 100] } }",
            "mode = \"train\"",
        ],
    ),
    (
        "level1/7_MaxPool",
        &[
            "outputs.y = { dtype = \"f32\", shape = [\"batch\", \"channels\", \"(height + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1\", \"(width + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1\"] }",
        ],
    ),
    ("level1/8_WhereLeast", &["outputs.y = { dtype = \"i64\", shape = [\"batch\", \"cols\"] }", "init = [1]"]),
    (
        "level1/9_TransposedConvolution",
        &[
            "inputs.up_weight = { dtype = \"f32\", shape = [\"in_channels\", \"out_channels\", \"kernel_size\"], init = { range = [-0.092, 0.092] } }",
        ],
    ),
    ("level1/10_MaskedRunningSum", &["inputs.mask = { dtype = \"bool\", shape = [\"lines\", \"shape\"] }"]),
    ("level1/11_Attention", &["inputs.k = { dtype = \"f32\", shape = [\"batch\", \"heads\", \"length\", \"width\"] }"]),
    ("level1/12_SquaredError", &["outputs.y = { dtype = \"f32\", shape = [] }"]),
    ("level1/13_MeanOverAxis", &["outputs.y = { dtype = \"f32\", shape = [\"batch\", 1, \"last\"] }", "init = [1]"]),
    (
        "level1/14_Lookup",
        &[
            "inputs.tokens = { dtype = \"i64\", shape = [\"batch\", \"length\"], init = { range = [0, \"words - 1\"] } }",
        ],
    ),
    ("level1/15_LayerNorm", &["init = [[\"normalized_0\", \"normalized_1\"]]"]),
    (
        "level1/16_DepthwiseConvolution",
        &[
            "inputs.conv_weight = { dtype = \"f32\", shape = [\"channels\", 1, \"kernel_size\", \"kernel_size\"], init = { range = [-0.33, 0.33] } }",
        ],
    ),
    (
        "level1/17_NumbersOnly",
        &["init = [\"fan_in\", \"fan_out\"]", "inputs.x = { dtype = \"f32\", shape = [\"x_0\", \"fan_in\"] }"],
    ),
    (
        "level1/18_Largest",
        &[
            "outputs.y_0 = { dtype = \"f32\", shape = [\"rows\"] }",
            "outputs.y_1 = { dtype = \"i64\", shape = [\"rows\"] }",
        ],
    ),
    (
        "level2/1_LinearLeaky",
        &["params.slope = { dtype = \"f32\", value = 0.1 }", "init = [\"fan_in\", \"fan_out\", \"factor\", \"slope\"]"],
    ),
    (
        "level2/2_ConvolutionTanhScale",
        &[
            "outputs.y = { dtype = \"f32\", shape = [\"batch\", \"out_channels\", \"height - kernel_size + 1\", \"width - kernel_size + 1\"] }",
        ],
    ),
    (
        "level2/8_FileConstants",
        &[
            "constants = { WIDTH = \"WIDTH\" }",
            "inputs.first_weight = { dtype = \"f32\", shape = [\"2 * WIDTH\", \"WIDTH\"], init = { range = [-0.12, 0.12] } }",
        ],
    ),
    ("level2/9_LogLoss", &["inputs.weight = { dtype = \"f32\", shape = [\"batch\"], init = \"positive\" }"]),
    ("level3/2_Encoder", &["init = [\"length\", \"width\", \"heads\"]"]),
];

/// What must be said of tasks.
const FINDINGS: &[(&str, &str)] = &[
    ("level2/3_LinearDropout", "random"),
    ("level2/4_SoftmaxOfOne", "constant-output"),
    ("level2/5_LessItsMean", "constant-output"),
    ("level2/7_TinyShares", "below-tolerance"),
    ("level3/3_Enormous", "too-large"),
];

/// Why tasks are refused: the kind, and the line.
const REFUSED: &[(&str, &str, Option<u64>)] = &[
    ("1_ReadsValues", "reads-values", Some(7)),
    ("2_OtherLibrary", "import", Some(3)),
    ("3_OtherDevice", "device", Some(7)),
    ("4_Listed", "unsupported", None),
    ("5_AlwaysRandom", "random", Some(7)),
    ("6_Unnamed", "unsupported", None),
    ("7_Broken", "error", Some(7)),
    ("8_Complex", "unsupported", None),
    ("9_Syntax", "syntax", Some(1)),
];

#[test]
#[ignore = "second tier: installs the part of PyTorch that runs on processors, and computes many references"]
fn tasks_become_packages_that_are_built_and_judged() {
    let Some(lab) = Lab::new() else { return };
    let document = lab.imported("sets");
    let schema = serde_json::from_str(&lab.run(&["schema", "import-tasks"]).expect(0).out).unwrap();
    let mut plain = document.clone();
    plain.as_object_mut().unwrap().remove("reason");
    assert!(jsonschema::is_valid(&schema, &plain), "{document}");
    assert_eq!(document["tasks"].as_array().unwrap().len(), 18 + 9 + 4 + REFUSED.len(), "{document}");

    for (path, lines) in LINES {
        assert_eq!(task(&document, &format!("{path}.py"))["status"], "imported", "{path}: {document}");
        let manifest = lab.read(&format!("sets/{path}/kernel.toml"));
        for line in *lines {
            assert!(manifest.lines().any(|own| own == *line), "{path}: {line}\n{manifest}");
        }
        assert_eq!(lab.read(&format!("sets/{path}/task.py")), lab.read(&format!("tasks/{path}.py")));
    }
    for own in document["tasks"].as_array().unwrap().iter().filter(|task| task["status"] == "imported") {
        let path = own["path"].as_str().unwrap().trim_end_matches(".py");
        let told: Vec<&str> = FINDINGS.iter().filter(|(of, _)| *of == path).map(|(_, kind)| *kind).collect();
        assert_eq!(findings(own), told, "{path}: {own}");
        let shapes = own["shapes"].as_array().unwrap();
        assert_eq!(
            shapes.iter().map(|shape| shape["name"].as_str().unwrap()).collect::<Vec<_>>(),
            ["own", "small", "ragged"],
            "{path}"
        );
        assert_eq!(own["mode"], if told == ["random"] { "eval" } else { "train" }, "{path}");
    }
    for (name, kind, line) in REFUSED {
        let refused = &task(&document, &format!("refused/{name}.py"))["refused"];
        assert_eq!((refused["kind"].as_str(), refused["line"].as_u64()), (Some(*kind), *line), "{name}: {refused}");
        assert!(!lab.path(&format!("sets/refused/{name}")).exists());
    }

    // Two imports give the same bytes, and a second one into the same folder changes nothing.
    lab.imported("again");
    let first = tree(&lab.path("sets"));
    assert_eq!(tree(&lab.path("again")), first);
    let repeated = lab.imported("sets");
    assert_eq!(task(&repeated, "level1/4_Rectify.py")["status"], "exists");
    assert_eq!(tree(&lab.path("sets")), first);
    lab.run(&["import", "kernelbench", "tasks/level1/4_Rectify.py", "--output", "sets"]).expect(101);

    // Kernels: those of ours must pass. For the others an idle one shows that the reference computes.
    let mut own = vec![];
    for task in document["tasks"].as_array().unwrap().iter().filter(|task| task["status"] == "imported") {
        let path = task["path"].as_str().unwrap().trim_end_matches(".py");
        let operator = task["operator"].as_str().unwrap();
        let kernel = kernels::KERNELS.iter().find(|kernel| kernel.task == path);
        let (source, launch) =
            kernel.map_or((kernels::IDLE, kernels::IDLE_LAUNCH), |kernel| (kernel.source, kernel.launch));
        fs::write(lab.path(&format!("sets/{path}/k.cu")), source).unwrap();
        let table = format!(
            "\n[kernel.k]\noperator = \"{operator}\"\nsource = \"k.cu\"\n[[kernel.k.launch]]\nentry = \"k\"\n{launch}\n"
        );
        // One small shape: each set of inputs starts PyTorch.
        let manifest = lab.read(&format!("sets/{path}/kernel.toml"));
        let kept = manifest.lines().filter(|line| !line.starts_with("own = ") && !line.starts_with("small = "));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        fs::write(lab.path(&format!("sets/{path}/kernel.toml")), kept + &table).unwrap();
        if kernel.is_some() {
            own.push(task["package"].as_str().unwrap().to_string());
        }
    }
    assert_eq!(own.len(), kernels::KERNELS.len());
    fs::copy(lab.path("kforge.lock"), lab.path("sets/kforge.lock")).unwrap();
    let ran = lab.run_in("sets", &["verify", "--workspace", "--keep-going", "--message-format", "json"]);
    let lines = ran.lines();
    let steps = |kind: &str| {
        lines.iter().filter(|line| line["reason"] == "step-finished" && line["kind"] == kind).collect::<Vec<_>>()
    };
    let oracles = steps("oracle");
    assert!(oracles.len() > 100, "{}", ran.said);
    for oracle in oracles {
        assert!(oracle["outcome"].to_string().contains("executed"), "{oracle}");
    }
    for package in &own {
        let judged =
            steps("judge").into_iter().filter(|line| line["id"].as_str().unwrap().starts_with(&format!("{package}/")));
        let judged: Vec<String> = judged.map(|line| line["result"].to_string() + &line.to_string()).collect();
        assert!(!judged.is_empty(), "{package}\n{}", ran.said);
        // Where zeros pass, or all results are one value, nothing tells a kernel from a wrong one.
        let is_indecisive = ["SoftmaxOfOne", "LessItsMean", "TinyShares"].iter().any(|name| package.contains(name));
        let wanted = if is_indecisive { "indecisive" } else { "\"pass\"" };
        assert!(judged.iter().any(|line| line.contains(wanted)), "{package}: {judged:#?}");
        assert!(judged.iter().all(|line| !line.contains("\"fail\"")), "{package}: {judged:#?}");
    }
}

#[test]
#[ignore = "second tier: builds with PyTorch; needs the network once"]
fn candidates_of_a_run_become_kernels_that_are_judged() {
    let Some(lab) = Lab::new() else { return };
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/problem_sets/run"), &lab.path("run"));
    for name in ["tasks/level3", "tasks/refused"] {
        fs::remove_dir_all(lab.path(name)).unwrap();
    }
    for (level, kept) in [("level1", "6_BatchNorm.py"), ("level2", "1_LinearLeaky.py")] {
        for file in fs::read_dir(lab.path("tasks").join(level)).unwrap().flatten().filter(|f| f.file_name() != kept) {
            fs::remove_file(file.path()).unwrap();
        }
    }
    let words = ["import", "kernelbench", "tasks", "--candidates", "run", "--torch", RELEASE, "--output", "sets"];
    let dry = lab.run(&[&words[..], &["--dry-run", "--format", "json"]].concat()).expect(0).lines().pop().unwrap();
    assert_eq!(task(&dry, "level2/1_LinearLeaky.py")["candidates"].as_array().unwrap().len(), 2);
    assert!(dry["dry_run"] == true && !lab.path("sets").exists(), "{dry}");
    let ran = lab.run(&[&words[..], &["--format", "json"]].concat()).expect(0);
    let document = ran.lines().pop().unwrap_or_else(|| panic!("{}", ran.said));
    assert_eq!(document["strangers"], serde_json::json!(["level_9_problem_9_sample_0_kernel.py"]));
    assert_eq!(task(&document, "level2/1_LinearLeaky.py")["candidates"].as_array().unwrap().len(), 2);
    let written = lab.read("sets/level2/1_LinearLeaky/sample_0/kernel.py");
    assert_eq!(written, lab.read("run/level_2_problem_1_sample_0_kernel.py"));

    for package in ["level1/6_BatchNorm", "level2/1_LinearLeaky"] {
        let manifest = lab.read(&format!("sets/{package}/kernel.toml"));
        let kept = manifest.lines().filter(|line| !line.starts_with("own = ") && !line.starts_with("small = "));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        fs::write(lab.path(&format!("sets/{package}/kernel.toml")), kept).unwrap();
    }
    fs::copy(lab.path("kforge.lock"), lab.path("sets/kforge.lock")).unwrap();
    let ran = lab.run_in("sets", &["verify", "--workspace", "--keep-going", "--message-format", "json"]).expect(100);
    let verdict = |package: &str, kernel: &str| {
        let judged =
            ran.lines().into_iter().filter(|line| line["reason"] == "step-finished" && line["kind"] == "judge");
        let of = |line: &Value| line["id"].as_str().is_some_and(|id| id.starts_with(&format!("{package}/{kernel}/")));
        judged.filter(of).map(|line| line.to_string()).collect::<String>()
    };
    assert!(verdict("level2_1_LinearLeaky", "sample_0").contains("\"pass\""), "{}", ran.said);
    assert!(verdict("level1_6_BatchNorm", "sample_0").contains("\"pass\""), "{}", ran.said);
    let wrong = verdict("level2_1_LinearLeaky", "sample_1");
    assert!(wrong.contains("\"fail\"") && wrong.contains("is wrong at"), "{}", ran.said);

    // KernelBench's metrics: what is correct is known, and nothing has a time here.
    lab.run_in("sets", &["build", "--workspace", "--target", "cpu", "--keep-going"]).expect(100);
    let words = ["report", "--workspace", "--score", "kernelbench", "--format", "json"];
    let metrics: Value = serde_json::from_str(&lab.run_in("sets", &words).expect(0).out).unwrap();
    let schema = serde_json::from_str(&lab.run(&["schema", "kernelbench"]).expect(0).out).unwrap();
    assert!(jsonschema::is_valid(&schema, &metrics), "{metrics}");
    let levels = metrics["levels"].as_array().unwrap().iter();
    let levels: Vec<Value> =
        levels.map(|of| serde_json::json!([of["level"], of["compiled"], of["suite"]["correctness"]])).collect();
    assert_eq!(
        levels,
        [serde_json::json!([1, [1.0, 1.0], [1.0, 1.0]]), serde_json::json!([2, [1.0, 1.0], [0.5, 0.5]])]
    );
    let fast = &metrics["levels"][1]["suite"]["fast"];
    assert_eq!(
        (&fast[0]["at_least"], &fast[3]["at_least"], &fast[3]["at_most"]),
        (&0.5.into(), &0.0.into(), &0.5.into())
    );
    assert!(metrics["levels"][0]["suite"]["geometric_mean"].is_null(), "{metrics}");

    // An edit of a candidate is none of the reference.
    let candidate = lab.path("sets/level2/1_LinearLeaky/sample_1/kernel.py");
    fs::write(&candidate, written).unwrap();
    let ran = lab.run_in("sets", &["verify", "--workspace", "--message-format", "json"]).expect(0);
    let executed = |kind: &str| {
        let of = |line: &Value| line["reason"] == "step-finished" && line["kind"] == kind;
        ran.lines().iter().filter(|line| of(line) && line["outcome"].to_string().contains("executed")).count()
    };
    assert_eq!(executed("oracle"), 0, "{}", ran.said);
}
