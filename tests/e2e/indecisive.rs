//! Operators whose tolerance cannot tell correct from wrong, built as users build them: the build goes on, their kernels are unknown, and what to paste into the
//! manifest makes them decide. One test for each construct of published kernels for which no tolerance, or none that was stated, decides.

use crate::project::{Built, Project};

/// A package of one operator and one kernel `k`.
fn project(operator: &str, launch: &str, source: &str) -> Project {
    let manifest = format!(
        "[package]\nname = \"one\"\nversion = \"0.1.0\"\n\n[targets.cpu]\n\n[operator.o]\n{operator}\n\n[kernel.k]\noperator = \"o\"\nsource = \"k.cu\"\nlaunch = [{launch}]\n"
    );
    Project::new().file("kernel.toml", &manifest).file("k.cu", source)
}

/// A build of an indecisive operator: it goes on, the kernel is neither correct nor wrong, and no variant is selected.
#[track_caller]
fn undecided(project: &Project, outputs: &[&str]) -> Built {
    let built = project.build(&[]).expect(0).says("warning").says("indecisive");
    let why =
        built.step("one/k/cpu/s/judge")["verdict"]["unknown"]["indecisive"].as_str().unwrap_or_default().to_string();
    assert!(outputs.iter().all(|output| why.contains(&format!("`{output}` accepts"))), "{why}\n{}", built.stderr());
    assert_eq!(why.matches(" accepts ").count(), outputs.len(), "{why}");
    assert_eq!(built.events("champion").count(), 0, "{}", built.stderr());
    let report = project.report_value();
    let target = &report["packages"][0]["kernels"][0]["targets"][0];
    assert_eq!((&target["champions"][0]["variant"], &target["variants"][1]), (&serde_json::Value::Null, &0.into()));
    let shown = &target["shapes"][0];
    assert!(shown["verdict"]["unknown"]["indecisive"].is_string(), "{shown}");
    built
}

/// The lines that a build proposes, each a key of the operator.
fn proposed(built: &Built) -> Vec<String> {
    let texts = built.stderr().split("paste `").skip(1).filter_map(|rest| Some(rest.split_once('`')?.0.to_string()));
    let mut lines: Vec<String> = texts.collect();
    lines.dedup();
    lines
}

/// Pastes a line. A tolerance replaces the stated one.
fn paste(project: &Project, line: &str) {
    let manifest = std::fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    let key = line.split_once(' ').unwrap().0;
    let kept: Vec<&str> = manifest.lines().filter(|l| !l.starts_with(&format!("{key} "))).collect();
    project.write("kernel.toml", &kept.join("\n").replacen("[operator.o]\n", &format!("[operator.o]\n{line}\n"), 1));
}

/// A build in which the kernel is correct and is selected.
#[track_caller]
fn correct(project: &Project) {
    let built = project.built(&[]);
    assert_eq!(built.step("one/k/cpu/s/judge")["verdict"], "pass", "{}", built.stderr());
    assert_eq!(built.events("champion").count(), 1);
}

#[test]
#[ignore = "second tier: builds several times"]
fn the_mean_and_rstd_of_rows_in_bf16_can_be_declared_undecidable() {
    let operator = "dims = [\"rows\", \"cols\"]\ninputs.x = { dtype = \"f32\", shape = [\"rows\", \"cols\"], init = { range = [0, 1] } }\n\
        outputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\noutputs.mean = { dtype = \"bf16\", shape = [\"rows\"] }\n\
        outputs.rstd = { dtype = \"bf16\", shape = [\"rows\"] }\nreference = \"builtin:layer_norm\"\ntolerance = \"auto\"\n\
        shapes.s = { rows = 512, cols = 64 }";
    let source = "#include <cuda_bf16.h>\n__global__ void k(const float *x, float *y, __nv_bfloat16 *mean, __nv_bfloat16 *rstd, int cols) {\n\
        x += blockIdx.x * cols; y += blockIdx.x * cols;\n  double sum = 0, squares = 0;\n\
        for (int i = 0; i < cols; i++) sum += x[i];\n  double m = sum / cols;\n\
        for (int i = 0; i < cols; i++) squares += (x[i] - m) * (x[i] - m);\n  double r = 1 / sqrt(squares / cols + 1e-5);\n\
        for (int i = 0; i < cols; i++) y[i] = (x[i] - m) * r;\n\
        mean[blockIdx.x] = __float2bfloat16(m);\n  rstd[blockIdx.x] = __float2bfloat16(r);\n}\n";
    let launch =
        "{ entry = \"k\", grid = [\"rows\"], block = [\"1\"], args = [\"x\", \"y\", \"mean\", \"rstd\", \"cols\"] }";
    let project = project(operator, launch, source);
    let lines = proposed(&undecided(&project, &["mean", "rstd"]));
    assert_eq!(lines, ["verify.undecidable = [\"mean\", \"rstd\"]"]);
    paste(&project, &lines[0]);
    correct(&project);
    // What is declared undecidable is compared all the same.
    project.edit("k.cu", "rstd[blockIdx.x] = __float2bfloat16(r)", "rstd[blockIdx.x] = __float2bfloat16(2 * r)");
    project.build(&[]).expect(100).says("`rstd` is wrong");
}

#[test]
#[ignore = "second tier: builds several times"]
fn a_long_sum_in_one_f32_gets_a_tolerance_that_sums_over_trees_meet() {
    let operator = "dims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"], init = { range = [0, 1] } }\n\
        outputs.y = { dtype = \"f32\", shape = [1] }\nreference = \"builtin:sum\"\ntolerance = \"auto\"\nshapes.s = { n = 4096 }";
    let source = "__global__ void k(const float *x, float *y, int n) {\n  __shared__ float part[256];\n  float sum = 0;\n\
        for (int i = threadIdx.x; i < n; i += 256) sum += x[i];\n  part[threadIdx.x] = sum;\n  __syncthreads();\n\
        for (int half = 128; half > 0; half /= 2) {\n    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];\n    __syncthreads();\n  }\n\
        if (threadIdx.x == 0) *y = part[0];\n}\n";
    let launch = "{ entry = \"k\", grid = [\"1\"], block = [\"256\"], args = [\"x\", \"y\", \"n\"] }";
    let project = project(operator, launch, source);
    let lines = proposed(&undecided(&project, &["y"]));
    assert!(lines[0].starts_with("tolerance = { atol = ") && lines[1] == "verify.undecidable = [\"y\"]", "{lines:?}");
    paste(&project, &lines[0]);
    correct(&project);
    // Inputs in half precision are what such a tolerance must tell.
    project.edit("k.cu", "sum += x[i]", "sum += __half2float(__float2half(x[i]))");
    project.edit("k.cu", "__global__", "#include <cuda_fp16.h>\n__global__");
    project.build(&[]).expect(100).says("`y` is wrong");
}

#[test]
#[ignore = "second tier: many builds"]
fn one_integer_that_is_always_zero_can_be_declared_undecidable() {
    let operator = "dims = [\"n\"]\ninputs.x = { dtype = \"i32\", shape = [\"n\"], init = { range = [0, 7] } }\n\
        outputs.found = { dtype = \"i32\", shape = [\"n\"] }\nreference = { builtin = \"elementwise\", found = \"x > 100\" }\nshapes.s = { n = 1 }";
    let source = "__global__ void k(const int *x, int *found) { *found = *x > 100; }\n";
    let launch = "{ entry = \"k\", grid = [\"1\"], block = [\"1\"], args = [\"x\", \"found\"] }";
    let project = project(operator, launch, source);
    let built = undecided(&project, &["found"]);
    let lines = proposed(&built.says("declare shapes or inputs with other results"));
    assert_eq!(lines, ["verify.undecidable = [\"found\"]"]);
    paste(&project, &lines[0]);
    correct(&project);
    project.edit("k.cu", "*x > 100", "*x > 1");
    project.build(&[]).expect(100).says("`found`");
}

/// A product of 16 x 16 matrices with a tolerance for tf32.
fn loose() -> Project {
    let operator = "dims = [\"n\"]\ninputs.a = { dtype = \"f32\", shape = [\"n\", \"n\"] }\ninputs.b = { dtype = \"f32\", shape = [\"n\", \"n\"] }\n\
        outputs.c = { dtype = \"f32\", shape = [\"n\", \"n\"] }\nreference = \"builtin:matmul\"\ntolerance = { atol = 5e-1, rtol = 5e-2 }\nshapes.s = { n = 16 }";
    let source = "__device__ float cut(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }\n\
        __global__ void k(const float *a, const float *b, float *c, int n) {\n  int i = threadIdx.y, j = threadIdx.x;\n  float sum = 0;\n\
        for (int l = 0; l < n; l++) sum += cut(a[i * n + l]) * cut(b[l * n + j]);\n  c[i * n + j] = sum;\n}\n";
    let launch = "{ entry = \"k\", grid = [\"1\"], block = [\"n\", \"n\"], args = [\"a\", \"b\", \"c\", \"n\"] }";
    project(operator, launch, source)
}

#[test]
#[ignore = "second tier: many builds"]
fn a_loose_tolerance_for_tf32_is_kept_by_a_declaration_or_tightened() {
    let project = loose();
    let lines = proposed(&undecided(&project, &["c"]));
    assert!(lines[0].starts_with("tolerance = { atol = ") && lines[1] == "verify.undecidable = [\"c\"]", "{lines:?}");
    let tight = project.cloned("tight");
    paste(&project, &lines[1]);
    correct(&project);
    // The kernel computes with the precision of tf32, which the proposed tolerance rejects; one in full precision meets it.
    paste(&tight, &lines[0]);
    tight.build(&[]).expect(100).says("`c` is wrong");
    tight.edit("k.cu", "cut(a[i * n + l]) * cut(b[l * n + j])", "a[i * n + l] * b[l * n + j]");
    correct(&tight);
}

#[test]
fn an_f64_output_of_f32_inputs_gets_a_tolerance_that_f32_arithmetic_meets() {
    let operator = "dims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\noutputs.y = { dtype = \"f64\", shape = [\"n\"] }\n\
        reference = { builtin = \"elementwise\", y = \"2 * x + 1\" }\ntolerance = { atol = 1e-1, rtol = 1e-2 }\nshapes.s = { n = 64 }";
    let source = "__global__ void k(const float *x, double *y) { int i = threadIdx.x; y[i] = 2 * x[i] + 1; }\n";
    let launch = "{ entry = \"k\", grid = [\"1\"], block = [\"n\"], args = [\"x\", \"y\"] }";
    let project = project(operator, launch, source);
    let lines = proposed(&undecided(&project, &["y"]));
    assert!(lines[0].starts_with("tolerance = { atol = "), "{lines:?}");
    paste(&project, &lines[0]);
    correct(&project);
}

#[test]
fn an_operator_that_must_decide_is_an_error_otherwise() {
    let project = loose();
    paste(&project, "verify.decisive = \"require\"");
    let built = project.build(&["--keep-going"]).expect(100).says("indecisive").says("paste `tolerance = ");
    assert!(built.step("one/o/calibrate")["verdict"]["fail"].is_string(), "{}", built.stderr());
    assert!(
        built.step("one/k/cpu/s/judge")["verdict"]["unknown"]["indecisive"].is_string(),
        "its kernels are unknown all the same"
    );
}

#[test]
#[ignore = "second tier: many builds"]
fn what_is_wrong_fails_under_an_indecisive_operator_too() {
    let project = loose();
    project.edit("k.cu", "c[i * n + j] = sum", "c[i * n + j] = 3 * sum + 9");
    project.build(&[]).expect(100).says("`c` is wrong");
}

#[test]
fn the_warning_is_repeated_until_the_manifest_is_changed() {
    let project = loose();
    for _ in 0..3 {
        undecided(&project, &["c"]);
    }
}

#[test]
fn a_selected_shape_is_judged_as_in_a_build_of_all() {
    let project = loose();
    // At this shape alone, the tolerance cannot tell; at the other it can.
    project.edit(
        "kernel.toml",
        "shapes.s = { n = 16 }",
        "shapes.s = { n = 16 }\nshapes.exact = { n = 8, tolerance = { atol = 1e-5, rtol = 1e-5 } }",
    );
    project.edit("k.cu", "cut(a[i * n + l]) * cut(b[l * n + j])", "a[i * n + l] * b[l * n + j]");
    let built = project.built(&["--shape", "s"]);
    assert_eq!(built.step("one/k/cpu/s/judge")["verdict"], "pass", "{}", built.stderr());
    let output = project.command(&["run", "--offline", "k", "--shape", "s"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("pass"), "{text}");
}

#[test]
fn a_run_of_one_kernel_says_that_a_pass_would_mean_nothing() {
    let project = loose();
    let output = project.command(&["run", "--offline", "k", "--shape", "s"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("unknown: indecisive: `c` accepts"), "{text}");
    assert!(!text.contains("\n  pass"), "{text}");
}

/// A softmax over rows, of which `one` have one column.
fn softmax(shapes: &str) -> Project {
    let operator = format!(
        "dims = [\"rows\", \"cols\"]\ninputs.x = {{ dtype = \"f32\", shape = [\"rows\", \"cols\"] }}\n\
         outputs.y = {{ dtype = \"f32\", shape = [\"rows\", \"cols\"] }}\nreference = \"builtin:softmax\"\ntolerance = \"auto\"\n{shapes}"
    );
    let source = "__global__ void k(const float *x, float *y, int cols) {\n  x += blockIdx.x * cols; y += blockIdx.x * cols;\n\
        float most = x[0], sum = 0;\n  for (int i = 1; i < cols; i++) most = fmaxf(most, x[i]);\n\
        for (int i = 0; i < cols; i++) sum += expf(x[i] - most);\n  for (int i = 0; i < cols; i++) y[i] = expf(x[i] - most) / sum;\n}\n";
    let launch = "{ entry = \"k\", grid = [\"rows\"], block = [1], args = [\"x\", \"y\", \"cols\"] }";
    project(&operator, launch, source)
}

#[test]
fn only_the_shape_whose_results_are_one_value_is_indecisive() {
    let project = softmax("shapes.one = { rows = 8, cols = 1 }\nshapes.many = { rows = 8, cols = 33 }");
    let built = project.build(&[]).expect(0).says("warning").says("indecisive at 1 of 2 shapes");
    assert_eq!(built.step("one/o/calibrate")["verdict"], "pass", "{}", built.stderr());
    assert_eq!(built.step("one/k/cpu/many/judge")["verdict"], "pass");
    let why = built.step("one/k/cpu/one/judge")["verdict"]["unknown"]["indecisive"].as_str().unwrap().to_string();
    assert!(why.contains("one value"), "{why}");
    // An honest kernel stays the champion.
    let report = project.report_value();
    let target = &report["packages"][0]["kernels"][0]["targets"][0];
    assert_eq!(target["champions"][0]["variant"], "", "{target}");
    // What is wrong at the other shape is no champion.
    project.edit("k.cu", "/ sum", "/ (sum + 1)");
    project.build(&[]).expect(100).says("`y` is wrong");
    project.edit("k.cu", "expf(x[i] - most) / (sum + 1)", "1.0f");
    project.build(&[]).expect(100).says("`y` is wrong");
    assert!(project.report_value()["packages"][0]["kernels"][0]["targets"][0]["champions"][0]["variant"].is_null());
}

#[test]
fn results_that_are_one_value_at_every_shape_make_the_operator_indecisive() {
    let project = softmax("shapes.s = { rows = 8, cols = 1 }\nshapes.more = { rows = 33, cols = 1 }");
    let lines = proposed(&undecided(&project, &["y"]));
    assert_eq!(lines, ["verify.undecidable = [\"y\"]"]);
    paste(&project, &lines[0]);
    correct(&project);
}

#[test]
#[ignore = "second tier: many builds"]
fn zeros_at_one_shape_only_make_that_shape_indecisive() {
    let operator = "dims = [\"n\"]\nparams.low = { dtype = \"f32\" }\ninputs.x = { dtype = \"f32\", shape = [\"n\"], init = { range = [-2, -1] } }\n\
        outputs.y = { dtype = \"f32\", shape = [\"n\"] }\nreference = { builtin = \"elementwise\", y = \"max(x, low)\" }\ntolerance = { ulp = 1 }\n\
        shapes.dead = { n = 64, low = 0 }\nshapes.s = { n = 64, low = -1.5 }";
    let source =
        "__global__ void k(const float *x, float *y, float low) { int i = threadIdx.x; y[i] = fmaxf(x[i], low); }\n";
    let launch = "{ entry = \"k\", grid = [\"1\"], block = [\"n\"], args = [\"x\", \"y\", \"low\"] }";
    let built = project(operator, launch, source).build(&[]).expect(0).says("indecisive at 1 of 2 shapes");
    assert!(built.step("one/k/cpu/dead/judge")["verdict"]["unknown"]["indecisive"].is_string(), "{}", built.stderr());
    assert_eq!(built.step("one/k/cpu/s/judge")["verdict"], "pass", "{}", built.stderr());
}
