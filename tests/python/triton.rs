//! Kernels in Triton as users build them, as far as they go without a GPU: what `cpu` says, and, in the second tier, the real compiler and interpreter.
//!
//! The second tier installs Triton below `target/kforge-test-home` when it is missing, which needs the network and 1 GB. Without either, its tests are skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod copies;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
mod descriptors;
mod generated;
mod imported;
mod interpreted;
mod libdevice;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
mod packaged;
mod several;

use crate::folders::folder;
use serde_json::Value;

const SOFTMAX: &str = r#"
import torch
import triton
import triton.language as tl
from shared import FLOOR


class Softmax(torch.nn.Module):
    pass


@torch.no_grad()
def wrapper(x):
    return torch.empty_like(x)


@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["cols"])
@triton.heuristics({"EVEN": lambda args: args["cols"] % 16 == 0})
@triton.jit
def softmax(x, y, rows, cols, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    value = tl.load(x + row * cols + at, mask=at < cols, other=FLOOR)
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row * cols + at, value / tl.sum(value, axis=0), mask=at < cols)
"#;
const SHARED: &str = "import triton.language as tl\n\nFLOOR: tl.constexpr = tl.constexpr(-1e30)\n";

const MANIFEST: &str = r#"
[package]
name = "p"

[targets.cpu]
[targets.gpu]
arch = "sm_90a"

[operator.softmax]
dims = ["rows", "cols"]
inputs.x = { dtype = "f32", shape = ["rows", "cols"] }
outputs.y = { dtype = "f32", shape = ["rows", "cols"] }
reference = "builtin:softmax"
shapes.even = { rows = 3, cols = 64 }
shapes.one = { rows = 1, cols = 64 }
shapes.odd = { rows = 3, cols = 63 }

[kernel.softmax]
operator = "softmax"
language = "triton"
source = "softmax.py"

[[kernel.softmax.launch]]
entry = "softmax"
grid = ["rows"]
args = ["x", "y", "rows", "cols"]
constexprs = { BLOCK = { next_pow2 = "cols" } }
"#;

/// A workspace with its own home, and the toolchains of all tests.
struct Lab {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Lab {
    fn new(files: &[(&str, &str)]) -> Self {
        let lab = Lab { folder: folder(), home: folder(), variables: vec![] };
        for (name, text) in files {
            lab.write(name, text);
        }
        let lock = fs::read(root().join("examples/triton/kforge.lock")).unwrap();
        fs::write(lab.path("kforge.lock"), lock).unwrap();
        lab
    }

    /// The package of this file.
    fn of_softmax() -> Self {
        Lab::new(&[("kernel.toml", MANIFEST), ("softmax.py", SOFTMAX), ("shared.py", SHARED)])
    }

    /// `examples/triton`.
    fn of_example() -> Self {
        let lab = Lab { folder: folder(), home: folder(), variables: vec![] };
        for file in fs::read_dir(root().join("examples/triton")).unwrap().flatten().filter(|f| f.path().is_file()) {
            fs::copy(file.path(), lab.path(&file.file_name().to_string_lossy())).unwrap();
        }
        lab
    }

    /// Shortens the lists of values of the tunables whose names match a regular expression, at least `count`, to the first value.
    fn keep_first_values(&self, names: &str, count: usize) {
        let manifest = fs::read_to_string(self.path("kernel.toml")).unwrap();
        let lists = regex::Regex::new(&format!(r"(?m)^(tune\.(?:{names}) = \[\d+),[^\]]*\]")).unwrap();
        assert!(lists.find_iter(&manifest).count() >= count, "{manifest}");
        self.write("kernel.toml", &lists.replace_all(&manifest, "$1]"));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
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
        // Only the program of this build has devices for which the processor stands in.
        let has_device = self.variables.iter().any(|(name, _)| *name == "KFORGE_VIRTUAL_DEVICE");
        let program = if has_device { env!("CARGO_BIN_EXE_kforge").into() } else { crate::program::program() };
        let mut command = Command::new(program);
        command.args(words).current_dir(self.folder.path()).env_clear();
        command.env("KFORGE_HOME", self.home.path()).envs(self.variables.clone()).stdin(Stdio::null());
        for (name, value) in environment().into_iter().filter(|(name, _)| passed(name)) {
            command.env(name, value);
        }
        let done = command.output().unwrap();
        let lines =
            String::from_utf8_lossy(&done.stdout).lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        Ran { lines, out, said: String::from_utf8_lossy(&done.stderr).into_owned(), code: done.status.code() }
    }

    /// The same with Triton, which is installed once for all tests; none if it cannot be.
    fn installed(self) -> Option<Self> {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home/toolchains");
        fs::create_dir_all(&kept).unwrap();
        std::os::unix::fs::symlink(&kept, self.home.path().join("toolchains")).unwrap();
        let fetched = self.command(&["fetch"]);
        if fetched.code != Some(0) {
            kforge::base::testing::skipped(&format!("Triton cannot be installed: {}", fetched.said));
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
    out: String,
    said: String,
    code: Option<i32>,
}

impl Ran {
    /// Steps of a kind, by id: how each ended.
    fn steps(&self, kind: &str) -> BTreeMap<String, String> {
        let finished = self.lines.iter().filter(|line| line["reason"] == "step-finished");
        let steps = finished.filter(|line| line["kind"] == kind);
        steps.map(|line| (line["id"].as_str().unwrap().to_string(), line["outcome"].to_string())).collect()
    }

    /// The ids of the steps of a kind that were executed.
    fn executed(&self, kind: &str) -> Vec<String> {
        let steps = self.steps(kind).into_iter().filter(|(_, outcome)| outcome.contains("executed"));
        steps.map(|(id, _)| id).collect()
    }

    /// The digests of the results of compilations, by id: of the binary, the facts and the log.
    fn made(&self) -> BTreeMap<String, String> {
        let finished = self.lines.iter().filter(|line| line["reason"] == "step-finished" && line["kind"] == "compile");
        finished.map(|line| (line["id"].as_str().unwrap().to_string(), line["result"].to_string())).collect()
    }
}

#[test]
fn arguments_and_constants_are_compared_with_the_function_before_anything_is_compiled() {
    for (file, from, to, says) in [
        (
            "kernel.toml",
            "args = [\"x\", \"y\", \"rows\", \"cols\"]",
            "args = [\"x\", \"y\", \"rows\"]",
            "`x, y, rows, cols`",
        ),
        ("kernel.toml", "entry = \"softmax\"", "entry = \"softmx\"", "has no function `softmx`"),
        ("kernel.toml", "constexprs = { BLOCK", "constexprs = { BLOK", "no `tl.constexpr` parameter `BLOK`"),
        ("softmax.py", "EVEN: tl.constexpr = False", "EVEN: tl.constexpr", "`EVEN` of `softmax`"),
        ("kernel.toml", "arch = \"sm_90a\"", "arch = \"sm_90\"", "sm_90a"),
    ] {
        let lab = Lab::of_softmax();
        lab.edit(file, from, to);
        let ran = lab.run(&["check", "--offline", "--target", "gpu"]);
        assert!(ran.code != Some(0) && ran.said.contains(says), "{says}: {}", ran.said);
    }
}

#[test]
#[ignore = "second tier: installs Triton"]
fn an_installation_holds_the_modules_as_python_compiled_them() {
    let Some(lab) = Lab::of_softmax().installed() else { return };
    let folders = fs::read_dir(lab.home.path().join("toolchains")).unwrap().flatten().map(|entry| entry.path());
    let compiled = |folder: &Path| folder.join("triton/compiler/__pycache__").is_dir();
    let of_triton: Vec<PathBuf> = folders.filter(|folder| folder.join("triton/compiler").is_dir()).collect();
    assert!(!of_triton.is_empty() && of_triton.iter().all(|folder| compiled(folder)), "{of_triton:?}");
}

#[test]
#[ignore = "second tier: installs Triton and compiles for three architectures"]
fn examples_compile_to_the_same_binaries_from_two_folders_and_homes() {
    let made = |words: &[&str]| {
        let lab = Lab::of_example();
        // Another value of a tunable makes another binary in the same way.
        lab.keep_first_values("[A-Z_]+", 8);
        let lab = lab.installed()?;
        let ran = lab.run(words);
        assert_eq!(ran.code, Some(0), "{}", ran.said);
        let again = lab.run(words);
        assert_eq!((again.code, again.executed("compile")), (Some(0), vec![]));
        Some(ran.made())
    };
    // A second time only two kernels for one architecture: the others go the same way, and compiling all takes minutes.
    let second = ["check", "softmax", "matmul", "--target", "h200"];
    let [Some(one), Some(two)] = [made(&["check"]), made(&second)] else { return };
    assert!(one.len() >= 3 * 8 && two.len() >= 2, "{one:?} {two:?}");
    let differing: Vec<_> = two.iter().filter(|(id, made)| one.get(*id) != Some(*made)).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
#[ignore = "second tier: installs Triton"]
fn an_argument_of_one_at_one_shape_has_a_binary_of_its_own_with_one_parameter_fewer() {
    let Some(lab) = Lab::of_softmax().installed() else { return };
    let ran = lab.run(&["check", "--target", "gpu"]);
    let ids: Vec<String> = ran.steps("compile").into_keys().collect();
    let named = |part: &str| ids.iter().filter(|id| id.contains(part)).count();
    assert_eq!((ran.code, ids.len(), named("rows=1"), named("cols%16")), (Some(0), 3, 1, 2), "{}\n{ids:?}", ran.said);
    // The inspection compares the parameters of each binary with those that the launch passes.
    assert_eq!(ran.steps("inspect").len(), 3);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn what_cannot_change_a_binary_stops_at_its_compilation_and_what_can_does_not() {
    let Some(mut lab) = Lab::of_softmax().installed() else { return };
    let check = |lab: &Lab| {
        let ran = lab.run(&["check", "--target", "gpu"]);
        assert_eq!(ran.code, Some(0), "{}", ran.said);
        ran
    };
    let first = check(&lab).made();
    // Comments and empty lines.
    lab.edit("softmax.py", "    at = tl.arange", "\n    # A comment.\n\n    at = tl.arange");
    let commented = check(&lab);
    assert_eq!((commented.executed("compile").len(), commented.executed("inspect").len()), (3, 0));
    assert_eq!(commented.made(), first);
    // A file beside the source.
    lab.edit("shared.py", "-1e30", "-2e30");
    let beside = check(&lab);
    assert_eq!(beside.executed("compile").len(), 3);
    assert_ne!(beside.made(), first);
    lab.edit("shared.py", "-2e30", "-1e30");
    // Variables of the user's shell.
    let variables = [
        ("PTXAS_OPTIONS", "--opt-level 0"),
        ("DISABLE_PTXAS_OPT", "1"),
        ("DISABLE_LLVM_OPT", "1"),
        ("TRITON_OVERRIDE_ARCH", "sm80"),
        ("TRITON_DEFAULT_FP_FUSION", "0"),
        ("TRITON_F32_DEFAULT", "ieee"),
    ];
    lab.variables = variables.map(|(name, value)| (name, value.to_string())).into();
    // Neither the journal of the workspace nor a home may answer.
    fs::remove_dir_all(lab.path("target")).unwrap();
    let fresh = Lab { folder: lab.folder, home: folder(), variables: lab.variables };
    let Some(fresh) = fresh.installed() else { return };
    let varied = check(&fresh);
    assert_eq!(varied.executed("compile").len(), 3);
    assert_eq!(varied.made(), first);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn an_error_of_the_compiler_names_the_line_of_the_source() {
    let Some(lab) = Lab::of_softmax().installed() else { return };
    for (from, to, says) in [
        ("tl.program_id(0)", "tl.program_idx(0)", "softmax.py:22:"),
        ("from shared import FLOOR", "from nowhere import FLOOR", "softmax.py:5:"),
        ("import torch\n", "import torch\nraise SystemExit(0)\n", "softmax.py:3:"),
        ("@triton.jit\n", "", "the source cannot be read"),
    ] {
        lab.edit("softmax.py", from, to);
        let ran = lab.run(&["check", "--target", "gpu"]);
        assert!(ran.code == Some(101) && ran.said.contains(says), "{says}: {}", ran.said);
        lab.write("softmax.py", SOFTMAX);
    }
}

#[test]
#[ignore = "second tier: installs Triton"]
fn what_a_source_or_the_compiler_prints_is_no_answer() {
    let Some(lab) = Lab::of_softmax().installed() else { return };
    let printing = "import torch\nprint('{\"message\": \"forged\"}')\n";
    lab.edit("softmax.py", "import torch\n", printing);
    let printed = lab.run(&["check", "--target", "gpu"]);
    assert!(printed.code == Some(0) && !printed.said.contains("forged"), "{}", printed.said);
    // If its assembler refuses the code, Triton prints all PTX to standard output.
    let asm =
        "tl.inline_asm_elementwise(\"nonsense $0, $1;\", \"=f,f\", [value], dtype=tl.float32, is_pure=True, pack=1)";
    lab.edit("softmax.py", "tl.exp(value - tl.max(value, axis=0))", asm);
    let refused = lab.run(&["check", "--target", "gpu"]);
    let says = "softmax.py: ptxas: Not a name of any known instruction: 'nonsense'";
    assert!(refused.code == Some(101) && refused.said.contains(says), "{}", refused.said);
    assert_eq!(refused.lines.len(), refused.out.lines().count(), "{}", refused.out);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn a_source_reaches_neither_files_nor_sockets_nor_the_environment_of_the_user() {
    let Some(lab) = Lab::of_softmax().installed() else { return };
    let secret = folder();
    fs::write(secret.path().join("secret"), "x").unwrap();
    let tries = format!(
        r#"import os, socket, sys
found = []
try:
    open("{0}/secret").read()
    found.append("a file of the user")
except OSError:
    pass
try:
    open("{0}/written", "w")
    found.append("a place outside of its folder")
except OSError:
    pass
try:
    socket.create_connection(("127.0.0.1", 9), timeout=1)
    found.append("a socket")
except ConnectionRefusedError:
    found.append("a socket")
except OSError:
    pass
if "KFORGE_HOME" in os.environ:
    found.append("the environment")
if found:
    raise RuntimeError("it reaches " + ", ".join(found))
import torch
"#,
        secret.path().display()
    );
    lab.edit("softmax.py", "import torch\n", &tries);
    let ran = lab.run(&["check", "--target", "gpu"]);
    assert!(ran.code == Some(0), "{}", ran.said);
    assert!(!secret.path().join("written").exists());
}
