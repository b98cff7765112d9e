//! The workspace with which most tests start: two operators and three kernels. One includes a header directly, one through another header, and one not
//! at all. It has a step of every kind for `cpu`.

use std::sync::OnceLock;

pub(crate) use crate::compiler_survey::ONE;
use crate::project::{Kept, Project, known};

pub(crate) const MANIFEST: &str = r#"
[package]
name = "sample"
version = "0.1.0"

[targets.cpu]

[operator.row_sum]
dims = ["rows", "cols"]
inputs.x = { dtype = "f32", shape = ["rows", "cols"] }
outputs.y = { dtype = "f32", shape = ["rows"] }
reference = "builtin:sum"
tolerance = { atol = 1e-5, rtol = 1e-5 }
shapes.small = { rows = 2, cols = 9 }

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x + 1" }
tolerance = { atol = 1e-6, rtol = 1e-6 }
shapes.tiny = { n = 10 }

[kernel.direct]
operator = "row_sum"
source = "direct.cu"
include = ["inc"]
targets = ["cpu"]
tune.BLOCK = [4]
launch = [{ entry = "direct", grid = ["rows"], block = ["BLOCK"], args = ["x", "y", "cols"] }]

[kernel.indirect]
operator = "row_sum"
source = "indirect.cu"
include = ["inc"]
targets = ["cpu"]
launch = [{ entry = "indirect", grid = ["rows"], block = ["4"], args = ["x", "y", "cols"] }]

[kernel.twice]
operator = "twice"
source = "twice.cu"
targets = ["cpu"]
launch = [{ entry = "twice", grid = ["1"], block = ["n"], args = ["x", "y"] }]
"#;

pub(crate) const SUM: &str = r#"
template <int N> __device__ float block_sum(float value) {
  __shared__ float part[N];
  part[threadIdx.x] = value;
  __syncthreads();
  for (int half = N / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  return part[0];
}
"#;

pub(crate) const DIRECT: &str = r#"
#include "sum.h"
__global__ void direct(const float *x, float *y, int cols) {
  float value = 0;
  for (int i = threadIdx.x; i < cols; i += BLOCK) value += x[blockIdx.x * cols + i];
  value = block_sum<BLOCK>(value);
  if (threadIdx.x == 0) y[blockIdx.x] = value;
}
"#;

const ROW: &str = r#"
#include "sum.h"
__device__ float row_sum(const float *row, int cols) {
  float value = 0;
  for (int i = threadIdx.x; i < cols; i += 4) value += row[i];
  return block_sum<4>(value);
}
"#;

const INDIRECT: &str = r#"
#include "row.h"
__global__ void indirect(const float *x, float *y, int cols) {
  float value = row_sum(x + blockIdx.x * cols, cols);
  if (threadIdx.x == 0) y[blockIdx.x] = value;
}
"#;

pub(crate) const TWICE: &str = r#"
__global__ void twice(const float *x, float *y) {
  y[threadIdx.x] = 2 * x[threadIdx.x] + 1;
}
"#;

/// The workspace in a home that has all its results, for tests of what happens to existing results. Built only once for all of them.
pub(crate) fn sample() -> Project {
    static KNOWN: OnceLock<Kept> = OnceLock::new();
    known(&KNOWN, unbuilt, |project| drop(project.built(&[])))
}

/// The workspace in a home that has only its compiled binaries.
pub(crate) fn compiled() -> Project {
    static KNOWN: OnceLock<Kept> = OnceLock::new();
    known(&KNOWN, unbuilt, |project| {
        assert!(project.command(&["check", "--offline"]).output().unwrap().status.success());
    })
}

/// The workspace in a home without any of its results.
pub(crate) fn unbuilt() -> Project {
    Project::new()
        .file("kernel.toml", MANIFEST)
        .file("inc/sum.h", SUM)
        .file("inc/row.h", ROW)
        .file("direct.cu", DIRECT)
        .file("indirect.cu", INDIRECT)
        .file("twice.cu", TWICE)
}

/// A package with one kernel `k` for an operator `y = 2 * x + 1` over ten elements. `body` is the whole text of the kernel's file.
pub(crate) fn one_kernel(body: &str) -> Project {
    Project::new().file("kernel.toml", ONE).file("k.cu", body)
}
