//! What CUDA defines although it looks like a mistake, each with a twin that is one: stores of one value by the lanes of a warp, shared memory between grid
//! barriers, launch bounds, aligned vectors, constants of a source that is not emulated.

use kforge::model::bound::{Constant, KernelLaunch};
use kforge::record::{FindingKind, LaunchField, Space};

use super::ORDERS;
use super::harness::*;

const STORES: &str = r#"
#include <cuda_runtime.h>
__device__ float warp_sum(float v) {
  for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
  return v;
}
// Every lane of a warp stores the sum of the warp.
__global__ void reduced(const float *x, float *y, int late) {
  __shared__ float part[32];
  float v = warp_sum(x[threadIdx.x]);
  if (late && threadIdx.x == 0) __threadfence();
  if (late) __syncthreads();
  part[threadIdx.x / 32] = v;
  __syncthreads();
  float w = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0;
  y[blockIdx.x] = warp_sum(w);
}
__global__ void to_global(const float *x, float4 *y) {
  float v = warp_sum(x[threadIdx.x]);
  y[threadIdx.x / 32] = make_float4(v, v, v, v);
}
__global__ void unlike(int *out) {
  __shared__ int s[2];
  s[threadIdx.x / 32] = threadIdx.x == 7;   // unlike
  __syncthreads();
  out[threadIdx.x] = s[0];
}
__global__ void unlike_last(int *out) { out[0] = threadIdx.x == 31; }
__global__ void read_early(int *out) {
  __shared__ int s[1];
  if (threadIdx.x < 32) s[0] = 5;           // early: writes
  if (threadIdx.x == 40) out[0] = s[0];     // early: reads
}
__global__ void read_by_lane(int *out) {
  __shared__ int s[1];
  if (threadIdx.x < 16) s[0] = 5;
  if (threadIdx.x >= 14) __syncwarp(0xffffc000u);
  if (threadIdx.x == 20) out[0] = s[0];
}
__global__ void two_places(int *out) {
  if (threadIdx.x % 2) out[0] = 3;
  out[1 + threadIdx.x] = threadIdx.x;
  if (threadIdx.x % 2 == 0) out[0] = 3;
}
__global__ void warps(int *out) {
  __shared__ int s[1];
  s[0] = 4;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = s[0];
}
__global__ void warps_unlike(int *out) {
  __shared__ int s[1];
  s[0] = threadIdx.x / 64;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = s[0];
}
"#;

#[test]
fn lanes_that_store_one_value_in_one_instruction_do_not_race() {
    let built = build(STORES, &["reduced", "to_global"], true);
    for order in ORDERS {
        let how = How { order, ..How::default() };
        let x = || floats("x", (0..128).map(|i| (i % 5) as f32));
        let sum = |from: usize, to: usize| (from..to).map(|i| (i % 5) as f32).sum::<f32>();
        for late in [0, 1] {
            // One warp: all lanes store the result to global memory, too.
            let go = launch("reduced", 2, 32, vec![ptr("x"), ptr("y"), int(late)]);
            let ran = run_with(&built, vec![go], &[x(), output("y", 2, 4)], &how);
            assert_eq!(ran.clean().floats("y"), [sum(0, 32); 2]);
        }
        let go = launch("to_global", 1, 128, vec![ptr("x"), ptr("y")]);
        let ran = run_with(&built, vec![go], &[x(), output("y", 16, 4)], &how);
        assert_eq!(ran.clean().floats("y")[12], sum(96, 128));
    }
}

#[test]
fn stores_that_only_look_alike_race() {
    let entries =
        ["reduced", "unlike", "unlike_last", "read_early", "read_by_lane", "two_places", "warps", "warps_unlike"];
    let built = build(STORES, &entries, true);
    let undefined = "undefined in CUDA C++; it may work on hardware";
    for order in ORDERS {
        let how = How { order, threads: 1, ..How::default() };
        let go = |entry: &str, threads: u32| {
            run_with(&built, vec![launch(entry, 1, threads, vec![ptr("out")])], &[output("out", 64, 4)], &how)
        };
        let ran = go("unlike", 64);
        let found = ran.only(FindingKind::Race);
        assert_eq!((found.buffer.as_deref(), found.space), (Some("s"), Some(Space::Shared)));
        assert_eq!(found.line, Some(("k.cu".into(), line_of(STORES, "// unlike"))));
        assert!(!found.message.contains(undefined), "{}", found.message);
        // The store that nothing follows is looked at, too.
        assert_eq!(go("unlike_last", 32).only(FindingKind::Race).buffer.as_deref(), Some("out"));
        // The value that a warp agreed on is not there for others without a barrier.
        let ran = go("read_early", 64);
        let found = ran.findings.iter().find(|f| f.kind == FindingKind::Race).unwrap_or_else(|| panic!("{ran:?}"));
        assert_eq!(found.buffer.as_deref(), Some("s"));
        // Nor for a lane that has met only some of those that stored it.
        let ran = go("read_by_lane", 32);
        assert!(ran.findings.iter().any(|f| f.kind == FindingKind::Race), "{ran:?}");
        let ran = go("two_places", 32);
        let message = &ran.only(FindingKind::Race).message;
        assert!(message.contains(undefined), "{message}");
        let ran = go("warps", 64);
        let message = &ran.only(FindingKind::Race).message;
        assert!(message.contains("both store the same value") && message.contains(undefined), "{message}");
        // Warps 0 and 1 store the same, warp 2 another value.
        let ran = go("warps_unlike", 96);
        let message = &ran.only(FindingKind::Race).message;
        assert!(!message.contains(undefined), "{message}");
        // In a block of four warps, the result of all is stored by each.
        let x = floats("x", (0..128).map(|i| i as f32));
        let four = launch("reduced", 1, 128, vec![ptr("x"), ptr("y"), int(0)]);
        let ran = run_with(&built, vec![four], &[x, output("y", 1, 4)], &how);
        assert!(ran.only(FindingKind::Race).message.contains(undefined));
    }
}

const GRID: &str = r#"
#include <cooperative_groups.h>
__global__ void exchanged(int *out, int late) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x + 1;
  cooperative_groups::this_grid().sync();
  int v = s[63 - threadIdx.x];
  if (!late) cooperative_groups::this_grid().sync();
  s[threadIdx.x] = v;                       // grid: writes
  out[blockIdx.x * 64 + threadIdx.x] = v;
}
"#;

#[test]
fn a_grid_barrier_orders_shared_memory_too() {
    let built = build(GRID, &["exchanged"], true);
    for order in ORDERS {
        let go = |late| {
            let one = KernelLaunch { cooperative: true, ..launch("exchanged", 3, 64, vec![ptr("out"), int(late)]) };
            run_with(&built, vec![one], &[output("out", 192, 4)], &How { order, ..How::default() })
        };
        assert_eq!(go(0).clean().ints("out")[64..67], [64, 63, 62]);
        let ran = go(1);
        let found = ran.only(FindingKind::Race);
        assert_eq!(found.buffer.as_deref(), Some("s"));
        assert!([&found.line, &found.other_line].contains(&&Some(("k.cu".into(), line_of(GRID, "// grid: writes")))));
    }
}

const FOREIGN: &str = "#include <thrust/pair.h>\n__constant__ float w[4];\n__global__ void k(float *y) { y[0] = w[0] + sizeof(thrust::null_type); }\n";

#[test]
#[ignore = "second tier: many sources"]
fn constants_of_a_source_that_is_not_emulated_are_not_missed() {
    let how = How { constants: vec![Constant { symbol: "w".into(), buffer: "w".into() }], ..How::default() };
    let w = || floats("w", [1.0, 2.0, 3.0, 4.0]);
    for check in [false, true] {
        let go = |text: &str| {
            let built = build(text, &["k"], check);
            run_with(&built, vec![launch("k", 1, 1, vec![ptr("y")])], &[output("y", 1, 4), w()], &how)
        };
        let ran = go(FOREIGN);
        assert!(ran.findings.is_empty(), "{:?}", ran.findings);
        assert_eq!(ran.not_emulated, ["thrust::null_type of thrust/pair.h at k.cu:3"]);
        let emulated = FOREIGN.replace("#include <thrust/pair.h>", "namespace thrust { struct null_type {}; }");
        assert_eq!(go(&emulated).clean().floats("y"), [2.0]);
        let ran = go(&emulated.replace("w[4]", "v[4]").replace("w[0]", "v[0]"));
        assert!(ran.only(FindingKind::LaunchRefused).message.contains("no `__constant__` symbol `w`"));
    }
}

const BOUNDS: &str = r#"
#include <cuda_runtime.h>
#define KERNEL(name, most) __global__ void __launch_bounds__(most) name(int *out) { out[threadIdx.x] = 1; }
__global__ void __launch_bounds__(64) plain(int *out) { out[threadIdx.x] = 1; }
template <int B, class T> __global__ __launch_bounds__(B * 2, 1) void tuned(T *out)
{
  out[threadIdx.x] = 1;
}
__global__ void __cluster_dims__(1, 1, 1) __launch_bounds__(64, 2, 1) __maxnreg__(32) several(int *out);
__global__ void __cluster_dims__(1, 1, 1) __launch_bounds__(64, 2, 1) several(int *out) { out[threadIdx.x] = 1; }
KERNEL(made, 64)
__global__ void without(int *out) { out[threadIdx.x] = 1; }
"#;

#[test]
fn a_block_beyond_the_launch_bounds_is_refused() {
    let entries = ["plain", "tuned<32, int>", "several", "made", "without"];
    for check in [false, true] {
        let built = build(BOUNDS, &entries, check);
        for entry in entries {
            let go = |threads| run(&built, launch(entry, 2, threads, vec![ptr("out")]), &[output("out", 65, 4)]);
            if check {
                // Both blocks store the same: only the bounds matter here.
                assert!(go(64).findings.iter().all(|f| f.kind == FindingKind::Race));
            } else {
                go(64).clean();
            }
            if entry == "without" {
                continue;
            }
            let ran = go(65);
            let found = ran.only(FindingKind::LaunchRefused);
            let want = format!("entry `{entry}`: a block has 65 threads, the kernel's launch bounds allow 64");
            assert_eq!(found.message, want);
            let part = found.launch.as_ref().unwrap();
            assert_eq!((part.entry.as_str(), part.argument, part.field), (entry, None, LaunchField::Block));
        }
    }
}

const VECTORS: &str = r#"
#include <cuda_runtime.h>
__device__ __forceinline__ float4 load4(const float *from) {
  return *reinterpret_cast<const float4 *>(from);      // helper
}
__global__ void rows(const float *x, float *y, int cols) {
  for (int i = threadIdx.x; i < cols / 4; i += blockDim.x) {
    float4 v = load4(x + blockIdx.x * cols + 4 * i);    // caller
    y[blockIdx.x * cols + 4 * i] = v.x + v.w;
  }
}
template <class V> __global__ void as(const float *x, float *y, int by) {
  V v = *reinterpret_cast<const V *>(x + by);           // as: reads
  if (by % 2) y[0] = 0;
  *reinterpret_cast<V *>(y) = v;
}
template <class V> __global__ void stores(const float *x, float *y, int by) {
  *reinterpret_cast<V *>(y + by) = *reinterpret_cast<const V *>(x); // stores
}
__device__ float table[64];
__global__ void in_table(float *y, int by) {
  y[0] = reinterpret_cast<const float2 *>(table + by)->y; // table
}
__global__ void in_shared(float *y, int by) {
  extern __shared__ float area[];
  for (int i = 0; i < 8; ++i) area[i] = i;
  __syncwarp();
  y[0] = reinterpret_cast<const float4 *>(area + by)->z; // shared
}
__global__ void own(float *y) {
  float reg[8];
  for (int i = 0; i < 8; ++i) reg[i] = y[i];
  float2 v = *reinterpret_cast<float2 *>(&reg[2]);
  y[0] = v.x + v.y;
}
"#;

#[test]
#[ignore = "second tier: many sources"]
fn unaligned_vectors_are_reported_by_both_builds_with_thread_and_caller() {
    let entries = ["rows", "as<float2>", "as<float4>", "as<double>", "as<int4>", "as<long long>", "stores<double2>"];
    let entries = [&entries[..], &["in_table", "in_shared", "own"]].concat();
    let line = |mark: &str| Some(("k.cu".to_owned(), line_of(VECTORS, mark)));
    for check in [false, true] {
        let built = build(VECTORS, &entries, check);
        let x = || floats("x", (0..4096).map(|i| i as f32));
        let go = |entry: &str, blocks, threads, number: i64| {
            let one = launch(entry, blocks, threads, vec![ptr("x"), ptr("y"), int(number)]);
            run(&built, one, &[x(), output("y", 4096, 4)])
        };
        // A width that is no multiple of four: the second row begins beside a boundary.
        go("rows", 4, 32, 1024).clean();
        let ran = go("rows", 2, 1, 1023);
        let found = ran.only(FindingKind::Misaligned);
        assert_eq!(
            (found.buffer.as_deref(), found.index, found.line.clone()),
            (Some("x"), Some(1023), line("// helper"))
        );
        assert_eq!((found.block, found.thread), (Some([1, 0, 0]), Some([0, 0, 0])));
        let (helper, caller) = (line_of(VECTORS, "// helper"), line_of(VECTORS, "// caller"));
        let want = format!("at k.cu:{helper}, called at k.cu:{caller} by thread 0 of block 1");
        assert!(found.message.contains(&want), "{}", found.message);
        assert!(found.message.contains("not aligned to its size"), "{}", found.message);

        for entry in ["as<float2>", "as<float4>", "as<double>", "as<int4>", "as<long long>"] {
            go(entry, 1, 1, 4).clean();
            let ran = go(entry, 1, 1, 1);
            let found = ran.only(FindingKind::Misaligned);
            assert_eq!((found.index, found.line.clone()), (Some(1), line("// as: reads")), "{entry}");
        }
        go("stores<double2>", 1, 1, 4).clean();
        let ran = go("stores<double2>", 1, 1, 2);
        let found = ran.only(FindingKind::Misaligned);
        assert_eq!((found.buffer.as_deref(), found.line.clone()), (Some("y"), line("// stores")));

        let small = |entry: &str, by| {
            let one = KernelLaunch { shared: 64, ..launch(entry, 1, 1, vec![ptr("y"), int(by)]) };
            run(&built, one, &[output("y", 1, 4)])
        };
        small("in_table", 2).clean();
        let ran = small("in_table", 1);
        let found = ran.only(FindingKind::Misaligned);
        assert_eq!((found.buffer.as_deref(), found.line.clone()), (Some("table"), line("// table")));
        assert_eq!(small("in_shared", 4).clean().floats("y"), [6.0]);
        let ran = small("in_shared", 1);
        let found = ran.only(FindingKind::Misaligned);
        assert_eq!((found.buffer.as_deref(), found.space), (Some("area"), Some(Space::Shared)));
        assert_eq!(found.line, line("// shared"));
        let y = floats("y", (0..8).map(|i| i as f32)).writable();
        assert_eq!(run(&built, launch("own", 1, 1, vec![ptr("y")]), &[y]).clean().floats("y")[0], 5.0);
    }
}
