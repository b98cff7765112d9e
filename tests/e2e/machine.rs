//! Steps on machine code, if the toolchain's own tests (`acquire`) have installed a toolchain; else each test reports that it is skipped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::project::{Built, Project, id, ids};
use crate::sample::{ONE, one_kernel, unbuilt};
use kforge::base::testing::skipped;
use serde_json::Value;

const KERNEL: &str = r#"
__global__ void k(const float *x, float *y, int n) {
  int i = threadIdx.x;
#if DOUBLE
  if (i < n) y[i] = 2 * x[i] + 1;
#else
  if (i < n) y[i] = x[i] + x[i] + 1;
#endif
}
"#;

/// The home of the installed toolchain, and its lockfile. None, after printing the reason, if there is no toolchain.
pub(crate) fn installed() -> Option<(PathBuf, String)> {
    let installed = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home");
    let Ok(lock) = fs::read_to_string(installed.join("kforge.lock")) else {
        skipped("no toolchain is installed; `cargo test --test acquire` installs one");
        return None;
    };
    Some((installed, lock))
}

/// A kernel with a method on `cpu` and `sm_90a`, and a home with the installed toolchain. None, after printing the reason, if there is no toolchain.
fn with_method() -> Option<Project> {
    let (installed, lock) = installed()?;
    let project = one_kernel(KERNEL).file("kforge.lock", &lock);
    let manifest = ONE
        .replace("[targets.cpu]", "[toolchain]\ncuda = \"13.0\"\n\n[targets.cpu]\n[targets.h200]\narch = \"sm_90a\"")
        .replace("targets = [\"cpu\"]", "targets = [\"cpu\", \"h200\"]\ntune.DOUBLE = [1, 0]")
        + "\n[kernel.k.methods.\"compute.fma\"]\noff = { DOUBLE = 0 }\nsass.any = ['FFMA']\n";
    project.write("kernel.toml", &manifest);
    fs::create_dir_all(project.home()).unwrap();
    std::os::unix::fs::symlink(installed.join("toolchains"), project.home().join("toolchains")).unwrap();
    let built = project.build(&[]);
    // A partial installation: without the disassembler there is no signature to match.
    if !built.executed_kinds().contains_key("match") {
        skipped(&format!("the installed toolchain is not whole:\n{}", built.stderr()));
        return None;
    }
    assert_eq!(built.code(), 0, "{}", built.stderr());
    Some(project)
}

#[test]
fn a_method_s_signature_is_matched_and_attributed_again_and_nothing_else_is_done() {
    let Some(project) = with_method() else { return };
    project.edit("kernel.toml", "'FFMA'", "'FADD'");
    let kinds = project.build(&[]).executed_kinds();
    assert_eq!(kinds.get("match"), Some(&1), "{kinds:?}");
    assert!(kinds.keys().all(|k| k == "match" || k == "attribute"), "{kinds:?}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_comment_stops_at_machine_code_that_is_the_same() {
    let Some(project) = with_method() else { return };
    assert_eq!(project.build(&[]).count("executed"), 0);
    project.write("k.cu", &format!("// Twice, and one.\n{KERNEL}"));
    let built = project.build(&[]);
    let compiled = |variant: &str| ["cpu", "h200"].map(|t| format!("one/k/DOUBLE={variant}/{t}/compile"));
    let mut expected: BTreeSet<String> = ids(&["one/k/generate"]);
    expected.extend(["0", "1"].into_iter().flat_map(compiled));
    assert_eq!(built.executed(), expected);
}

#[test]
fn what_cpu_says_counts_for_a_device_that_is_silent_whatever_its_target_is_called() {
    let Some(project) = with_method() else { return };
    let said = || {
        let text = String::from_utf8(project.command(&["report"]).output().unwrap().stdout).unwrap();
        let count = |words: &str| text.matches(words).count();
        [count("first correct variant in"), count("first variant correct on `cpu` in")]
    };
    assert_eq!(said(), [1, 1]);
    // `a100` comes before `cpu` in the alphabet and in the manifest.
    project.edit("kernel.toml", "[targets.h200]", "[targets.a100]");
    project.edit("kernel.toml", "[\"cpu\", \"h200\"]", "[\"a100\", \"cpu\"]");
    assert_eq!(project.build(&[]).code(), 0);
    assert_eq!(said(), [1, 1]);
}

#[test]
fn what_wants_a_device_is_unavailable_and_counted_as_neither_pass_nor_fail() {
    let Some(project) = with_method() else { return };
    let built = project.built(&[]);
    for step in built.finished().filter(|s| s["kind"] == "verify" && s["labels"]["target"] == "h200") {
        assert!(step["outcome"]["unavailable"].as_str().unwrap().contains("sm_90a"), "{step}");
        assert_eq!(step["verdict"], Value::Null);
    }
    project.build(&["--require-evidence"]).expect(103);
}

/// Links every file below `from` to the same place below `to`.
fn link_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => link_all(&entry.path(), &to),
            // Two of the wheels may contain the same header.
            false => drop(std::os::unix::fs::symlink(entry.path(), to)),
        }
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn another_nvrtc_with_the_same_output_compiles_everything_again_and_nothing_after_it() {
    let Some(project) = with_method() else { return };
    // An installed CUDA, composed of the contents of the wheels.
    let cuda = project.place().join("cuda");
    let groups = fs::read_dir(project.home().join("toolchains")).unwrap().map(|e| e.unwrap().path().join("nvidia"));
    for group in groups.filter(|group| group.is_dir()) {
        let major = fs::read_dir(group).unwrap().map(|e| e.unwrap().path());
        major
            .filter(|folder| folder.join("bin").is_dir() || folder.join("lib").is_dir())
            .for_each(|folder| link_all(&folder, &cuda));
    }
    project.edit("kernel.toml", "cuda = \"13.0\"", "cuda = { path = \"../cuda\" }");
    let first = project.build(&[]);
    if first.code() != 0 {
        assert!(first.stderr().contains("is it a complete CUDA?"), "{}", first.stderr());
        skipped("the installed toolchain has no nvcc, without which it is no complete CUDA");
        return;
    }
    let library = fs::read_dir(cuda.join("lib")).unwrap().map(|e| e.unwrap().path());
    let library =
        library.into_iter().find(|p| p.file_name().unwrap().to_string_lossy().starts_with("libnvrtc.so.")).unwrap();
    let mut bytes = fs::read(&library).unwrap();
    bytes.push(0);
    fs::remove_file(&library).unwrap();
    fs::write(&library, bytes).unwrap();
    let compiles: BTreeSet<String> =
        first.finished().filter(|s| s["kind"] == "compile" && s["labels"]["target"] == "h200").map(id).collect();
    assert_eq!(project.built(&[]).executed(), compiles);
    let why = project.explain("one/k/DOUBLE=1/h200/compile");
    assert_eq!(why["because"][0]["why"]["field"], "inputs.toolchain");
}

/// A kernel for which NVRTC makes other machine code when its memory is laid out differently.
const CONVOLUTION: &str = r#"
[package]
name = "p"
version = "0.1.0"

[toolchain]
cuda = "13.0"

[targets.h200]
arch = "sm_90a"

[operator.conv2d]
dims = ["n", "c", "h", "w_", "k", "r"]
derived = { p = "h + 3 - r", q = "w_ + 3 - r" }
inputs.x = { dtype = "f32", shape = ["n", "c", "h", "w_"] }
inputs.w = { dtype = "f32", shape = ["k", "c", "r", "r"] }
inputs.bias = { dtype = "f32", shape = ["k"] }
outputs.y = { dtype = "f32", shape = ["n", "k", "p", "q"] }
reference = { builtin = "conv2d", padding = 1, activation = "relu" }
tolerance = { atol = 5e-5, rtol = 1e-5 }
shapes.ragged = { n = 2, c = 3, h = 11, w_ = 13, k = 5, r = 3 }

[kernel.conv2d]
operator = "conv2d"
source = "conv2d.cu"
tune = { FILTER = [3, 5], CHANNELS = [4, 1] }
launch = [{ entry = "conv2d<FILTER, CHANNELS>", grid = ["k"], block = [16, 16], args = ["x", "w", "bias", "y", "c", "h", "w_", "k", "p", "q"] }]
"#;

/// The kernel of an example. Before each compilation had a process of its own, its binaries differed from build to build.
#[test]
#[ignore = "second tier: many builds"]
fn machine_code_does_not_depend_on_places_the_environment_and_what_was_compiled_before() {
    let Some((installed, lock)) = installed() else { return };
    let source = include_str!("../../examples/kernels/convolution/conv2d.cu");
    let project = Project::new().file("kernel.toml", CONVOLUTION).file("conv2d.cu", source).file("kforge.lock", &lock);
    let compiled = |project: &Project, words: &[&str]| -> Vec<(String, Value)> {
        fs::create_dir_all(project.home()).unwrap();
        std::os::unix::fs::symlink(installed.join("toolchains"), project.home().join("toolchains")).unwrap();
        let check = [&["check", "--offline", "--message-format", "json"], words].concat();
        let built = Built::of(&project.command(&check).output().unwrap());
        let steps = built.finished().filter(|s| s["kind"] == "compile" && s["outcome"] == "executed");
        let mut all: Vec<(String, Value)> = steps.map(|s| (id(s), s["result"].clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    let first = compiled(&project, &["-j1"]);
    if first.is_empty() {
        skipped("the installed toolchain is not that of its lockfile");
        return;
    }
    assert_eq!(first.len(), 4);
    let elsewhere = project.cloned("a/workspace/whose/path/is/longer").fresh_home("and/a/home/whose/path/is/longer");
    let elsewhere =
        elsewhere.var("LC_ALL", "C.UTF-8").var("TZ", "Asia/Kolkata").var("SOME_OTHER_VARIABLE", "x".repeat(3000));
    assert_eq!(compiled(&elsewhere, &["-j2"]), first);
    // Each of them by itself, so after no other.
    let alone = project.cloned("alone").fresh_home("alone-home");
    alone.edit("kernel.toml", "FILTER = [3, 5], CHANNELS = [4, 1]", "FILTER = [5], CHANNELS = [1]");
    let one = compiled(&alone, &[]);
    assert_eq!(one, first.into_iter().filter(|(id, _)| one[0].0 == *id).collect::<Vec<_>>());
}

#[test]
fn a_run_of_a_step_for_cpu_resolves_no_toolchain_of_another_target() {
    let project = unbuilt();
    project.edit("kernel.toml", "[targets.cpu]", "[targets.cpu]\n\n[targets.big]\narch = \"sm_90\"");
    let only = "source = \"twice.cu\"\ntargets = [\"cpu\"]";
    project.edit("kernel.toml", only, &only.replace("[\"cpu\"]", "[\"cpu\", \"big\"]"));
    for step in ["sample/twice/cpu/compile", "twice/cpu/tiny/judge"] {
        let output = project.command(&["run", step]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(!text.contains("Resolving") && !project.root().join("kforge.lock").exists(), "{text}");
    }
}
