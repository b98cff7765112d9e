//! The throughput of the emulator, in its plain and its check build: threads that never wait (axpy), threads that meet at barriers (a row softmax), arithmetic
//! in tiles of shared memory (a matrix product), vectors (a sum of neighbours). On one core and on all. Prints rates, the best of three, beside those of a
//! plain loop on one core: by wall-clock time, and per core by processor time, which other work on the machine disturbs less.
#![expect(clippy::print_stdout, reason = "a bench prints its result, and stops where it cannot be set up")]

use std::time::Instant;

use harness::{Data, How, build_with, floats, int, launch, output, ptr, run_with};
use kforge::model::bound::KernelLaunch;

#[path = "../tests/emulator/harness.rs"]
#[expect(dead_code, reason = "the tests of the emulator use the rest")]
mod harness;

/// The number of threads of axpy in a plain build, and in a check build, which watches every access.
const AXPY: [u32; 2] = [1 << 24, 1 << 20];

/// Rows and columns of the softmax.
const ROWS: [u32; 2] = [4096, 256];
const COLS: u32 = 4096;

/// The number of threads in a block of the softmax, and how often each thread waits: two reductions of eight rounds, each with two additional barriers.
const BLOCK: u32 = 256;
const WAITS: u32 = 20;

/// Order of the product in each build.
const N: [u32; 2] = [512, 128];

const SOURCE: &str = r#"
extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + 1.0f;
}
template <class F>
__device__ float reduced(float mine, float* part, F with) {
  int t = threadIdx.x;
  part[t] = mine;
  __syncthreads();
  for (int half = 128; half; half /= 2) {
    if (t < half) part[t] = with(part[t], part[t + half]);
    __syncthreads();
  }
  float all = part[0];
  __syncthreads();
  return all;
}
extern "C" __global__ void softmax(const float* x, float* y, int n) {
  __shared__ float part[256];
  const float* from = x + blockIdx.x * n;
  float* to = y + blockIdx.x * n;
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) top = fmaxf(top, from[i]);
  top = reduced(top, part, [](float a, float b) { return fmaxf(a, b); });
  for (int i = threadIdx.x; i < n; i += 256) sum += expf(from[i] - top);
  sum = reduced(sum, part, [](float a, float b) { return a + b; });
  for (int i = threadIdx.x; i < n; i += 256) to[i] = expf(from[i] - top) / sum;
}
"#;

/// Vectors beside scalars: a plain build checks the alignment of both, because the source changes the type of a pointer.
const VECTORS: &str = r#"
extern "C" __global__ void scale4(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i >= n) return;
  float4 v = reinterpret_cast<const float4*>(x)[i];
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += x[16 * (i / 16) + k];
  v.x = a * v.x + sum, v.y = a * v.y + sum, v.z = a * v.z + sum, v.w = a * v.w + sum;
  reinterpret_cast<float4*>(y)[i] = v;
}
"#;

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let matmul = include_str!("matmul/mm.cu");
    let tiles = [("TX", "16"), ("TY", "16"), ("RX", "4"), ("RY", "4"), ("TK", "16")];
    for (at, kind) in ["plain", "check"].into_iter().enumerate() {
        let check = at == 1;
        let small = build_with(SOURCE, &["axpy", "softmax"], check, &[]);
        let vectors = build_with(VECTORS, &["scale4"], check, &[]);
        let product = build_with(matmul, &["mm"], check, &tiles);
        let (threads, rows, n) = (AXPY[at], ROWS[at], N[at]);
        let wave = |count: u32| (0..count).map(|i| (i % 97) as f32 / 97.0);
        let vector = [floats("x", wave(threads)), output("y", threads as usize, 4)];
        let table = [floats("x", wave(rows * COLS)), output("y", (rows * COLS) as usize, 4)];
        let square = [floats("a", wave(n * n)), floats("b", wave(n * n)), output("c", (n * n) as usize, 4)];
        for os_threads in [1, cores] {
            let args = vec![harness::float(2.0), ptr("x"), ptr("y"), int(threads.into())];
            let took = best(&small, launch("axpy", threads / 256, 256, args), &vector, os_threads);
            let rate = |seconds: f64| f64::from(threads) / seconds / 1e6;
            println!(
                "{kind:<5}  {os_threads:>2} cores  axpy     {:8.1} M threads/s, {:.1} a core",
                rate(took.0),
                rate(took.1)
            );
            let args = vec![harness::float(2.0), ptr("x"), ptr("y"), int(threads.into())];
            let took = best(&vectors, launch("scale4", threads / 1024, 256, args), &vector, os_threads);
            println!(
                "{kind:<5}  {os_threads:>2} cores  vectors  {:8.1} M elements/s, {:.1} a core",
                rate(took.0),
                rate(took.1)
            );
            let args = vec![ptr("x"), ptr("y"), int(COLS.into())];
            let took = best(&small, launch("softmax", rows, BLOCK, args), &table, os_threads);
            let switches = f64::from(rows) * f64::from(BLOCK) * f64::from(WAITS);
            println!(
                "{kind:<5}  {os_threads:>2} cores  softmax  {:8.1} M switches/s, {:.1} a core, {:.2} s",
                switches / took.0 / 1e6,
                switches / took.1 / 1e6,
                took.0
            );
            let mut tiled = launch("mm", n / 64, 16, vec![ptr("a"), ptr("b"), ptr("c"), int(n.into())]);
            tiled.grid = [n / 64, n / 64, 1];
            tiled.block = [16, 16, 1];
            let took = best(&product, tiled, &square, os_threads);
            let rate = |seconds: f64| 2.0 * f64::from(n).powi(3) / seconds / 1e9;
            println!(
                "{kind:<5}  {os_threads:>2} cores  matmul   {:8.2} GFLOP/s, {:.2} a core",
                rate(took.0),
                rate(took.1)
            );
        }
    }
    println!("peer    1 core   matmul   {:8.2} GFLOP/s, three nested loops", plain_loops(N[0] as usize));
}

/// The wall-clock time and the processor time of a run in seconds: the least of three each.
fn best(built: &harness::Built, launch: KernelLaunch, data: &[Data], threads: u32) -> (f64, f64) {
    let how = How { threads, ..How::default() };
    // Hundredths of a second, in user and system code (proc(5)), of all threads so far.
    let spent = || {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').skip(11).take(2);
        fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
    };
    let once = |trials: usize| {
        let how = How { trials, ..how.clone() };
        let (start, before) = (Instant::now(), spent());
        let ran = run_with(built, vec![launch.clone()], data, &how);
        assert!(ran.findings.is_empty() && ran.not_emulated.is_empty(), "{:?} {:?}", ran.findings, ran.not_emulated);
        (start.elapsed().as_secs_f64(), spent() - before)
    };
    // Laying out buffers and loading the binary take time too. The time of three runs on the same buffers less that of one is the time of two runs.
    let pairs = (0..3).map(|_| (once(3), once(1)));
    pairs.fold((f64::INFINITY, f64::INFINITY), |least, (three, one)| {
        (least.0.min(((three.0 - one.0) / 2.0).max(1e-9)), least.1.min(((three.1 - one.1) / 2.0).max(1e-9)))
    })
}

fn plain_loops(n: usize) -> f64 {
    let (a, b) = (vec![0.5f32; n * n], vec![0.25f32; n * n]);
    let mut c = vec![0f32; n * n];
    let start = Instant::now();
    for (row, out) in a.chunks(n).zip(c.chunks_mut(n)) {
        for (left, right) in row.iter().zip(b.chunks(n)) {
            out.iter_mut().zip(right).for_each(|(c, b)| *c += left * b);
        }
    }
    std::hint::black_box(&c);
    2.0 * (n as f64).powi(3) / start.elapsed().as_secs_f64() / 1e9
}
