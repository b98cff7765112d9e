//! What a manifest declares about values and precision: constants that are infinite or NaN, struct arguments, inputs that a function makes, and how precisely
//! kernels compute. Each kernel checks what it is given and writes a wrong value otherwise.

use std::fs;
use std::path::Path;

use crate::project::{Built, Project};
use crate::python::python;

/// A package with one operator and its kernel on `cpu`.
fn project(operator: &str, kernel: &str, source: &str) -> Project {
    let head = "[package]\nname = \"p\"\nversion = \"0.1.0\"\n\n[targets.cpu]\n\n";
    Project::new().file("kernel.toml", &format!("{head}{operator}\n[kernel.k]\n{kernel}")).file("k.cu", source)
}

const JUDGE: &str = "p/k/cpu/one/judge";

const CAP: &str = r#"
[operator.cap]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
inputs.mask = { dtype = "f16", shape = ["n"], init = { constant = -inf } }
inouts.y = { dtype = "f32", shape = ["n"], init = { constant = -inf } }
params.alpha = { dtype = "f32", value = -inf }
params.beta = { dtype = "f64" }
reference = "ref.cpp::cap"
shapes.one = { n = 100, beta = nan }
shapes.two = { n = 33, beta = inf }
"#;

const CAP_KERNEL: &str = r#"
operator = "cap"
source = "k.cu"
launch = [{ entry = "cap", grid = ["1"], block = [128], args = ["x", "mask", "y", "alpha", "beta", { value = nan, dtype = "f16" }, "n", STRUCT] }]
"#;

/// Each form of a member.
const STRUCT: &str = r#"{ struct = ["-inf:f32", "y", { null = true }, { struct = ["n:i64", "inf:f16"] }, { ptr = "x", offset = 4 }, "true:bool", { pointers = ["x", "y"] }, "alpha", { value = 3, dtype = "u8" }] }"#;

const CAP_SOURCE: &str = r#"
#include <cuda_fp16.h>
struct In { long long n; __half top; };
struct Args { float low; float *y; const float *none; In in; const float *x4; bool yes; const float *const *both; float alpha; unsigned char three; };
__global__ void cap(const float *x, const __half *mask, float *y, float alpha, double beta, __half nan, int n, Args s) {
  int i = threadIdx.x;
  bool good = alpha < -3e38f && !(__half2float(nan) == __half2float(nan)) && (beta != beta || beta > 1e300)
    && s.low < -3e38f && s.y == y && !s.none && s.in.n == n && __half2float(s.in.top) > 3e38f && s.x4 == x + 4 && s.yes && s.both[1] == y
    && s.alpha == alpha && s.three == 3;
  if (i < n) y[i] = !good ? 7.0f : i == 0 ? (float)beta : i == 1 ? alpha : fmaxf(x[i] + __half2float(mask[i]), y[i]) < -3e38f ? x[i] : 8.0f;
}
"#;

const CAP_REFERENCE: &str = r#"
#include <cmath>
extern "C" void cap(const kforge::Call &call) {
    const double *x = call.floats("x"), *mask = call.floats("mask"), *y = call.floats("y");
    double *out = call.out_floats("y");
    for (int64_t i = 0; i < call.dim("n"); ++i) out[i] = std::isinf(mask[i]) && std::isinf(y[i]) ? x[i] : 9.0;
    out[0] = call.param("beta");
    out[1] = call.param("alpha");
}
"#;

#[test]
#[ignore = "second tier: many builds"]
fn inputs_params_and_arguments_may_be_infinite_or_nan() {
    let project = project(CAP, &CAP_KERNEL.replace("STRUCT", STRUCT), CAP_SOURCE).file("ref.cpp", CAP_REFERENCE);
    let built = project.built(&[]);
    for shape in ["one", "two"] {
        assert_eq!(built.step(&format!("p/k/cpu/{shape}/judge"))["verdict"], "pass");
    }
    // They are words in JSON, and in keys.
    let explained = project.explain("p/k/cpu/one/verify").to_string();
    for word in ["-inf", "nan"] {
        assert!(
            explained.contains(&format!("\\\"{word}\\\"")) || explained.contains(&format!("\"{word}\"")),
            "{explained}"
        );
    }
    assert_eq!(project.built(&[]).count("executed"), 0);
    // Another constant is another question, and integers have none.
    project.edit("kernel.toml", "init = { constant = -inf } }\nparams", "init = { constant = inf } }\nparams");
    project.build(&["--keep-going"]).expect(100);
    project.edit("kernel.toml", "inputs.mask = { dtype = \"f16\"", "inputs.mask = { dtype = \"i32\"");
    project.build(&[]).expect(101).says("-inf is not a value of dtype i32");
}

const NARROW: &str = r#"
[operator.narrow]
dims = ["m", "n", "k"]
inputs.a = { dtype = "f16", shape = ["m", "k"] }
inputs.b = { dtype = "f16", shape = ["k", "n"] }
outputs.c = { dtype = "f16", shape = ["m", "n"] }
reference = "builtin:matmul"
precision = { accumulate = "f16" }
shapes.one = { m = 16, n = 16, k = 300 }
"#;

const NARROW_KERNEL: &str = r#"
operator = "narrow"
source = "k.cu"
launch = [{ entry = "narrow", grid = ["m"], block = ["n"], args = ["a", "b", "c", "n", "k"] }]
"#;

const NARROW_SOURCE: &str = r#"
#include <cuda_fp16.h>
__global__ void narrow(const __half *a, const __half *b, __half *c, int n, int k) {
  int i = blockIdx.x, j = threadIdx.x;
  __half sum = __float2half(0.0f);
  for (int l = 0; l < k; ++l) sum = __hfma(a[i * k + l], b[l * n + j], sum);
  c[i * n + j] = sum;
}
"#;

const ROUNDED: &str = r#"
[operator.rounded]
dims = ["n"]
inputs.x = { dtype = "f16", shape = ["n"] }
inputs.w = { dtype = "f16", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "exp(x) * w" }
precision = { intermediates = ["f16"] }
shapes.one = { n = 1000 }
"#;

const ROUNDED_KERNEL: &str = r#"
operator = "rounded"
source = "k.cu"
launch = [{ entry = "rounded", grid = ["ceil_div(n, 128)"], block = [128], args = ["x", "w", "y", "n"] }]
"#;

const ROUNDED_SOURCE: &str = r#"
#include <cuda_fp16.h>
__global__ void rounded(const __half *x, const __half *w, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __half2float(__float2half(expf(__half2float(x[i])))) * __half2float(w[i]);
}
"#;

/// A kernel that computes as its operator declares passes, and the operator decides. Without the declaration it is wrong, and so is a wrong kernel with it.
#[track_caller]
fn as_declared(project: &Project, operator: &str, (right, wrong): (&str, &str)) {
    let built = project.built(&[]);
    assert_eq!(built.step(JUDGE)["verdict"], "pass");
    assert_eq!(built.step(&format!("p/{operator}/calibrate"))["verdict"], "pass");
    project.edit("kernel.toml", "\nprecision", "\n#precision");
    project.build(&[]).expect(100);
    project.edit("kernel.toml", "\n#precision", "\nprecision");
    project.edit("k.cu", right, wrong);
    project.build(&[]).expect(100);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_derived_tolerance_knows_a_declared_accumulator_and_roundings_in_between() {
    let narrow = project(NARROW, NARROW_KERNEL, NARROW_SOURCE);
    as_declared(&narrow, "narrow", ("l < k;", "l < k - 1;"));
    narrow.edit("kernel.toml", "precision = {", "tolerance = { rtol = 1e-2 }\nprecision = {");
    narrow.build(&[]).expect(101).says("`precision` has no effect beside a stated tolerance");
    let rounded = project(ROUNDED, ROUNDED_KERNEL, ROUNDED_SOURCE);
    as_declared(&rounded, "rounded", ("* __half2float(w[i])", "* __half2float(w[i]) * 1.004f"));
    rounded.edit("kernel.toml", "intermediates = [\"f16\"]", "intermediates = [\"i32\"]");
    rounded.build(&[]).expect(101).says("`i32` is not a float type");
}

/// The example of the manifest's page under `generate_inputs`: the table and the function.
fn shown() -> (String, String) {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/manifest.md")).unwrap();
    let (_, section) = page.split_once("### Inputs that depend on each other").unwrap();
    let block = |language: &str| {
        let (_, block) = section.split_once(&format!("```{language}\n")).unwrap();
        block.split("```").next().unwrap().to_string()
    };
    (block("toml"), block("python"))
}

const LOOKUP_SOURCE: &str = r#"
__global__ void lookup(const float *table, const int *page, float *y, int pages, int rows) {
  int i = threadIdx.x;
  if (i < rows) y[i] = page[i] >= 0 && page[i] < pages ? table[page[i]] : 0.0f;
}
"#;

const LOOKUP_REFERENCE: &str = "
import numpy

def lookup(table, page):
    assert (page[1:] >= page[:-1]).all() and page.dtype == numpy.int64
    return numpy.where(page >= 0, table[page], 0)
";

#[track_caller]
fn broken(project: &Project, from: &str, to: &str, says: &str) {
    project.edit("inputs.py", from, to);
    project.build(&[]).expect(101).says(says);
    project.edit("inputs.py", to, from);
}

#[test]
#[ignore = "second tier: many builds"]
fn the_documented_function_makes_inputs_that_depend_on_each_other() {
    let Some(python) = python() else { return };
    let (table, function) = shown();
    let kernel = "operator = \"lookup\"\nsource = \"k.cu\"\nlaunch = [{ entry = \"lookup\", grid = [1], block = [64], args = [\"table\", \"page\", \"y\", \"pages\", \"rows\"] }]\n";
    let project = project(&table, kernel, LOOKUP_SOURCE)
        .file("ref.py", LOOKUP_REFERENCE)
        .file("inputs.py", &function)
        .var("PATH", path_with(&python));
    let verdict = |built: &Built| built.step("p/k/cpu/one/judge")["verdict"].clone();
    assert_eq!(verdict(&project.built(&[])), "pass");
    assert_eq!(project.built(&[]).count("executed"), 0, "the same arguments give the same inputs");
    broken(&project, "\"page\": ", "\"pages\": ", "there is no such tensor to give");
    broken(&project, "size=rows", "size=rows + 1", "has the shape [21], expected [20]");
    broken(&project, "numpy.sort(", "0.5 + numpy.sort(", "holds integers, but fractions were given");
    broken(
        &project,
        "(seed, distribution, rows, pages)",
        "(seed, distribution, rows, page)",
        "asks for `page`; there are",
    );
    project.edit("k.cu", "table[page[i]]", "table[i]");
    project.build(&[]).expect(100);
}

/// The search path with the folder of a program before it.
fn path_with(program: &Path) -> std::ffi::OsString {
    let folder = program.parent().unwrap().to_path_buf();
    std::env::join_paths([folder, "/usr/bin".into(), "/bin".into()]).unwrap()
}
