//! Sources that include the world of their projects, which is absent here: their kernels reach verdicts as they are. The sources are re-creations of kinds of
//! public code: a trainer with benchmarks beside its kernels, an extension of PyTorch, a collection of kernels with bindings by macros, a sample of CUDA, a
//! backend of a larger program.

use std::fs;
use std::path::Path;

use crate::machine::installed;
use crate::project::{Built, Project};
use kforge::base::testing::skipped;

/// A workspace with the files of a re-creation.
fn recreated(name: &str) -> Project {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/host_code").join(name);
    let mut project = Project::new();
    for entry in walkdir::WalkDir::new(&folder).into_iter().map(Result::unwrap).filter(|e| e.file_type().is_file()) {
        let name = entry.path().strip_prefix(&folder).unwrap().to_str().unwrap();
        project = project.file(name, &fs::read_to_string(entry.path()).unwrap());
    }
    project
}

/// The verdicts of a build by kernel, at every shape.
fn verdicts(built: &Built) -> Vec<(String, String)> {
    let judged = built.finished().filter(|step| step["kind"] == "judge");
    let mut found: Vec<(String, String)> = judged
        .map(|step| {
            let verdict = &step["verdict"];
            let text = verdict.as_str().map_or_else(|| verdict.to_string(), str::to_string);
            (step["labels"]["kernel"].as_str().unwrap().to_string(), text)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[track_caller]
fn passes(project: &Project, kernels: &[&str]) {
    passes_with(project, &[], kernels);
}

#[track_caller]
fn passes_with(project: &Project, words: &[&str], kernels: &[&str]) {
    let built = project.build(words);
    let expected: Vec<(String, String)> = kernels.iter().map(|k| (k.to_string(), "pass".to_string())).collect();
    assert_eq!(verdicts(&built), expected, "{}", built.stderr());
    assert_eq!(built.code(), 0, "{}", built.stderr());
}

const OVERLOADS: &str = "\
#include <library/half.h>
namespace library {
__global__ void doubled(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
__global__ void doubled(const double *x, double *y, int n) { }
}
";
const OVERLOADED: &str = "\
[package]
name = \"overloads\"

[operator.doubled]
dims = [\"n\"]
inputs.x = { dtype = \"f32\", shape = [\"n\"] }
outputs.y = { dtype = \"f32\", shape = [\"n\"] }
reference = { builtin = \"elementwise\", y = \"2 * x\" }
shapes.ragged = { n = 37 }

[kernel.doubled]
operator = \"doubled\"
source = \"doubled.cu\"

[[kernel.doubled.launch]]
entry = \"library::doubled(const float *, float *, int)\"
grid = [\"ceil_div(n, 32)\"]
block = [32]
args = [\"x\", \"y\", \"n\"]
";

#[test]
#[ignore = "second tier: many builds"]
fn an_overload_without_template_arguments_is_named_by_its_parameters() {
    let project = Project::new().file("kernel.toml", OVERLOADED).file("doubled.cu", OVERLOADS);
    passes(&project, &["doubled"]);
    project.edit("kernel.toml", "library::doubled(", "library::halved(");
    let built = project.build(&[]).expect(101);
    assert!(built.stderr().contains("`doubled.cu` has no kernel `halved`"), "{}", built.stderr());
}

/// What `kforge explain STEP` prints.
fn explained(project: &Project, step: &str) -> String {
    String::from_utf8(project.command(&["explain", step]).output().unwrap().stdout).unwrap()
}

#[test]
fn kernels_that_a_library_surrounds_pass_and_what_was_left_out_is_listed() {
    let project = recreated("bindings");
    let two = ["--kernel", "made", "--kernel", "same_name"];
    passes_with(&project, &two, &["made", "same_name"]);
    let text = explained(&project, "bindings/same_name/cpu/compile");
    for line in [
        "no entry needs these parts of `relu.cu`, which were left out:",
        "relu.cu:11: the header `torch/extension.h`, which is not here",
        "relu.cu:12: the header `utils.h`, which is not here",
        "relu.cu:29-40: `relu_f32x4_kernel`",
        "relu.cu:47-52: `relu_naive`",
        "relu.cu:83: `relu_f32`",
        "relu.cu:87-91: `PYBIND11_MODULE`",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("relu.cu:42"), "the kernel itself: {text}");
    // A header that appears is found, and is part of every key.
    assert_eq!(project.build(&two).count("executed"), 0);
    project.write("utils.h", "#pragma once\n#error found\n");
    project.build(&["--kernel", "made"]).expect(101).says("found");
}

/// Two kernels of one operator in one file.
fn two_in_a_file() -> Project {
    let manifest = "[package]\nname = \"two\"\n\n[targets.cpu]\n\n[operator.twice]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\n\
        outputs.y = { dtype = \"f32\", shape = [\"n\"] }\nreference = { builtin = \"elementwise\", y = \"2 * x\" }\ntolerance = { atol = 0.0, rtol = 0.0 }\nshapes.ragged = { n = 70 }\n";
    let kernel = |name: &str| {
        format!(
            "\n[kernel.{name}]\noperator = \"twice\"\nsource = \"twice.cu\"\nlaunch = [{{ entry = \"{name}\", grid = [\"ceil_div(n, 32)\"], block = [32], args = [\"y\", \"x\", \"n\"] }}]\n"
        )
    };
    let source = "__device__ int at() { return blockIdx.x * blockDim.x + threadIdx.x; }\n\
        __global__ void sum(float *y, const float *x, int n) {\n  if (at() < n) y[at()] = x[at()] + x[at()];\n}\n\
        __global__ void product(float *y, const float *x, int n) {\n  if (at() < n) y[at()] = x[at()] * 2;\n}\n";
    Project::new()
        .file("kernel.toml", &format!("{manifest}{}{}", kernel("sum"), kernel("product")))
        .file("twice.cu", source)
}

#[test]
#[ignore = "second tier: compiles a file of many kernels twice"]
fn an_edit_of_one_kernel_changes_no_binary_of_the_others_in_its_file() {
    let project = two_in_a_file();
    passes(&project, &["product", "sum"]);
    let text = explained(&project, "two/sum/cpu/compile");
    assert!(text.contains("no entry needs these parts of `twice.cu`, which were left out:"), "{text}");
    assert!(text.contains("twice.cu:5-7: `product`"), "{text}");
    project.edit("twice.cu", "x[at()] * 2", "2.0f * x[at()] + 0 * n");
    let built = project.built(&[]);
    let executed = built.executed();
    let again: Vec<&str> = executed.iter().map(String::as_str).filter(|id| id.ends_with("/verify")).collect();
    assert_eq!(again, ["two/product/cpu/ragged/verify"], "{executed:?}");
    // A mistake in one is no error of the other.
    project.edit("twice.cu", "2.0f *", "2.0f * oops *");
    let built = project.build(&["--keep-going"]).expect(101).says("oops");
    assert_eq!(built.step("two/sum/cpu/ragged/judge")["verdict"], "pass", "{}", built.stderr());
}

/// A package of kernels that double, each in a file of its own, with these macros given.
fn doubling(kernels: &[(&str, &str, &str)]) -> Project {
    let mut manifest = "[package]\nname = \"doubling\"\n\n[targets.cpu]\n\n[operator.twice]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\n\
        outputs.y = { dtype = \"f32\", shape = [\"n\"] }\nreference = { builtin = \"elementwise\", y = \"2 * x\" }\ntolerance = { atol = 0.0, rtol = 0.0 }\nshapes.ragged = { n = 70 }\n"
        .to_string();
    let mut project = Project::new();
    for (name, defines, source) in kernels {
        manifest += &format!(
            "\n[kernel.{name}]\noperator = \"twice\"\nsource = \"{name}.cu\"\ndefines = {{ {defines} }}\nlaunch = [{{ entry = \"twice_kernel\", grid = [\"ceil_div(n, 32)\"], block = [32], args = [\"y\", \"x\", \"n\"] }}]\n"
        );
        project = project.file(&format!("{name}.cu"), source);
    }
    project.file("kernel.toml", &manifest)
}

#[test]
#[ignore = "second tier: compiles many sources"]
fn a_macro_that_makes_a_kernel_and_host_code_means_what_it_means_where_it_is_used() {
    let make = |factor: &str| {
        format!(
            "#define MAKE(n) __global__ void n##_kernel(float *y, const float *x, int m) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < m) y[i] = {factor} * x[i]; }} \
             void n(torch::Tensor t) {{ n##_kernel<<<1, 1>>>(t.x(), t.y(), 1); }}\n"
        )
    };
    let include = "#include <torch/extension.h>\n";
    let given = format!("{include}#ifndef F\n#define F 3\n#endif\n{}MAKE(twice)\n", make("F"));
    let redefined = format!("{include}#define V 3\n{}#undef V\n#define V 2\nMAKE(twice)\n", make("V"));
    let several = format!("{include}#ifdef OTHER\n{}#else\n{}#endif\nMAKE(twice)\n", make("2"), make("3"));
    let plain = make("V");
    let plain = plain.split_once(") ").unwrap().1.split_once("} void").unwrap().0.replace("n##", "twice");
    let restored = format!(
        "#define V 2\n__global__ void other() {{\n#pragma push_macro(\"V\")\n#undef V\n#define V 3\n}}\n#pragma pop_macro(\"V\")\n{plain}}}\n"
    );
    let project = doubling(&[
        ("given", "F = \"2\"", &given),
        ("redefined", "", &redefined),
        ("restored", "", &restored),
        ("several", "", &several),
    ]);
    let built = project.build(&["--keep-going"]);
    let found = verdicts(&built);
    for kernel in ["given", "redefined", "restored"] {
        assert!(found.contains(&(kernel.into(), "pass".into())), "{found:?}\n{}", built.stderr());
    }
    let why = &found.iter().find(|(kernel, _)| kernel == "several").unwrap().1;
    assert!(why.contains("unknown"), "{why}");
    built.says("`MAKE` may make host code also, and stays as it is: what it stands for depends on conditions");
}

#[test]
#[ignore = "second tier: compiles many sources"]
fn an_overload_that_may_be_chosen_without_a_missing_header_is_not_left_out() {
    // As they are written, with the header, these kernels triple.
    let source = |declarations: &str, value: &str| {
        format!(
            "#include <torch/extension.h>\n#include <type_traits>\n{declarations}\n__global__ void twice_kernel(float *y, const float *x, int n) {{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  \
             if (i < n) y[i] = {value};\n}}\ntorch::Tensor host(torch::Tensor x) {{ return x; }}\n"
        )
    };
    let negated = source(
        "template <typename T, typename = void> struct Op { static __device__ T run(T v) { return 2 * v; } };\n\
         template <typename T> struct Op<T, std::enable_if_t<!c10::is_complex<T>::value>> { static __device__ T run(T v) { return 3 * v; } };",
        "Op<float>::run(x[i])",
    );
    let default = source(
        "__device__ float act(double v) { return 2 * v; }\n__device__ float act(float v, at::Tensor *t = nullptr) { return 3 * v; }",
        "act(x[i])",
    );
    let half = source(
        "template <typename T> struct Tr { static constexpr int F = 2; };\ntemplate <> struct Tr<c10::Half> : at::Base { static constexpr int F = 3; };\n\
         __device__ float act(float v) { return v; }\n__device__ float act(const c10::Half &v) { return 3 * v; }",
        "Tr<float>::F * act(x[i])",
    );
    let overload =
        |second: &str| source(&format!("__device__ float act(double v) {{ return 2 * v; }}\n{second}"), "act(x[i])");
    let alias = overload("__device__ float act(mylib::Real v) { return 3 * v; }");
    let annotated = overload("MYLIB_FN float act(float v) { return 3 * v; }");
    let constant = source(
        "constexpr float scale = 2;\nnamespace ops { const mylib::real<4> scale = 3; __device__ float act(float v) { return scale * v; } }",
        "ops::act(x[i])",
    );
    let project = doubling(&[
        ("alias", "", &alias),
        ("annotated", "", &annotated),
        ("constant", "", &constant),
        ("default", "", &default),
        ("half", "", &half),
        ("negated", "", &negated),
    ]);
    let built = project.build(&["--keep-going"]);
    let found = verdicts(&built);
    assert!(found.contains(&("half".into(), "pass".into())), "{found:?}\n{}", built.stderr());
    for (kernel, missing) in [
        ("alias", "mylib::Real"),
        ("annotated", "MYLIB_FN"),
        ("constant", "mylib::real"),
        ("default", "at::Tensor"),
        ("negated", "c10::is_complex"),
    ] {
        let why = &found.iter().find(|(found, _)| found == kernel).unwrap().1;
        let needs = format!("{missing}, which a missing header declares, at {kernel}.cu:");
        assert!(why.contains("unknown") && why.contains(&needs), "{why}");
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn a_source_that_fixes_the_meaning_of_a_tunable_is_an_error() {
    let with_call = |head: &str, parameters: &str, call: &str| {
        let source = format!(
            "{head}__global__ void twice_kernel(float *y, const float *x, {parameters}) {{\n  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) y[i] = 2 * x[i]{call};\n}}\n"
        );
        let project = doubling(&[("tuned", "", &source)]);
        project.edit("kernel.toml", "defines = {  }", "tune.BLOCK = [32, 64]");
        project.edit("kernel.toml", "ceil_div(n, 32)\"], block = [32]", "ceil_div(n, BLOCK)\"], block = [\"BLOCK\"]");
        project
    };
    let project = |head: &str, parameters: &str| with_call(head, parameters, "");
    let torch = "#include <torch/extension.h>\n";
    let constant = "static constexpr int BLOCK = 128;\n";
    for (head, parameters, said) in [
        ("#define BLOCK 32\n", "int n", "tuned.cu:1 defines `BLOCK`, so the tunable `BLOCK` has no effect"),
        (constant, "int n", "tuned.cu:1 declares `BLOCK`, and the tunable `BLOCK` is a macro of that name"),
        (&format!("{torch}{constant}"), "int n", "tuned.cu:2 declares `BLOCK`, and the tunable `BLOCK` is a macro"),
        ("", "int n, int BLOCK = 32", "tuned.cu:1: kernel `twice_kernel` has a parameter `BLOCK`, and the tunable"),
    ] {
        project(head, parameters).build(&[]).expect(101).says(said).says("give the tunable");
    }
    for (head, call, said) in [
        (
            "",
            "; const int BLOCK = 4",
            "tuned.cu:3: `twice_kernel` has a variable `BLOCK`, and the tunable `BLOCK` is a macro",
        ),
        (
            "__device__ float one(int BLOCK) { return 1; }\n",
            " * one(2)",
            "tuned.cu:1: `one` has a parameter `BLOCK`, and the",
        ),
        (
            "struct One {\n  float BLOCK;\n};\n",
            " * One{1}.BLOCK",
            "tuned.cu:2: `One` has a member `BLOCK`, and the tunable",
        ),
    ] {
        with_call(head, "int n", call).build(&[]).expect(101).says(said).says("give the tunable or the ");
    }
    // What no kernel uses is left out, as host code is.
    passes(
        &with_call("#include <torch/extension.h>\n__device__ float one(int BLOCK) { return 1; }\n", "int n", ""),
        &["tuned"],
    );
    passes(&project("#ifndef BLOCK\n#define BLOCK 256\n#endif\n", "int n"), &["tuned"]);
    passes(&project(&format!("#ifndef BLOCK\n{constant}#endif\n"), "int n"), &["tuned"]);
}

#[test]
#[ignore = "second tier: many compilations"]
fn each_kind_of_project_passes_as_it_is() {
    passes(&recreated("trainer"), &["scalar", "strided"]);
    passes(&recreated("bindings"), &["made", "plain", "same_name", "vector"]);
    passes(&recreated("sample"), &["total"]);
    passes(&recreated("backend"), &["norm"]);
}

#[test]
#[ignore = "second tier: many compilations"]
fn each_kind_of_project_passes_with_clang() {
    let clang = Path::new("/usr/bin/clang++");
    if !clang.exists() {
        skipped("no clang++ is installed");
        return;
    }
    for (name, kernels) in [
        ("trainer", &["scalar", "strided"][..]),
        ("bindings", &["made", "plain", "same_name", "vector"]),
        ("sample", &["total"]),
        ("backend", &["norm"]),
    ] {
        passes(&recreated(name).var("KFORGE_TOOLCHAIN_CXX", clang).home_at("clang"), kernels);
    }
}

#[test]
#[ignore = "second tier: many compilations"]
fn a_kernel_that_needs_what_is_missing_says_so_and_the_others_are_judged() {
    let built = recreated("extension").build(&["--keep-going"]);
    let found = verdicts(&built);
    assert!(found.contains(&("scale".into(), "pass".into())), "{found:?}\n{}", built.stderr());
    let why = &found.iter().find(|(kernel, _)| kernel == "dropped").unwrap().1;
    assert!(why.contains("unknown") && why.contains("at::PhiloxCudaState"), "{why}");
    built.says(
        "kernel `ops::dropout_kernel<float>` needs `at::PhiloxCudaState` (csrc/scale_kernel.cu:38), which one of the missing headers",
    );
}

/// The same project for machine code, compiled by one compiler; none if no toolchain is installed.
fn for_machine(name: &str, compiler: &str) -> Option<Project> {
    let (installed, lock) = installed()?;
    let project = recreated(name).file("kforge.lock", &lock);
    let manifest = fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    let manifest =
        manifest.replace("[targets.cpu]", "[toolchain]\ncuda = \"13.0\"\n\n[targets.h200]\narch = \"sm_90a\"");
    let manifest = manifest.replace("source = ", &format!("compiler = \"{compiler}\"\nsource = "));
    project.write("kernel.toml", &manifest);
    fs::create_dir_all(project.home()).unwrap();
    std::os::unix::fs::symlink(installed.join("toolchains"), project.home().join("toolchains")).unwrap();
    Some(project)
}

#[test]
#[ignore = "second tier: many compilations"]
fn each_kind_of_project_compiles_to_machine_code() {
    for compiler in ["nvrtc", "nvcc", "auto"] {
        for name in ["trainer", "bindings", "sample", "backend"] {
            let Some(project) = for_machine(name, compiler) else { return };
            let built = project.build(&[]);
            let compiled = built.finished().filter(|s| s["kind"] == "inspect" && s["outcome"] == "executed").count();
            assert!(compiled > 0 && built.code() == 0, "{name} by {compiler}: {}", built.stderr());
        }
        let Some(project) = for_machine("extension", compiler) else { return };
        let built = project
            .build(&["--keep-going"])
            .expect(101)
            .says("needs `at::PhiloxCudaState` (csrc/scale_kernel.cu:38), which one of the missing headers");
        assert!(
            built.finished().any(|s| s["kind"] == "inspect" && s["labels"]["kernel"] == "scale"),
            "{}",
            built.stderr()
        );
    }
}
