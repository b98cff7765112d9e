//! References in PyTorch as users build them: what happens without PyTorch, and, in the second tier, the real one.
//!
//! The second tier installs the part of PyTorch that runs on processors below `target/kforge-test-home` when it is missing, which needs the network and 1.7 GB.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::folders::folder;
use serde_json::Value;

const TASK: &str = "import torch\nfrom torch import nn\nfrom factor import FACTOR\n\nWIDTH = HALF, _ = 8, 4\n\n\ndef double(x):\n    return x * FACTOR\n";
const KERNEL: &str = "extern \"C\" __global__ void twice(const float *x, float *y, int n) {\n  \
    for (int i = threadIdx.x; i < n; i += 32) y[i] = 2.0f * x[i];\n}\n";

/// A package with a kernel that doubles, whose operator has this reference.
fn package(reference: &str, toolchain: &str) -> String {
    format!(
        "[package]\nname = \"p\"\n{toolchain}\n{}\n[kernel.twice]\noperator = \"double\"\nsource = \"twice.cu\"\n\
         [[kernel.twice.launch]]\nentry = \"twice\"\ngrid = [1]\nblock = [32]\nargs = [\"x\", \"y\", \"n\"]\n",
        operator("double", reference)
    )
}

fn operator(name: &str, reference: &str) -> String {
    format!(
        "[operator.{name}]\ndims = [\"n\"]\ninputs.x = {{ dtype = \"f32\", shape = [\"n\"] }}\n\
         outputs.y = {{ dtype = \"f32\", shape = [\"n\"] }}\nreference = {reference}\nshapes.s = {{ n = 100 }}\n"
    )
}

struct Lab {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

impl Lab {
    fn new(manifest: &str, task: &str) -> Self {
        let lab = Lab { folder: folder(), home: folder(), variables: vec![] };
        lab.write("kernel.toml", manifest);
        lab.write("task.py", task);
        lab.write("factor.py", "FACTOR = 2\n");
        lab.write("twice.cu", KERNEL);
        let lock = fs::read(root().join("examples/torch/kforge.lock")).unwrap();
        fs::write(lab.path("kforge.lock"), lock).unwrap();
        lab
    }

    /// The example.
    fn of_example() -> Self {
        let lab = Lab { folder: folder(), home: folder(), variables: vec![] };
        for file in fs::read_dir(root().join("examples/torch")).unwrap().flatten().filter(|f| f.path().is_file()) {
            fs::copy(file.path(), lab.path(&file.file_name().to_string_lossy())).unwrap();
        }
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        self.write(name, &text.replacen(from, to, 1));
    }

    fn run(&self, words: &[&str]) -> Ran {
        self.command(&[words, &["--message-format", "json"]].concat())
    }

    fn command(&self, words: &[&str]) -> Ran {
        let mut command = Command::new(crate::program::program());
        command.args(words).current_dir(self.folder.path()).env_clear();
        command.env("KFORGE_HOME", self.home.path()).envs(self.variables.iter().copied()).stdin(Stdio::null());
        for (name, value) in environment().into_iter().filter(|(name, _)| passed(name)) {
            command.env(name, value);
        }
        if let Some(python) = crate::python::python() {
            command.env("KFORGE_TOOLCHAIN_PYTHON", python);
        }
        let done = command.output().unwrap();
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        let lines = out.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        Ran { lines, said: format!("{out}{}", String::from_utf8_lossy(&done.stderr)), code: done.status.code() }
    }

    /// The same with PyTorch, which is installed once for all tests; none if it cannot be.
    fn installed(self) -> Option<Self> {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home/toolchains");
        fs::create_dir_all(&kept).unwrap();
        std::os::unix::fs::symlink(&kept, self.home.path().join("toolchains")).unwrap();
        let fetched = self.command(&["fetch"]);
        if fetched.code != Some(0) {
            kforge::base::testing::skipped(&format!("PyTorch cannot be installed: {}", fetched.said));
            return None;
        }
        Some(self)
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

struct Ran {
    lines: Vec<Value>,
    said: String,
    code: Option<i32>,
}

impl Ran {
    fn steps(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["reason"] == "step-finished" && line["kind"] == kind)
    }

    /// The number of steps of a kind that were executed.
    fn executed(&self, kind: &str) -> usize {
        self.steps(kind).filter(|line| line["outcome"].to_string().contains("executed")).count()
    }

    /// The digests of the expected values, by step.
    fn expected(&self) -> BTreeMap<String, String> {
        self.steps("oracle").map(|line| (line["id"].to_string(), line["result"].to_string())).collect()
    }
}

const TORCH: &str = "[toolchain]\ntorch = \"2.15\"";

#[test]
fn without_torch_its_operators_are_unknown_and_say_how_to_install_it_and_others_are_built() {
    let manifest = package("{ torch = \"task.py::double\" }", "").replace(
        "[kernel.twice]",
        &format!("{}[kernel.own]\noperator = \"own\"\nsource = \"twice.cu\"\n[[kernel.own.launch]]\nentry = \"twice\"\ngrid = [1]\nblock = [32]\nargs = [\"x\", \"y\", \"n\"]\n[kernel.twice]", operator("own", "{ builtin = \"elementwise\", y = \"2 * x\" }")),
    );
    let lab = Lab::new(&manifest, TASK);
    let ran = lab.run(&["verify", "--offline"]);
    let judged = |kernel: &str| {
        let of = |line: &&Value| line["id"].as_str().is_some_and(|id| id.contains(kernel));
        ran.steps("judge").find(of).map(|line| line.to_string()).unwrap_or_default()
    };
    assert!(judged("own").contains("pass"), "{}", ran.said);
    assert!(!judged("twice").contains("\"pass\""), "{}", ran.said);
    // Which Python is found depends on the machine; a Python with PyTorch is none of this test.
    if crate::python::python().is_some() {
        assert!(
            ran.said.contains("PyTorch is missing for") && ran.said.contains("-m pip install torch"),
            "{}",
            ran.said
        );
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn a_release_that_the_lockfile_lacks_is_named() {
    let lab = Lab::new(&package("{ torch = \"task.py::double\" }", "[toolchain]\ntorch = \"2.8\""), TASK);
    let ran = lab.run(&["verify", "--offline"]);
    assert!(ran.said.contains("kforge.lock names no wheels for PyTorch 2.8"), "{}", ran.said);
    let locked = lab.run(&["verify", "--locked"]);
    assert!(locked.code != Some(0) && locked.said.contains("PyTorch 2.8"), "{}", locked.said);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_release_with_cuda_has_wheels_of_its_own_and_doctor_says_what_it_would_download() {
    let stated = "[toolchain]\ntorch = { release = \"2.15\", cuda = true }";
    let lab = Lab::new(&package("{ torch = \"task.py::double\" }", stated), TASK);
    // The lockfile names the part of the release for processors only.
    let ran = lab.run(&["verify", "--offline"]);
    assert!(ran.said.contains("kforge.lock names no wheels for PyTorch 2.15 with CUDA"), "{}", ran.said);
    let locked = lab.run(&["verify", "--locked"]);
    assert!(locked.code != Some(0) && locked.said.contains("PyTorch 2.15 with CUDA"), "{}", locked.said);
    let doctor = lab.command(&["doctor", "--offline"]);
    assert!(doctor.said.contains("kforge.lock names no wheels for PyTorch 2.15 with CUDA"), "{}", doctor.said);
    assert!(doctor.said.contains("run `kforge fetch`"), "{}", doctor.said);
    let mut text = fs::read_to_string(lab.path("kforge.lock")).unwrap();
    for (name, file, toolchain, size) in (10..15)
        .map(|minor| {
            let toolchain = format!("torch-cuda 2.15 python 3.{minor}");
            ("torch", format!("torch-2.15.0-cp3{minor}-cp3{minor}-linux_x86_64.whl"), toolchain, 500_000_000_u64)
        })
        .chain([(
            "nvidia-cublas",
            "nvidia_cublas-1.0-py3-none-any.whl".to_string(),
            "torch-cuda 2.15".to_string(),
            1_900_000_000,
        )])
    {
        let hash = "ab".repeat(32);
        text += &format!(
            "\n[[wheel]]\ntoolchain = \"{toolchain}\"\nname = \"{name}\"\nversion = \"1.0\"\nfile = \"{file}\"\ndigest = \"sha256:{hash}:{size}\"\n"
        );
    }
    lab.write("kforge.lock", &text);
    if crate::python::python().is_none() {
        return;
    }
    let doctor = lab.command(&["doctor", "--offline"]);
    assert!(
        doctor.said.contains("PyTorch 2.15 with CUDA is not installed yet (2.4 GB to download)"),
        "{}",
        doctor.said
    );
    let ran = lab.run(&["verify", "--offline"]);
    assert!(ran.said.contains("nvidia-cublas 1.0") && ran.said.contains("torch 1.0"), "{}", ran.said);
    assert!(!ran.said.contains("names no wheels"), "{}", ran.said);
}

#[test]
#[ignore = "second tier: resolves a release of PyTorch on the package index, which takes minutes and downloads 3 GB for each Python if the index has no metadata"]
fn an_update_locks_a_release_with_its_libraries_of_cuda_for_every_kind_of_python() {
    let stated = "[toolchain]\ntorch = { release = \"2.15\", cuda = true }";
    let lab = Lab::new(&package("{ torch = \"task.py::double\" }", stated), TASK);
    let updated = lab.command(&["update"]);
    if updated.code != Some(0) {
        kforge::base::testing::skipped(&format!("the package index cannot be used: {}", updated.said));
        return;
    }
    assert!(updated.said.contains("PyTorch 2.15 with CUDA"), "{}", updated.said);
    let lock: toml::Table = fs::read_to_string(lab.path("kforge.lock")).unwrap().parse().unwrap();
    let wheels: Vec<(String, String, String)> = lock["wheel"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wheel| {
            let text = |key: &str| wheel[key].as_str().unwrap().to_string();
            assert!(!text("digest").ends_with(":0") && text("file").ends_with(".whl"), "{wheel}");
            (text("toolchain"), text("name"), text("file"))
        })
        .collect();
    // The part for processors, which nothing asks for any more, is gone.
    assert!(wheels.iter().all(|(toolchain, ..)| toolchain.starts_with("torch-cuda 2.15")), "{wheels:?}");
    let of = |toolchain: &str, name: &str| wheels.iter().any(|wheel| wheel.0 == toolchain && wheel.1.starts_with(name));
    assert!(of("torch-cuda 2.15", "nvidia-cublas") && of("torch-cuda 2.15", "nvidia-cudnn"), "{wheels:?}");
    for minor in 11..15 {
        let own = format!("torch-cuda 2.15 python 3.{minor}");
        let torch = wheels.iter().find(|wheel| wheel.0 == own && wheel.1 == "torch").unwrap();
        assert!(torch.2.contains(&format!("-cp3{minor}-cp3{minor}-")), "{torch:?}");
        assert!(of(&own, "triton") || of("torch-cuda 2.15", "triton"), "{own}: {wheels:?}");
    }
}

#[test]
fn a_reference_that_does_not_exist_is_refused_before_anything_runs() {
    let lab = Lab::new(&package("{ torch = \"tusk.py::double\" }", TORCH), TASK);
    let ran = lab.run(&["verify", "--offline"]);
    assert!(
        ran.code != Some(0) && ran.said.contains("the reference `tusk.py` of operator `double` does not exist"),
        "{}",
        ran.said
    );
}

#[test]
#[ignore = "second tier: installs the part of PyTorch that runs on processors"]
fn an_installation_holds_the_modules_that_kernels_import_as_python_compiled_them() {
    let Some(lab) = Lab::of_example().installed() else { return };
    let folders = fs::read_dir(lab.home.path().join("toolchains")).unwrap().flatten().map(|entry| entry.path());
    let compiled = |folder: &Path, module: &str| folder.join(module).join("__pycache__").is_dir();
    let of_torch: Vec<PathBuf> = folders.filter(|folder| folder.join("torch/_dynamo").is_dir()).collect();
    let all = of_torch.iter().all(|folder| ["torch", "torch/_dynamo"].iter().all(|module| compiled(folder, module)));
    assert!(!of_torch.is_empty() && all, "{of_torch:?}");
}

#[test]
#[ignore = "second tier: installs the part of PyTorch that runs on processors"]
fn kernels_of_the_example_equal_its_modules_and_a_wrong_kernel_does_not() {
    let Some(lab) = Lab::of_example().installed() else { return };
    let ran = lab.run(&["verify"]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert!(
        ran.steps("judge").count() >= 5 && ran.steps("judge").all(|line| line.to_string().contains("pass")),
        "{}",
        ran.said
    );
    let again = lab.run(&["verify"]);
    assert_eq!((again.code, again.executed("oracle"), again.executed("verify")), (Some(0), 0, 0), "{}", again.said);
    // The casts of `rms_norm` were taken as float64, and the record says so.
    let told = lab.command(&["explain", "torch_examples/rms_norm/ragged/0/oracle"]);
    assert!(
        told.said.contains("computed in float64") && told.said.contains("the reference casts to float32"),
        "{}",
        told.said
    );
    // The running variance without the correction for a sample.
    lab.edit("batch_norm.cu", "/ (rows - 1)", "/ rows");
    let wrong = lab.run(&["verify"]);
    assert!(wrong.code != Some(0) && wrong.said.contains("norm_running_var"), "{}", wrong.said);
    assert_eq!(wrong.executed("oracle"), 0);
    lab.edit("batch_norm.cu", "/ rows;", "/ (rows - 1);");
    // A helper is in the key.
    lab.edit("activation.py", "gelu(x)", "gelu(x, approximate=\"tanh\")");
    assert!(lab.run(&["verify"]).executed("oracle") > 0);
}

/// Each trap: an operator, the Python that it calls, the rest of its reference, and what must be said.
const TRAPS: [(&str, &str, &str, &str); 16] = [
    ("draws", "def draws(x):\n    return x + torch.rand(100)\n", "", "draws random numbers (`aten.rand"),
    ("drops", "def drops(x):\n    return nn.functional.dropout(x)\n", "", "draws random numbers (`aten.bernoulli_"),
    ("moves", "def moves(x):\n    return x.to('cuda')\n", "", "uses the device `cuda` (at task.py:"),
    ("makes", "def makes(x):\n    return torch.zeros(100, device='cuda:0')\n", "", "uses the device `cuda:0`"),
    ("reads", "def reads(x):\n    return open('/etc/passwd')\n", "", "PermissionError"),
    ("calls", "def calls(x):\n    import socket\n    return socket.socket()\n", "", "PermissionError"),
    ("imports", "def imports(x):\n    import pip\n    return x\n", "", "pip"),
    (
        "asks",
        "def asks(x, weight):\n    return x\n",
        "",
        "asks for `weight`, which no tensor, param or dim is named; there are `n`, `x`",
    ),
    ("ignores", "def ignores(n):\n    return torch.zeros(n)\n", "", "does not use `x`: not an argument"),
    (
        "Idle",
        "class Idle(nn.Linear):\n    def __init__(self): super().__init__(8, 8)\n",
        ", names = { input = \"x\" }",
        "parameters that no tensor gives: `weight` [8, 8], `bias` [8]",
    ),
    (
        "Names",
        "class Names(nn.Module):\n    def forward(self, x): return x\n",
        ", state = { w = \"x\" }",
        "has no parameter or buffer `w`",
    ),
    (
        "changes",
        "def changes(x):\n    x.mul_(2)\n    return x\n",
        "",
        "changes `x`, but `x` is an input: declare it under `inouts`",
    ),
    (
        "Counts",
        "class Counts(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('count', torch.zeros(1))\n    def forward(self, x):\n        self.count.add_(1)\n        return 2 * x\n",
        "",
        "changes the buffer `count`, which no inout gives",
    ),
    (
        "Lucky",
        "class Lucky(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('by', torch.randn(100))\n    def forward(self, x):\n        return x * self.by\n",
        "",
        "draws `by` at random in its constructor",
    ),
    ("shapes", "def shapes(x):\n    return x[1:]\n", "", "`y` has the shape [99], expected [100]"),
    (
        "nowhere",
        "",
        ", constants = { DEPTH = 3 }",
        "`constants` names `DEPTH`, but `task.py` sets no such constant at its top",
    ),
];

#[test]
#[ignore = "second tier: installs the part of PyTorch that runs on processors, and starts it many times"]
fn what_a_reference_must_not_do_is_named() {
    let mut manifest = package("{ torch = \"task.py::double\" }", TORCH);
    let mut task = TASK.to_string();
    for (name, code, more, _) in TRAPS {
        task += &format!("\n\n{code}");
        let function = if code.is_empty() { "double" } else { name };
        let kernel = format!(
            "[kernel.{name}]\noperator = \"{name}\"\nsource = \"twice.cu\"\n[[kernel.{name}.launch]]\nentry = \"twice\"\ngrid = [1]\nblock = [32]\nargs = [\"x\", \"y\", \"n\"]\n"
        );
        manifest += &format!("{}{kernel}", operator(name, &format!("{{ torch = \"task.py::{function}\"{more} }}")));
    }
    let Some(lab) = Lab::new(&manifest, &task).installed() else { return };
    let ran = lab.run(&["verify", "--keep-going"]);
    assert_ne!(ran.code, Some(0), "{}", ran.said);
    for (name, _, _, says) in TRAPS {
        assert!(
            ran.said.contains(says) || ran.said.contains(&says.replace('"', "\\\"")),
            "{name}: {says}\n{}",
            ran.said
        );
    }
    // What is in order is not affected.
    let double = ran.steps("oracle").filter(|line| line["id"].as_str().is_some_and(|id| id.contains("/double/")));
    assert!(double.into_iter().all(|line| line["outcome"].to_string().contains("executed")), "{}", ran.said);
}

#[test]
#[ignore = "second tier: installs the part of PyTorch that runs on processors"]
fn floats_below_float64_are_mapped_or_said() {
    let task = format!(
        "{TASK}\n\ndef cast(x):\n    return (x.float() + x.half()).to(x.dtype)\n\n\n\
         def named(x):\n    return 2 * x.type('torch.FloatTensor')\n"
    );
    let operators = [
        ("mapped", "{ torch = \"task.py::cast\" }"),
        ("kept", "{ torch = \"task.py::cast\", casts = \"keep\" }"),
        ("low", "{ torch = \"task.py::named\" }"),
    ];
    let mut manifest = package("{ torch = \"task.py::double\" }", TORCH);
    for (name, reference) in operators {
        let kernel = format!(
            "[kernel.{name}]\noperator = \"{name}\"\nsource = \"twice.cu\"\n[[kernel.{name}.launch]]\nentry = \"twice\"\ngrid = [1]\nblock = [32]\nargs = [\"x\", \"y\", \"n\"]\n"
        );
        manifest += &format!("{}tolerance = {{ atol = 0.05, rtol = 0.05 }}\n{kernel}", operator(name, reference));
    }
    let Some(lab) = Lab::new(&manifest, &task).installed() else { return };
    let ran = lab.run(&["verify", "--keep-going"]);
    assert!(ran.said.contains("the reference computes in"), "{}", ran.said);
    let of = |name: &str| lab.command(&["explain", &format!("p/{name}/s/0/oracle")]).said;
    assert!(of("double").contains("in float64: no operation gave a lower float"), "{}", of("double"));
    assert!(
        of("mapped").contains("casts to float32") && of("mapped").contains("computed in float64"),
        "{}",
        of("mapped")
    );
    assert!(of("kept").contains("computes in float32 (`aten._to_copy.default` at task.py:"), "{}", of("kept"));
    assert!(of("low").contains("computes in float32"), "{}", of("low"));
}

#[test]
#[ignore = "second tier: installs the part of PyTorch that runs on processors"]
fn expected_values_do_not_depend_on_the_shell_and_limits_end_a_reference() {
    let sums = TASK.to_string()
        + "\n\ndef sums(x):\n    return torch.softmax(x, 0) + x.sum() + torch.layer_norm(x, (100,))\n\n\n\
            def endless(x):\n    while True:\n        pass\n\n\ndef large(x):\n    return torch.ones(1 << 40)\n";
    let manifest = package("{ torch = \"task.py::sums\" }", TORCH);
    let Some(mut lab) = Lab::new(&manifest, &sums).installed() else { return };
    let first = lab.run(&["verify"]).expected();
    assert!(!first.is_empty());
    lab.variables = vec![
        ("ATEN_CPU_CAPABILITY", "default"),
        ("MKL_CBWR", "COMPATIBLE"),
        ("OMP_NUM_THREADS", "2"),
        ("PYTHONPATH", "/nowhere"),
        ("KFORGE_BUILD_TIME_LIMIT", "30s"),
    ];
    fs::remove_dir_all(lab.path("target")).unwrap();
    let lab = Lab { folder: lab.folder, home: folder(), variables: lab.variables };
    let Some(lab) = lab.installed() else { return };
    let again = lab.run(&["verify"]);
    assert!(again.executed("oracle") > 0, "{}", again.said);
    assert_eq!(again.expected(), first);
    lab.edit("kernel.toml", "task.py::sums", "task.py::large");
    let large = lab.run(&["verify"]);
    assert!(large.code != Some(0) && large.said.contains("`task.py::large` exited with 1"), "{}", large.said);
    lab.edit("kernel.toml", "task.py::large", "task.py::endless");
    let endless = lab.run(&["verify"]);
    assert!(endless.code != Some(0) && endless.said.contains("(setting `build.time-limit`)"), "{}", endless.said);
}

#[test]
#[ignore = "second tier: installs the part of PyTorch that runs on processors"]
fn the_torch_of_the_system_is_used_without_numpy_and_its_files_are_in_the_key() {
    let Some(lab) = Lab::of_example().installed() else { return };
    let installed = fs::read_dir(lab.home.path().join("toolchains")).unwrap().flatten().map(|entry| entry.path());
    let Some(installed) = installed.into_iter().find(|path| path.join("kforge-stubs").is_dir()) else { return };
    // A Python that has it, as pip would have installed it; the libraries of CUDA lie where the loader looks first.
    let python = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = |program: &Path, args: &[&str]| Command::new(program).args(args).status().unwrap().success();
    let own = crate::python::python().unwrap();
    assert!(run(&own, &["-m", "venv", "--without-pip", &python.path().to_string_lossy()]));
    let versions = fs::read_dir(python.path().join("lib")).unwrap().flatten().map(|entry| entry.path());
    let site = versions.into_iter().find(|path| path.join("site-packages").is_dir()).unwrap().join("site-packages");
    for entry in fs::read_dir(&installed).unwrap().flatten().filter(|entry| entry.file_name() != "kforge-stubs") {
        let (from, to) = (entry.path(), site.join(entry.file_name()));
        assert!(run(Path::new("cp"), &["-rl", &from.to_string_lossy(), &to.to_string_lossy()]));
    }
    for stub in fs::read_dir(installed.join("kforge-stubs")).unwrap().flatten() {
        fs::copy(stub.path(), site.join("torch/lib").join(stub.file_name())).unwrap();
    }
    lab.edit("kernel.toml", "torch = \"2.15\"", "torch = \"system\"");
    let named = format!("toolchain.python=\"{}\"", python.path().join("bin/python").display());
    let verify = || lab.run(&["verify", "--operator", "rms_norm", "--config", &named]);
    let ran = verify();
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert!(
        ran.executed("oracle") > 0 && ran.steps("judge").all(|line| line.to_string().contains("pass")),
        "{}",
        ran.said
    );
    assert_eq!(verify().executed("oracle"), 0);
    let edited = site.join("torch/nn/functional.py");
    let text = fs::read_to_string(&edited).unwrap();
    // The installation has the same file.
    fs::remove_file(&edited).unwrap();
    fs::write(&edited, text + "# edited\n").unwrap();
    assert!(verify().executed("oracle") > 0);
}
