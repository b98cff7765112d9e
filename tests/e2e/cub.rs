//! Kernels for `cpu` that include cub: its headers come from the toolchain, are part of keys by content, and are asked for only where a kernel includes them. A
//! stand-in for an installed CUDA holds a header of ours; the last test takes the wheels' own.

use std::fs;

use crate::machine::installed;
use crate::project::Project;
use crate::sample::{ONE, one_kernel};

const KERNEL: &str = r#"
#include <cub/block/twice.cuh>
__global__ void k(const float *x, float *y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = cub::twice(x[i]) + 1;
}
"#;

const HEADER: &str =
    "#pragma once\nnamespace cub {\n__device__ __forceinline__ float twice(float x) { return 2 * x; }\n}\n";

/// A kernel for `cpu` alone, with an installed CUDA that has nothing but the headers that cub consists of.
fn with_stand_in() -> Project {
    one_kernel(KERNEL)
        .file("kernel.toml", &ONE.replace("[targets.cpu]", "[toolchain]\ncuda = { path = \"cuda\" }\n\n[targets.cpu]"))
        .file("cuda/include/cccl/cub/block/twice.cuh", HEADER)
        .file("cuda/include/cccl/cuda/std/detail/__config", "")
        .file("cuda/include/cccl/thrust/version.h", "")
}

#[test]
#[ignore = "second tier: many builds"]
fn headers_of_cub_come_from_the_toolchain_and_their_content_is_part_of_the_key() {
    let project = with_stand_in();
    project.build(&[]).expect(0);
    assert_eq!(project.build(&[]).count("executed"), 0);
    project.edit("cuda/include/cccl/cub/block/twice.cuh", "2 * x", "3 * x");
    let built = project.build(&[]).expect(100);
    assert_eq!(built.executed_kinds().get("compile"), Some(&1));
}

#[test]
fn a_source_without_cub_does_not_ask_for_it() {
    let project = with_stand_in();
    project
        .write("k.cu", &KERNEL.replace("#include <cub/block/twice.cuh>", "").replace("cub::twice(x[i])", "2 * x[i]"));
    project.build(&[]).expect(0);
    project.edit("cuda/include/cccl/cub/block/twice.cuh", "2 * x", "3 * x");
    assert_eq!(project.build(&[]).count("executed"), 0);
}

#[test]
fn without_its_headers_what_needs_cub_is_unknown_and_says_why() {
    let project = with_stand_in();
    fs::remove_dir_all(project.root().join("cuda/include/cccl/cub")).unwrap();
    let built = project.build(&[]).expect(0);
    built.says("needs `cub::twice`");
    // A release that is not locked is not resolved offline.
    project.write("kernel.toml", ONE);
    project.build(&[]).expect(0).says("cannot emulate cub for package");
}

#[test]
#[ignore = "second tier: parses CUB's own headers"]
fn the_wheels_own_headers_are_used_as_they_are() {
    let Some((toolchains, lock)) = installed() else { return };
    let source = r#"
#include <cub/cub.cuh>
__global__ void k(const float *x, float *y, int n) {
  typedef cub::WarpScan<int> Scan;
  __shared__ Scan::TempStorage room;
  int i;
  Scan(room).ExclusiveSum(1, i);
  if (i < n) y[i] = x[i] + x[i] + 1;
}
"#;
    let project = one_kernel(source).file("kforge.lock", &lock);
    fs::create_dir_all(project.home()).unwrap();
    std::os::unix::fs::symlink(toolchains.join("toolchains"), project.home().join("toolchains")).unwrap();
    project.build(&[]).expect(0);
    assert_eq!(fs::read_to_string(project.root().join("kforge.lock")).unwrap(), lock, "the locked wheels suffice");
}
