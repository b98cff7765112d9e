//! Wrong values whose pattern is plain are explained, wherever a failure is shown. The patterns are tested beside `measure::diagnose`; these builds
//! show that what it finds in real kernels arrives.

use serde_json::Value;

use crate::project::{Built, Project};

const MANIFEST: &str = r#"
[package]
name = "d"
version = "0.1.0"

[targets.cpu]

[operator.twice]
dims = ["rows", "cols"]
inputs.x = { dtype = "f32", shape = ["rows", "cols"] }
outputs.y = { dtype = "f32", shape = ["rows", "cols"] }
reference = { builtin = "elementwise", y = "2 * x" }
tolerance = { rtol = 1e-5 }
shapes.small = { rows = 12, cols = 24 }
"#;

const SOURCE: &str = r#"
#include <cuda_bf16.h>
__global__ void transposed(const float *x, float *y, int rows, int cols) {
  for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) y[i % cols * rows + i / cols] = 2 * x[i];
}
__global__ void swapped(const float *x, float *y, int rows, int cols) {
  for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) {
    int row = i / cols, other = row < 2 ? 1 - row : row;
    y[i] = 2 * x[other * cols + i % cols];
  }
}
__global__ void narrow(const __nv_bfloat16 *x, __nv_bfloat16 *y, int rows, int cols) {
  for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) y[i] = __float2bfloat16(2 * __bfloat162float(x[i]));
}
__global__ void packed(const float *x, __nv_bfloat16 *y, int rows, int cols) {
  for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) y[i] = __float2bfloat16(2 * x[i]);
}
// Two mistakes: one row of the transposed output is also too large, by a twentieth of a per cent.
__global__ void transposed_and_scaled(const float *x, float *y, int rows, int cols) {
  for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) {
    int at = i % cols * rows + i / cols;
    y[at] = 2 * x[i] * (at / cols == 3 ? 1.0005f : 1.0f);
  }
}
// Twice too large where values are large, and wrong in another way where they are small.
__global__ void large_only(const float *x, float *y, int rows, int cols) {
  for (int i = threadIdx.x; i < rows * cols; i += blockDim.x)
    y[i] = (x[i] > -4e-3f && x[i] < 4e-3f) || i == 0 ? 2.001f * x[i] : 4 * x[i];
}
__global__ void scattered(const float *x, float *y, int rows, int cols) {
  for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) y[i] = 2 * x[i] + 1e-1f * (i * 7919 % 31);
}
"#;

/// A build of these kernels.
fn built(kernels: &[&str]) -> (Project, Built) {
    let kernel = |name: &&str| {
        format!(
            "\n[kernel.{name}]\noperator = \"twice\"\nsource = \"k.cu\"\nlaunch = [{{ entry = \"{name}\", grid = [\"1\"], block = [\"64\"], \
             args = [\"x\", \"y\", \"rows\", \"cols\"] }}]\n"
        )
    };
    let manifest = format!("{MANIFEST}{}", kernels.iter().map(kernel).collect::<String>());
    let project = Project::new().file("kernel.toml", &manifest).file("k.cu", SOURCE);
    let built = project.build(&["--keep-going"]).expect(100);
    (project, built)
}

/// The diagnoses in the report of a kernel at a shape: kinds of patterns and sentences.
fn diagnoses(project: &Project, kernel: &str, shape: &str) -> Vec<(String, String)> {
    let report = project.report_value();
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let kernels = all(&report["packages"][0]["kernels"]);
    let found = kernels.iter().find(|k| k["name"] == kernel).unwrap();
    let shapes = all(&found["targets"][0]["shapes"]);
    let found = shapes.iter().find(|s| s["shape"] == shape).unwrap_or_else(|| panic!("{kernel} {shape}: {report}"));
    let text = |value: &Value| value.as_str().unwrap().to_string();
    all(&found["diagnoses"]).iter().map(|d| (text(&d["diagnosis"]["pattern"]["kind"]), text(&d["text"]))).collect()
}

#[test]
#[ignore = "second tier: many builds"]
fn a_plain_pattern_of_wrong_values_is_told_in_the_failure_the_report_and_the_formats_of_other_tools() {
    let (project, built) = built(&["transposed", "swapped", "scattered"]);
    let transposed = "it is the transpose of the expected output: laid out as [24, 12], not [12, 24]";
    let swapped = "rows 0 and 1 are swapped";
    built.says(&format!("\n    {transposed}\n")).says(&format!("\n    {swapped}\n"));
    assert_eq!(diagnoses(&project, "transposed", "small"), [("transposed".into(), transposed.to_string())]);
    assert_eq!(diagnoses(&project, "swapped", "small"), [("slices".into(), swapped.to_string())]);
    assert_eq!(diagnoses(&project, "scattered", "small"), []);
    for format in ["sarif", "annotations"] {
        let out = project.command(&["report", "--format", format]).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(out.status.success() && text.contains(swapped), "{format}: {text}");
    }
}

#[test]
fn elements_of_another_size_than_declared_are_told() {
    let (project, built) = built(&["narrow", "packed"]);
    let half =
        "144 of 288 elements of the output `y` were not written, the first at [6, 0]; they are the last 6 of 12 rows";
    let size = "exactly the first half of its bytes is written, as by a kernel whose elements have 2 bytes where those of f32 have 4, or by one that is \
                launched for a half of the elements";
    let kind = "its bytes are the expected values in bf16: the kernel writes bf16, and the manifest declares f32";
    built.says(half).says(size).says(kind);
    assert_eq!(diagnoses(&project, "narrow", "small"), [("element-size".into(), size.to_string())]);
    assert_eq!(diagnoses(&project, "packed", "small"), [("element-type".into(), kind.to_string())]);
}

#[test]
fn two_mistakes_at_once_are_not_told_as_one() {
    let (project, _) = built(&["transposed_and_scaled", "large_only"]);
    assert_eq!(diagnoses(&project, "transposed_and_scaled", "small"), []);
    assert_eq!(diagnoses(&project, "large_only", "small"), []);
}
