//! Kernels in Triton with several functions: what the real compiler and interpreter make of them.

use std::fs;
use std::process::Command;

use super::{Lab, Ran, root};
use crate::folders::folder;

const MANIFEST: &str = r#"
[package]
name = "p"

[targets.cpu]
[targets.gpu]
arch = "sm_90a"

[operator.sums]
dims = ["rows", "cols"]
inputs.x = { dtype = "f32", shape = ["rows", "cols"] }
outputs.y = { dtype = "f32", shape = ["rows"] }
reference = { builtin = "sum", axis = -1 }
shapes.ragged = { rows = 3, cols = 100 }
shapes.one = { rows = 2, cols = 1 }

[kernel.sums]
operator = "sums"
language = "triton"
source = "sums.py"
workspace.parts = { dtype = "f32", shape = ["rows", "4"] }

[[kernel.sums.launch]]
entry = "add"
grid = ["rows", "4"]
args = ["x", "parts", "cols"]
constexprs = { BLOCK = 32 }

[[kernel.sums.launch]]
entry = "add"
grid = ["rows", "1"]
args = ["parts", "y", { value = "4", dtype = "i32" }]
constexprs = { BLOCK = 4 }
options = { num_warps = 1 }
"#;

const SOURCE: &str = r#"
import triton
import triton.language as tl


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    part = tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(part * BLOCK, n, BLOCK * tl.num_programs(1)):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    tl.store(y + tl.program_id(0) * tl.num_programs(1) + part, tl.sum(total, axis=0))
"#;

impl Lab {
    /// Row sums in two steps, both by one function of the source.
    fn of_sums() -> Self {
        Lab::new(&[("kernel.toml", MANIFEST), ("sums.py", SOURCE)])
    }
}

fn ok(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}", ran.said);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn one_function_with_two_sets_of_constants_is_two_functions_of_one_compilation() {
    let Some(lab) = Lab::of_sums().installed() else { return };
    let ran = lab.run(&["check", "--target", "gpu"]);
    ok(&ran);
    // Each class of shapes is compiled once, with both functions.
    let ids: Vec<String> = ran.steps("compile").into_keys().collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert!(ids.iter().all(|id| id.contains("add(") && id.contains(";add#2(")), "{ids:?}");
    // The inspection compared the parameters of each function with those of its launch.
    assert_eq!(ran.steps("inspect").len(), 2);
    let again = lab.run(&["check", "--target", "gpu"]);
    assert_eq!(again.executed("compile").len(), 0);
    // An error in a function that only one launch needs is an error of the kernel.
    lab.edit("sums.py", "tl.sum(total, axis=0)", "tl.sum(total, axis=0) if BLOCK > 4 else tl.nothing(total)");
    let wrong = lab.run(&["check", "--target", "gpu"]);
    assert!(wrong.code == Some(101) && wrong.said.contains("sums.py:13"), "{}", wrong.said);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn the_interpreter_runs_each_function_with_its_own_constants_on_shared_workspaces() {
    let Some(lab) = Lab::of_sums().interpreting() else { return };
    let ran = lab.run(&["build", "--target", "cpu"]);
    ok(&ran);
    assert_eq!(ran.passed(), 2, "{:?}", ran.verdicts());
    // The second function reads what the first one wrote.
    lab.edit("kernel.toml", "grid = [\"rows\", \"4\"]", "grid = [\"rows\", \"2\"]");
    let fewer = lab.run(&["build", "--target", "cpu"]);
    assert_eq!(fewer.code, Some(100), "{}", fewer.said);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn the_example_with_two_functions_is_verified_on_cpu_and_compiled_for_its_targets() {
    let lab = Lab::new(&[]);
    for entry in fs::read_dir(root().join("examples/triton")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".py") || name == "kernel.toml" {
            lab.write(&name, &fs::read_to_string(root().join("examples/triton").join(&name)).unwrap());
        }
    }
    lab.edit(
        "kernel.toml",
        "source = \"split_k_sum.py\"\ntune.SPLITS = [8, 16]",
        "source = \"split_k_sum.py\"\ntune.SPLITS = [8]",
    );
    let Some(lab) = lab.interpreting() else { return };
    let ran = lab.run(&["build", "--target", "cpu", "--kernel", "split_k_sum"]);
    ok(&ran);
    // The third shape is too large for the interpreter.
    assert_eq!(ran.passed(), 2, "{:?}", ran.verdicts());
    for target in ["h200", "a100", "b200"] {
        ok(&lab.run(&["check", "--target", target, "--kernel", "split_k_sum"]));
    }
}

#[test]
#[ignore = "second tier: installs Triton"]
fn ar_lists_the_cubins_of_a_binary_of_several_functions() {
    let Some(lab) = Lab::of_sums().installed() else { return };
    ok(&lab.run(&["check", "--target", "gpu"]));
    let store = lab.home.path().join("cas");
    let mut archives = 0;
    let mut folders = vec![store];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(bytes) = fs::read(&path) else { continue };
            if !bytes.starts_with(b"!<arch>\n") {
                continue;
            }
            archives += 1;
            let place = folder();
            fs::write(place.path().join("binary.a"), &bytes).unwrap();
            let done = Command::new("ar").args(["x", "binary.a"]).current_dir(place.path()).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            for name in ["0.cubin", "1.cubin"] {
                assert!(fs::read(place.path().join(name)).unwrap().starts_with(b"\x7fELF"));
            }
        }
    }
    assert_eq!(archives, 2);
}
