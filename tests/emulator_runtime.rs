//! The emulator against what CUDA defines: real kernels through a real g++, run by the runner's own entry point.

#[path = "emulator/features.rs"]
mod features;
#[path = "emulator/harness.rs"]
mod harness;
#[path = "emulator/mistakes.rs"]
mod mistakes;
#[path = "emulator/own_kernels.rs"]
mod own_kernels;

use harness::*;
use kforge::model::DType;
use kforge::model::bound::{Arg, Constant, Scalar, StructField};
use kforge::record::FindingKind;
use kforge::worker::message::ThreadOrder;

const ORDERS: [ThreadOrder; 3] = [ThreadOrder::Forward, ThreadOrder::Reversed, ThreadOrder::Random(5)];

const BASIC: &str = r#"
#include <cuda_runtime.h>
namespace ops {
template <class T> __global__ void axpy(const T *__restrict__ x, T *y, T a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + 1;
}
}
template <int BLOCK> __global__ void __launch_bounds__(BLOCK) block_sum(const float *x, float *out) {
  __shared__ float s[BLOCK];
  s[threadIdx.x] = x[blockIdx.x * BLOCK + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int step = BLOCK / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void reverse(int *d, int n) {
  extern __shared__ __align__(16) unsigned char raw[];
  int *s = reinterpret_cast<int *>(raw);
  int t = threadIdx.x;
  s[t] = d[t];
  __syncthreads();
  d[t] = s[n - 1 - t];
}
"#;

#[test]
fn indices_shared_memory_and_barriers_give_what_cuda_defines() {
    for check in [false, true] {
        let built = build(BASIC, &["ops::axpy<float>", "block_sum<128>", "&reverse"], check);
        for order in ORDERS {
            let how = How { order, ..How::default() };
            let x = floats("x", (0..1000).map(|i| i as f32));
            let args = vec![ptr("x"), ptr("y"), float(2.0), int(1000)];
            let ran =
                run_with(&built, vec![launch("ops::axpy<float>", 8, 128, args)], &[x, output("y", 1000, 4)], &how);
            assert!(ran.clean().floats("y").iter().enumerate().all(|(i, v)| *v == 2.0 * i as f32 + 1.0));

            let x = floats("x", (0..512).map(|i| (i % 7) as f32));
            let ran = run_with(
                &built,
                vec![launch("block_sum<128>", 4, 128, vec![ptr("x"), ptr("out")])],
                &[x, output("out", 4, 4)],
                &how,
            );
            let want: Vec<f32> = (0..4).map(|b| (0..128).map(|t| ((b * 128 + t) % 7) as f32).sum()).collect();
            assert_eq!(ran.clean().floats("out"), want);

            let mut reverse = launch("&reverse", 1, 100, vec![ptr("d"), int(100)]);
            reverse.shared = 400;
            let ran = run_with(&built, vec![reverse], &[ints("d", 0..100).writable()], &how);
            assert_eq!(ran.clean().ints("d"), (0..100).rev().collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_comment_that_shifts_lines_leaves_the_binary_as_it_was() {
    for check in [false, true] {
        let entries = ["ops::axpy<float>", "block_sum<128>", "reverse"];
        let one = build(BASIC, &entries, check);
        let two = build(
            &format!("// a comment\n\n{}", BASIC.replace("namespace ops", "/* longer\n */ namespace ops")),
            &entries,
            check,
        );
        assert!(one.binary == two.binary, "the binary changed (check: {check})");
        assert!(one.lines != two.lines);
    }
}

#[test]
fn tunables_may_have_any_ordinary_name() {
    let letters: Vec<String> = ('A'..='Z').map(String::from).collect();
    let words = ["width", "size", "value", "count", "index", "mask", "lane"];
    let names: Vec<&str> = letters.iter().map(String::as_str).chain(words).collect();
    let defines: Vec<(&str, &str)> = names.iter().map(|name| (*name, "2")).chain([("TAIL", "3 \\")]).collect();
    let text = format!(
        "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n#include <cuda_pipeline.h>\n#include <mma.h>\n#include <cuda/atomic>\n#include <assert.h>\n\
         __global__ void k(int *out) {{\n  __shared__ int s[32];\n  s[threadIdx.x] = {};\n  __syncthreads();\n  assert(s[0] > 0);\n  atomicAdd(out, __shfl_xor_sync(0xffffffffu, s[threadIdx.x], 1));\n}}\n",
        names.join(" + ")
    );
    for check in [false, true] {
        let built = build_with(&text, &["k"], check, &defines);
        let ran = run(&built, launch("k", 1, 32, vec![ptr("out")]), &[ints("out", [0]).writable()]);
        assert_eq!(ran.clean().ints("out"), [64 * names.len() as i32]);
    }
}

#[test]
fn a_launch_whose_arguments_do_not_fit_is_refused() {
    let built = build(BASIC, &["reverse"], false);
    let ran = run(&built, launch("reverse", 1, 1, vec![ptr("d")]), &[ints("d", 0..4).writable()]);
    assert!(ran.only(FindingKind::LaunchRefused).message.contains("takes 2 parameters"));
}

const WARPS: &str = r#"
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void shuffles(double *d, long long *l, int *i, __half *h) {
  int t = threadIdx.x, lane = t % 32;
  d[t] = __shfl_sync(0xffffffffu, lane + 0.5, 3);
  l[t] = __shfl_xor_sync(0xffffffffu, (long long)lane << 40, 1);
  i[t] = __shfl_up_sync(0xffffffffu, lane, 2, 8);
  i[64 + t] = __shfl_down_sync(0xffffffffu, lane, 2, 8);
  i[128 + t] = __shfl_sync(0xffffffffu, lane, 11, 8);
  h[t] = __shfl_down_sync(0xffffffffu, __float2half((float)lane), 16);
}
__global__ void votes(unsigned *out) {
  int lane = threadIdx.x;
  unsigned odd = 0xaaaaaaaau;
  if (lane & 1) {
    out[lane] = __ballot_sync(odd, lane > 16);
  } else {
    out[lane] = __reduce_add_sync(~odd, (unsigned)lane);
  }
  int same;
  unsigned all = __match_all_sync(0xffffffffu, lane / 32, &same);
  out[32 + lane] = __match_any_sync(0xffffffffu, lane % 3);
  out[64 + lane] = (all == 0xffffffffu) + 2 * same + 4 * __any_sync(0xffffffffu, lane == 5) + 8 * __all_sync(0xffffffffu, lane < 31)
    + 16 * (__reduce_min_sync(0xffffffffu, lane - 5) == -5) + 32 * (__reduce_max_sync(0xffffffffu, 3u + lane) == 34u);
}
__global__ void early(int *out, int n) {
  if (threadIdx.x >= n) return;
  int v = threadIdx.x;
  for (int step = 16; step; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step) * (((int)threadIdx.x ^ step) < n);
  out[threadIdx.x] = v;
}
__global__ void active(unsigned *out) {
  if (threadIdx.x % 3 == 0) out[threadIdx.x] = __activemask(); else out[threadIdx.x] = __activemask();
}
__global__ void barriers(int *out) {
  int t = threadIdx.x;
  out[t] = __syncthreads_count(t % 3 == 0);
  out[64 + t] = __syncthreads_and(t < 64) + 2 * __syncthreads_and(t < 63) + 4 * __syncthreads_or(t == 63) + 8 * __syncthreads_or(t == 64);
}
__global__ void groups(int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  int t = block.thread_rank();
  out[t] = cg::reduce(warp, t, cg::plus<int>());
  out[64 + t] = cg::reduce(tile, t, cg::greater<int>()) * 100 + tile.meta_group_rank();
  block.sync();
  int got = 0;
  if (t % 5 == 0) {
    cg::coalesced_group some = cg::coalesced_threads();
    got = cg::reduce(some, 1, cg::plus<int>()) * 100 + some.thread_rank();
  }
  out[128 + t] = got;
  struct Wide { int a, b, c; } w = {t, t + 1, t + 2};
  w = tile.shfl(w, 2);
  out[192 + t] = w.a + w.c;
  out[256 + t] = cg::inclusive_scan(warp, 1) + 100 * warp.shfl_up(t, 1);
  auto by = cg::labeled_partition(warp, t % 4);
  out[320 + t] = cg::reduce(by, t, cg::plus<int>());
}
__global__ void grid_sum(int *part, int *out, int rounds) {
  __shared__ int mine;
  cg::grid_group grid = cg::this_grid();
  for (int r = 0; r < rounds; ++r) {
    if (threadIdx.x == 0) { mine = blockIdx.x + r; part[blockIdx.x] = mine; }
    grid.sync();
    if (grid.thread_rank() == 0) { int s = 0; for (int i = 0; i < gridDim.x; ++i) s += part[i]; out[r] = s; }
    grid.sync();
    if (threadIdx.x == 0 && mine != blockIdx.x + r) out[r] = -1;
  }
}
"#;

#[test]
fn warp_operations_and_groups_give_what_cuda_defines() {
    let entries = ["shuffles", "votes", "early", "active", "barriers", "groups", "grid_sum"];
    for check in [false, true] {
        let built = build(WARPS, &entries, check);
        for order in ORDERS {
            let how = How { order, ..How::default() };
            let go = |launch, data: &[Data]| run_with(&built, vec![launch], data, &how).clean();
            let args = vec![ptr("d"), ptr("l"), ptr("i"), ptr("h")];
            let data = [output("d", 64, 8), output("l", 64, 8), output("i", 192, 4), output("h", 64, 2)];
            let ran = go(launch("shuffles", 1, 64, args), &data);
            assert!(ran.buffers["d"].chunks(8).all(|c| f64::from_le_bytes(c.try_into().unwrap()) == 3.5));
            for (t, c) in ran.buffers["l"].chunks(8).enumerate() {
                assert_eq!(i64::from_le_bytes(c.try_into().unwrap()), ((t as i64 % 32) ^ 1) << 40);
            }
            let got = ran.ints("i");
            for t in 0..64 {
                let lane = t as i32 % 32;
                assert_eq!(got[t], if lane % 8 < 2 { lane } else { lane - 2 });
                assert_eq!(got[64 + t], if lane % 8 > 5 { lane } else { lane + 2 });
                assert_eq!(got[128 + t], lane / 8 * 8 + 3);
                let h = half::f16::from_le_bytes(ran.buffers["h"][2 * t..2 * t + 2].try_into().unwrap());
                assert_eq!(h.to_f32(), if lane < 16 { lane + 16 } else { lane } as f32);
            }

            let got = go(launch("votes", 1, 32, vec![ptr("out")]), &[output("out", 96, 4)]).ints("out");
            for lane in 0..32 {
                assert_eq!(got[lane] as u32, if lane % 2 == 1 { 0xaaaa_0000 } else { 240 });
                let alike = (0..32).filter(|l| l % 3 == lane % 3).fold(0u32, |m, l| m | 1 << l);
                assert_eq!((got[32 + lane] as u32, got[64 + lane]), (alike, 1 + 2 + 4 + 16 + 32));
            }

            let got = go(launch("early", 1, 32, vec![ptr("out"), int(24)]), &[output("out", 32, 4)]).ints("out");
            let mut lanes: Vec<i32> = (0..24).collect();
            for step in [16, 8, 4, 2, 1] {
                lanes = (0..24).map(|t| lanes[t] + lanes.get(t ^ step).copied().unwrap_or(0)).collect();
            }
            assert_eq!(got[..24], lanes, "lanes that left take no part");
            let got = go(launch("active", 1, 32, vec![ptr("out")]), &[output("out", 32, 4)]).ints("out");
            let third = (0..32).step_by(3).fold(0u32, |m, l| m | 1 << l);
            assert_eq!((got[0] as u32, got[1] as u32), (third, !third));

            let got = go(launch("barriers", 1, 64, vec![ptr("out")]), &[output("out", 128, 4)]).ints("out");
            assert!(got[..64].iter().all(|v| *v == 22) && got[64..].iter().all(|v| *v == 1 + 4), "{got:?}");

            let got = go(launch("groups", 1, 64, vec![ptr("out")]), &[output("out", 384, 4)]).ints("out");
            for t in 0..64usize {
                let (warp, tile) = (t / 32 * 32, t / 8 * 8);
                assert_eq!(got[t] as usize, (warp..warp + 32).sum::<usize>());
                assert_eq!(got[64 + t] as usize, (tile + 7) * 100 + t / 8);
                let fives: Vec<usize> = (warp..warp + 32).filter(|t| t % 5 == 0).collect();
                let want = fives.iter().position(|f| *f == t).map_or(0, |rank| fives.len() * 100 + rank);
                assert_eq!(got[128 + t] as usize, want);
                assert_eq!(got[192 + t] as usize, 2 * (tile + 2) + 2);
                assert_eq!(got[256 + t] as usize, t % 32 + 1 + 100 * if t % 32 == 0 { t } else { t - 1 });
                assert_eq!(got[320 + t] as usize, (warp..warp + 32).filter(|u| u % 4 == t % 4).sum::<usize>());
            }

            let mut grid = launch("grid_sum", 9, 40, vec![ptr("part"), ptr("out"), int(3)]);
            grid.cooperative = true;
            let got = go(grid, &[output("part", 9, 4), output("out", 3, 4)]).ints("out");
            assert_eq!(got, [36, 45, 54]);
        }
    }
}

const ATOMICS: &str = r#"
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
namespace tables { __constant__ float weights[4]; }
__device__ int counter = 5;
static __device__ unsigned ticket;
__global__ void sums(int *i, unsigned long long *l, float *f, double *d, __half *h, __nv_bfloat16 *b) {
  atomicAdd(i, 1); atomicSub(i + 1, 2); atomicMin(i + 2, (int)threadIdx.x - 3); atomicMax(i + 3, (int)threadIdx.x);
  atomicAnd(i + 4, ~(1 << (threadIdx.x % 32))); atomicOr(i + 5, 1 << (threadIdx.x % 32)); atomicXor(i + 6, 1 << (threadIdx.x % 3));
  atomicInc((unsigned *)i + 7, 9); atomicDec((unsigned *)i + 8, 9);
  int seen = i[9], was;
  do { was = seen; seen = atomicCAS(i + 9, was, was + 2); } while (seen != was);
  atomicAdd(l, 1ull << 33); atomicAdd(f, 0.5f); atomicAdd(d, 0.25); atomicAdd(h, __float2half(1.0f)); atomicAdd(b, __float2bfloat16(1.0f));
  atomicAdd_block(i + 10, 1); atomicExch(i + 11, 7); atomicAdd_system(i + 12, 3);
}
__global__ void globals(const float *x, float *y, int *out) {
  y[threadIdx.x] = x[threadIdx.x] * tables::weights[threadIdx.x % 4];
  if (threadIdx.x == 0) out[0] = atomicAdd(&counter, 1);
}
__global__ void last_block(const float *x, float *part, float *out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    float s = 0;
    for (int i = 0; i < 8; ++i) s += x[blockIdx.x * 8 + i];
    part[blockIdx.x] = s;
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float s = 0;
    for (int i = 0; i < gridDim.x; ++i) s += part[i];
    out[0] = s;
  }
}
__global__ void lookback(int *state, int *out) {
  if (blockIdx.x > 0) while (atomicAdd(&state[blockIdx.x + 1], 0) == 0) __nanosleep(20);
  out[blockIdx.x] = blockIdx.x;
  __threadfence();
  if (threadIdx.x == 0 && blockIdx.x == 0) for (int i = 0; i <= gridDim.x; ++i) atomicExch(&state[i], 1);
}
__global__ void waits_for_later(int *state) {
  if (blockIdx.x == 0) while (atomicAdd(state, 0) == 0) {}
  else atomicExch(state, 1);
}
__global__ void copies(const float4 *x, float4 *y) {
  __shared__ __align__(16) float4 s[32];
  __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  float4 v = s[31 - threadIdx.x];
  y[threadIdx.x] = make_float4(v.w, v.z, v.y, __ldg(&x[0].x));
}
__global__ void prints(int n) {
  if (threadIdx.x == 1) printf("n is %d, half %.2f\n", n, 0.5);
}
__global__ void cubes(int *out) {
  int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  long long before = clock64();
  out[b * 24 + t] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * b + (clock64() < before);
}
struct Shape { int rows; long long cols; float scale; };
__global__ void by_value(const __grid_constant__ Shape s, bool yes, double *out, float **many) {
  out[0] = 0.0 + s.rows + s.cols + s.scale + yes + many[1][0];
}
__global__ void volatile_reduce(const float *x, float *y) {
  __shared__ volatile float s[64];
  int t = threadIdx.x;
  s[t] = x[t]; s[t + 32] = x[t + 32];
  __syncthreads();
  s[t] += s[t + 32]; s[t] += s[(t + 16) % 64]; s[t] += s[(t + 8) % 64]; s[t] += s[(t + 4) % 64]; s[t] += s[(t + 2) % 64]; s[t] += s[(t + 1) % 64];
  if (t == 0) y[0] = s[0];
}
__global__ void warp_reduce(const float *x, float *y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp();
  for (int step = 16; step; step /= 2) { float v = s[t % 32 + step + t / 32 * 32 - (t % 32 + step > 31 ? 32 : 0)]; __syncwarp(); s[t] += v; __syncwarp(); }
  y[t] = s[t];
}
"#;

const ATOMIC_ENTRIES: [&str; 11] = [
    "sums",
    "globals",
    "last_block",
    "lookback",
    "waits_for_later",
    "copies",
    "prints",
    "cubes",
    "by_value",
    "volatile_reduce",
    "warp_reduce",
];

#[test]
fn atomics_globals_and_the_rest_give_what_cuda_defines() {
    for check in [false, true] {
        let built = build(ATOMICS, &ATOMIC_ENTRIES, check);
        for order in ORDERS {
            let how = How { order, ..How::default() };
            let go = |launch, data: &[Data]| run_with(&built, vec![launch], data, &how).clean();
            let zeros = |name, count: usize, element: usize| Data {
                name,
                bytes: vec![0; count * element],
                element: element as u64,
                writable: true,
                poisoned: false,
            };
            let mut start = vec![0; 13];
            start[4] = -1;
            let data = [
                ints("i", start).writable(),
                zeros("l", 1, 8),
                zeros("f", 1, 4),
                zeros("d", 1, 8),
                zeros("h", 1, 2),
                zeros("b", 1, 2),
            ];
            // The read of i[9] before its compare-and-swap races with others' atomics, so one thread a block here, and one block, in check builds.
            let (blocks, threads) = if check { (1, 1) } else { (4, 64) };
            let args = ["i", "l", "f", "d", "h", "b"].map(ptr).to_vec();
            let ran = go(launch("sums", blocks, threads, args), &data);
            let n = (blocks * threads) as i32;
            let got = ran.ints("i");
            assert_eq!(got[..2], [n, -2 * n]);
            assert_eq!((got[2], got[3]), (-3, threads as i32 - 1));
            assert_eq!((got[9], got[10], got[11], got[12]), (2 * n, n, 7, 3 * n));
            assert_eq!(u64::from_le_bytes(ran.buffers["l"][..].try_into().unwrap()), (n as u64) << 33);
            assert_eq!(ran.floats("f"), [0.5 * n as f32]);
            assert_eq!(f64::from_le_bytes(ran.buffers["d"][..].try_into().unwrap()), 0.25 * f64::from(n));
            assert_eq!(half::f16::from_le_bytes(ran.buffers["h"][..].try_into().unwrap()).to_f32(), n as f32);
            assert_eq!(half::bf16::from_le_bytes(ran.buffers["b"][..].try_into().unwrap()).to_f32(), n as f32);
            if !check {
                assert_eq!((got[4], got[5]), (0, -1));
                assert_eq!((got[7], got[8]), (256 % 10, 10 - 256 % 10));
            }

            let constants = vec![Constant { symbol: "tables::weights".into(), buffer: "w".into() }];
            let data = [
                floats("x", [1., 2., 3., 4., 5.]),
                output("y", 5, 4),
                output("out", 1, 4),
                floats("w", [1., 10., 100., 1000.]),
            ];
            let args = vec![ptr("x"), ptr("y"), ptr("out")];
            let twice = vec![launch("globals", 1, 5, args.clone()), launch("globals", 1, 5, args)];
            let ran = run_with(&built, twice, &data, &How { constants, ..how.clone() }).clean();
            assert_eq!(ran.floats("y"), [1., 20., 300., 4000., 5.]);
            assert_eq!(ran.ints("out"), [6], "5 was reset before the trial, and counted up by the first launch");

            let x = floats("x", (0..80).map(|i| i as f32));
            let args = vec![ptr("x"), ptr("part"), ptr("out")];
            let ran = go(launch("last_block", 10, 4, args), &[x, output("part", 10, 4), output("out", 1, 4)]);
            assert_eq!(ran.floats("out"), [3160.0]);

            let data = [zeros("state", 9, 4), output("out", 8, 4)];
            assert_eq!(
                go(launch("lookback", 8, 1, vec![ptr("state"), ptr("out")]), &data).ints("out"),
                (0..8).collect::<Vec<_>>()
            );
            go(launch("waits_for_later", 2, 1, vec![ptr("state")]), &[zeros("state", 1, 4)]);

            let x = floats("x", (0..128).map(|i| i as f32));
            let ran = go(launch("copies", 1, 32, vec![ptr("x"), ptr("y")]), &[x, output("y", 128, 4)]);
            assert_eq!(ran.floats("y")[..5], [127., 126., 125., 0., 123.]);

            assert_eq!(go(launch("prints", 1, 2, vec![int(7)]), &[]).printed, "n is 7, half 0.50\n");

            let mut cubes = launch("cubes", 1, 1, vec![ptr("out")]);
            (cubes.grid, cubes.block) = ([2, 3, 2], [4, 3, 2]);
            let got = go(cubes, &[output("out", 12 * 24, 4)]).ints("out");
            assert_eq!((got[0], got[23], got[24 * 11 + 5]), (0, 123, 11011));

            let field = |dtype, value| StructField { dtype, value };
            let shape = Arg::Struct(vec![
                field(DType::I32, Scalar::Int(3)),
                field(DType::I64, Scalar::Int(1 << 33)),
                field(DType::F32, Scalar::Float(0.5)),
            ]);
            let yes = Arg::Scalar { dtype: DType::Bool, value: Scalar::Bool(true) };
            let args = vec![shape, yes, ptr("out"), Arg::Pointers(vec!["a".into(), "b".into()])];
            let ran = go(launch("by_value", 1, 1, args), &[output("out", 1, 8), floats("a", [9.]), floats("b", [64.])]);
            assert_eq!(
                f64::from_le_bytes(ran.buffers["out"][..].try_into().unwrap()),
                3.0 + 8589934592.0 + 0.5 + 1.0 + 64.0
            );

            let x = floats("x", (0..64).map(|i| i as f32));
            let ran = go(launch("warp_reduce", 1, 64, vec![ptr("x"), ptr("y")]), &[x.clone(), output("y", 64, 4)]);
            assert_eq!((ran.floats("y")[0], ran.floats("y")[63]), (496.0, 1520.0));
            if check {
                let ran = run_with(
                    &built,
                    vec![launch("volatile_reduce", 1, 32, vec![ptr("x"), ptr("y")])],
                    &[x, output("y", 1, 4)],
                    &how,
                );
                assert!(
                    ran.findings
                        .iter()
                        .all(|f| f.kind == FindingKind::Race && f.message.contains("in step on hardware"))
                );
                assert!(!ran.findings.is_empty());
            }
        }
    }
}

const WAITS: &str = r#"
#include <cuda_runtime.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
__device__ int hits = 3;
__global__ void volatile_wait(int *state, int *out) {
  volatile int *s = state;
  if (threadIdx.x == 0) {
    while (s[1] == 0) {}
    out[0] = 7;
  } else {
    s[1] = 1;
  }
}
__global__ void flag_in_block(int *out) {
  __shared__ int flag, data;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 40) {
    data = 9;
    __threadfence_block();
    atomicExch(&flag, 1);
  } else if (threadIdx.x == 3) {
    cuda::atomic_ref<int, cuda::thread_scope_block> f(flag);
    while (f.load(cuda::memory_order_acquire) == 0) {}
    out[0] = data;
  }
}
__global__ void hits_of_trial(int *out) { out[0] = ++hits; }
"#;

#[test]
fn a_thread_that_spins_on_volatile_memory_lets_the_one_it_waits_for_run() {
    for check in [false, true] {
        let built = build(WAITS, &["volatile_wait", "flag_in_block"], check);
        for threads in [1, 2] {
            let how = How { threads, ..How::default() };
            let data = [ints("state", [0, 0]).writable(), output("out", 1, 4)];
            let wait = launch("volatile_wait", 1, 2, vec![ptr("state"), ptr("out")]);
            assert_eq!(run_with(&built, vec![wait], &data, &how).clean().ints("out"), [7]);
            let wait = launch("flag_in_block", 1, 64, vec![ptr("out")]);
            assert_eq!(run_with(&built, vec![wait], &[output("out", 1, 4)], &how).clean().ints("out"), [9]);
        }
    }
}

#[test]
fn device_globals_start_anew_in_every_trial() {
    let built = build(WAITS, &["hits_of_trial"], false);
    let how = How { trials: 3, ..How::default() };
    let ran = run_with(&built, vec![launch("hits_of_trial", 1, 1, vec![ptr("out")])], &[output("out", 1, 4)], &how);
    assert_eq!((ran.done, ran.ints("out")), (3, vec![4]));
}

#[test]
fn volatile_code_that_declares_itself_warp_synchronous_is_exact() {
    let built = build_with(ATOMICS, &["volatile_reduce"], true, &[("KFORGE_WARP_SYNCHRONOUS", "1")]);
    let x = floats("x", (0..64).map(|i| i as f32));
    for order in ORDERS {
        let how = How { order, ..How::default() };
        let data = [x.clone(), output("y", 1, 4)];
        let ran =
            run_with(&built, vec![launch("volatile_reduce", 1, 32, vec![ptr("x"), ptr("y")])], &data, &how).clean();
        let mut lanes: Vec<f32> = (0..64).map(|i| i as f32).collect();
        for step in [32, 16, 8, 4, 2, 1] {
            let before = lanes.clone();
            (0..32).for_each(|t| lanes[t] += before[(t + step) % 64]);
        }
        assert_eq!(ran.floats("y"), lanes[..1]);
    }
}

const MATRICES: &str = r#"
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using namespace nvcuda;
template <class T, class Held, class Acc, int M, int N, int K>
__global__ void product(const Held *a, const Held *b, Acc *c) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Acc> fc;
  wmma::fill_fragment(fc, Acc(1));
  for (int k = 0; k < 2; ++k) {
    wmma::load_matrix_sync(fa, a + k * K, 2 * K);
    wmma::load_matrix_sync(fb, b + k * K, 2 * K);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = fa.x[i];
    wmma::mma_sync(fc, fa, fb, fc);
  }
  __shared__ Acc tile[M * N];
  wmma::store_matrix_sync(tile, fc, N, wmma::mem_row_major);
  for (int i = threadIdx.x; i < M * N; i += 32) c[i] = tile[i];
}
"#;

#[test]
fn warp_matrix_products_are_those_of_their_matrices() {
    type Encode = fn(i32) -> Vec<u8>;
    let f16: Encode = |v| half::f16::from_f32(v as f32).to_le_bytes().to_vec();
    let bf16: Encode = |v| half::bf16::from_f32(v as f32).to_le_bytes().to_vec();
    let f32: Encode = |v| (v as f32).to_le_bytes().to_vec();
    let s8: Encode = |v| vec![v as i8 as u8];
    let u8: Encode = |v| vec![v.unsigned_abs() as u8];
    let f64: Encode = |v| f64::from(v).to_le_bytes().to_vec();
    let cases: [(&str, Encode, &str, [usize; 3]); 11] = [
        ("product<__half, __half, float, 16, 16, 16>", f16, "f32", [16, 16, 16]),
        ("product<__half, __half, float, 32, 8, 16>", f16, "f32", [32, 8, 16]),
        ("product<__half, __half, float, 8, 32, 16>", f16, "f32", [8, 32, 16]),
        ("product<__half, __half, __half, 16, 16, 16>", f16, "f16", [16, 16, 16]),
        ("product<__half, __half, __half, 32, 8, 16>", f16, "f16", [32, 8, 16]),
        ("product<__nv_bfloat16, __nv_bfloat16, float, 16, 16, 16>", bf16, "f32", [16, 16, 16]),
        ("product<__nv_bfloat16, __nv_bfloat16, float, 8, 32, 16>", bf16, "f32", [8, 32, 16]),
        ("product<wmma::precision::tf32, float, float, 16, 16, 8>", f32, "f32", [16, 16, 8]),
        ("product<signed char, signed char, int, 16, 16, 16>", s8, "i32", [16, 16, 16]),
        ("product<unsigned char, unsigned char, int, 32, 8, 16>", u8, "i32", [32, 8, 16]),
        ("product<double, double, double, 8, 8, 4>", f64, "f64", [8, 8, 4]),
    ];
    let entries = cases.map(|c| c.0);
    for check in [false, true] {
        let built = build(MATRICES, &entries, check);
        for (entry, encode, sums, [m, n, k]) in cases {
            let sign = |v: i32| if entry.contains("unsigned") { v.abs() } else { v };
            let a: Vec<i32> = (0..m * 2 * k).map(|i| sign((i * 7 % 11) as i32 - 5)).collect();
            let b: Vec<i32> = (0..n * 2 * k).map(|i| sign((i * 5 % 13) as i32 - 6)).collect();
            let data = |name, values: &[i32]| Data {
                name,
                bytes: values.iter().flat_map(|v| encode(*v)).collect(),
                element: encode(0).len() as u64,
                writable: false,
                poisoned: false,
            };
            let width = [("f16", 2), ("f64", 8)].iter().find(|(name, _)| *name == sums).map_or(4, |(_, width)| *width);
            let data = [data("a", &a), data("b", &b), output("c", m * n, width)];
            let ran = run(&built, launch(entry, 1, 32, vec![ptr("a"), ptr("b"), ptr("c")]), &data).clean();
            let want = |e: usize| 1 + (0..2 * k).map(|l| a[e / n * 2 * k + l] * b[e % n * 2 * k + l]).sum::<i32>();
            for e in 0..m * n {
                let bytes = &ran.buffers["c"][e * width as usize..][..width as usize];
                let got = match sums {
                    "f16" => half::f16::from_le_bytes(bytes.try_into().unwrap()).to_f32() as i32,
                    "f64" => f64::from_le_bytes(bytes.try_into().unwrap()) as i32,
                    "i32" => i32::from_le_bytes(bytes.try_into().unwrap()),
                    _ => f32::from_le_bytes(bytes.try_into().unwrap()) as i32,
                };
                assert_eq!(got, want(e), "{entry} element {e}");
            }
        }
    }
}

#[test]
fn a_binary_tells_its_parameters_and_shared_memory() {
    let entries = ["block_sum<128>".to_owned()];
    let built = build(BASIC, &["block_sum<128>"], false);
    let seen = kforge::worker::emulator::inspect(&built.binary, &entries).unwrap();
    assert_eq!(seen.architectures, ["cpu"]);
    let function = &seen.functions[0];
    assert_eq!((function.shared, &function.params[..]), (Some(512), &[(0, 8), (8, 8)][..]));
    assert!(kforge::worker::emulator::inspect(&built.binary, &[entries[0].clone(), "other".into()]).is_err());
}

#[test]
fn what_the_compiler_refuses_comes_back_in_its_own_words_with_the_users_file() {
    let log = try_build("__global__ void k(float *x) {\n  x[0] = undeclared;\n}\n", &["k"], false, &[]).err().unwrap();
    assert!(log.contains("k.cu:2:10: error: 'undeclared' was not declared"), "{log}");
    assert!(!log.contains("source/"));
    let log = try_build("__global__ void k(float *x) {}\n", &["other<3>"], false, &[]).err().unwrap();
    assert!(log.contains("other"), "{log}");
}
