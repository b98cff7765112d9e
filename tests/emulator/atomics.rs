//! Memory operations on shared data: atomics, globals, look-back, copies, volatile and polled words; and arguments by value.

use kforge::model::DType;
use kforge::model::bound::{Arg, Constant, Scalar, StructField};
use kforge::record::FindingKind;

use super::ORDERS;
use super::harness::*;

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
            // The read of i[9] before its compare-and-swap races with the atomics of other threads, so check builds run only one block with one thread.
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

            let field = |dtype, value| StructField::Scalar { dtype, value };
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
