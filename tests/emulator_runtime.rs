//! The emulator against what CUDA defines: real kernels through a real g++, run by the runner's own entry point.

#[path = "emulator/harness.rs"]
mod harness;

use harness::*;
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
fn a_launch_whose_arguments_do_not_fit_is_refused() {
    let built = build(BASIC, &["reverse"], false);
    let ran = run(&built, launch("reverse", 1, 1, vec![ptr("d")]), &[ints("d", 0..4).writable()]);
    assert!(ran.only(FindingKind::LaunchRefused).message.contains("takes 2 parameters"));
}
