//! The emulator compared with what CUDA defines: real kernels, compiled by a real g++ and run by the runner's entry point.

mod atomics;
mod carries;
mod copies;
mod cub;
mod defined;
mod features;
mod harness;
mod headers;
mod host_code;
mod hostile;
mod looks;
mod matrices;
mod mbarrier;
mod mistakes;
mod own_kernels;
mod patterns;
mod prelude;
mod ptx;
mod ptx_memory;
mod structs;
mod values;
mod warps;

use harness::*;
use kforge::harness::message::ThreadOrder;
use kforge::record::FindingKind;

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
fn a_binary_tells_its_parameters_and_shared_memory() {
    let entries = ["block_sum<128>".to_owned()];
    let built = build(BASIC, &["block_sum<128>"], false);
    let seen = kforge::emulator::inspect(&built.binary, &entries).unwrap();
    assert_eq!(seen.architectures, ["cpu"]);
    let function = &seen.functions[0];
    assert_eq!((function.shared, &function.params[..]), (Some(512), &[(0, 8), (8, 8)][..]));
    assert!(kforge::emulator::inspect(&built.binary, &[entries[0].clone(), "other".into()]).is_err());
}

#[test]
fn what_the_compiler_refuses_comes_back_in_its_own_words_with_the_users_file() {
    let log = try_build("__global__ void k(float *x) {\n  x[0] = undeclared;\n}\n", &["k"], false, &[]).err().unwrap();
    assert!(log.contains("k.cu:2:10: error: 'undeclared' was not declared"), "{log}");
    assert!(!log.contains("source/"));
    let log = try_build("__global__ void k(float *x) {}\n", &["other<3>"], false, &[]).err().unwrap();
    assert!(log.contains("other"), "{log}");
}
