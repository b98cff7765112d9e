//! cub's primitives of warps and blocks from the toolkit's own headers: values with ragged sizes, custom operators, types, 1-3D blocks and algorithms, by g++ and
//! by clang++; and a missing barrier between two uses of one `TempStorage`.

use super::harness::*;
use kforge::model::bound::KernelLaunch;
use kforge::record::FindingKind;

/// One kernel for each primitive. `out` holds what each gives, in the order of the cases below.
const PRIMITIVES: &str = include_str!("../emulator_values/cub.cu");

/// The value of element `i` of the input.
fn value(i: usize) -> i32 {
    (i as i32 * 37 + 11) % 101
}

struct Case {
    entry: &'static str,
    block: [u32; 3],
    valid: i64,
    want: Vec<i32>,
}

fn case(entry: &'static str, threads: u32, valid: i64, want: Vec<i32>) -> Case {
    Case { entry, block: [threads, 1, 1], valid, want }
}

fn before(of: &[i32]) -> Vec<i32> {
    of.iter().scan(0, |sum, v| Some(std::mem::replace(sum, *sum + v))).collect()
}

fn cases() -> Vec<Case> {
    let x: Vec<i32> = (0..192).map(value).collect();
    let sum = |n: usize| x[..n].iter().sum::<i32>();
    let mut all = vec![];
    for (entry, block) in [
        ("sums<int, 128, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 1, 1>", [128, 1, 1]),
        ("sums<float, 32, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 4, 1>", [32, 4, 1]),
        ("sums<double, 16, cub::BLOCK_REDUCE_RAKING, 4, 2>", [16, 4, 2]),
        ("sums<int, 128, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, 1, 1>", [128, 1, 1]),
        ("sums<long long, 100, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 1, 1>", [100, 1, 1]),
    ] {
        let threads = block.iter().product::<u32>() as usize;
        all.push(Case { entry, block, valid: 77, want: vec![sum(threads), sum(77)] });
    }
    let first = |n: usize| (0..n).max_by_key(|i| (x[*i], std::cmp::Reverse(*i))).unwrap();
    all.push(case("arg_max", 96, 50, vec![x[first(50)], first(50) as i32]));
    all.push(case("half_sums", 64, 0, vec![sum(32), sum(64) - sum(32)]));
    for (entry, width) in [("warp_sums<32>", 32), ("warp_sums<16>", 16), ("warp_sums<8>", 8)] {
        let group = |g: &[i32]| [g.iter().sum(), *g[..5].iter().max().unwrap()];
        all.push(case(entry, 64, 5, x[..64].chunks(width).flat_map(group).collect()));
    }
    for (entry, width) in [("warp_scans<32>", 32), ("warp_scans<8>", 8)] {
        let mut want: Vec<i32> = x[..64].chunks(width).flat_map(before).collect();
        want.extend(x[..64].chunks(width).map(|g| g.iter().sum::<i32>()));
        all.push(case(entry, 64, 0, want));
    }
    let mut scanned = before(&x);
    scanned.extend((1..=96).map(|n| x[..n].iter().max().unwrap()));
    scanned.push(sum(192));
    for entry in
        ["scans<cub::BLOCK_SCAN_RAKING>", "scans<cub::BLOCK_SCAN_RAKING_MEMOIZE>", "scans<cub::BLOCK_SCAN_WARP_SCANS>"]
    {
        all.push(case(entry, 96, 0, scanned.clone()));
    }
    let copied: Vec<i32> = x.iter().enumerate().map(|(i, v)| if i < 150 { 2 * v + 1 } else { -7 }).collect();
    for entry in [
        "copies<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>",
        "copies<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>",
        "copies<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>",
        "copies<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>",
        "copies<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>",
    ] {
        all.push(case(entry, 64, 150, copied.clone()));
    }
    let mut sorted: Vec<(i32, i32)> = x.iter().copied().zip(0..).collect();
    sorted.sort_by_key(|(key, _)| *key);
    let of = |s: &[(i32, i32)]| s.iter().map(|p| p.0).chain(s.iter().map(|p| p.1)).collect::<Vec<_>>();
    all.push(case("sorts<false>", 64, 0, of(&sorted)));
    sorted.sort_by_key(|(key, _)| -key);
    all.push(case("sorts<true>", 64, 0, of(&sorted)));
    all.push(case("exchanges", 64, 0, (0..64).flat_map(|t| [x[t], x[t + 64], x[t + 128]]).collect()));
    let bins: Vec<i32> = (0..16).map(|bin| x.iter().filter(|v| **v & 15 == bin).count() as i32).collect();
    for entry in ["histograms<cub::BLOCK_HISTO_ATOMIC>", "histograms<cub::BLOCK_HISTO_SORT>"] {
        all.push(case(entry, 64, 0, bins.clone()));
    }
    all
}

fn primitives(cxx: &str, check: bool) {
    let cases = cases();
    let entries: Vec<&str> = cases.iter().map(|case| case.entry).collect();
    let built = try_build_by(std::path::Path::new(cxx), PRIMITIVES, &entries, check, &[]);
    let built = built.unwrap_or_else(|log| panic!("{log}"));
    for Case { entry, block, valid, want } in &cases {
        let data = [ints("x", (0..192).map(value)), ints("out", [-7; 400]).writable()];
        let launch = KernelLaunch {
            entry: (*entry).into(),
            grid: [1, 1, 1],
            block: *block,
            args: vec![ptr("x"), ptr("out"), int(*valid)],
            ..KernelLaunch::default()
        };
        let ran = run(&built, launch, &data);
        assert!(ran.findings.is_empty() && ran.not_emulated.is_empty(), "{entry}: {ran:?}");
        assert_eq!(ran.ints("out")[..want.len()], want[..], "{entry} {cxx} {check}");
    }
}

#[test]
#[ignore = "second tier: the toolkit's headers"]
fn primitives_give_what_they_say_and_are_watched_without_a_false_finding() {
    primitives("/usr/bin/g++", true);
    primitives("/usr/bin/g++", false);
}

#[test]
#[ignore = "second tier: the toolkit's headers and another compiler"]
fn primitives_by_clang_give_the_same() {
    if !std::path::Path::new("/usr/bin/clang++").exists() {
        return kforge::base::testing::skipped("no clang++ in /usr/bin");
    }
    primitives("/usr/bin/clang++", true);
}

/// The storage of one reduction is used by the next.
const TWICE: &str = r#"
#include <cub/block/block_reduce.cuh>
__global__ void twice(const int *x, int *out) {
  typedef cub::BlockReduce<int, 128> Reduce;
  __shared__ Reduce::TempStorage room;
  int sum = Reduce(room).Sum(x[threadIdx.x]);
  __syncthreads();  // The storage may be used again.
  int squares = Reduce(room).Sum(x[threadIdx.x] * x[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = sum, out[1] = squares;
}
"#;

#[test]
#[ignore = "second tier: the toolkit's headers"]
fn a_missing_barrier_between_two_uses_is_a_race_at_the_users_line() {
    let data = [ints("x", 0..128), output("out", 2, 4)];
    let launched = || launch("twice", 1, 128, vec![ptr("x"), ptr("out")]);
    assert_eq!(run(&build(TWICE, &["twice"], true), launched(), &data).clean().ints("out"), [8128, 690_880]);
    let wrong = TWICE.replace("__syncthreads();  // The storage may be used again.", "");
    let ran = run(&build(&wrong, &["twice"], true), launched(), &data);
    let races: Vec<_> = ran.findings.iter().filter(|found| found.kind == FindingKind::Race).collect();
    assert!(races.iter().any(|found| found.message.contains("room")), "{:#?}", ran.findings);
    let second = line_of(&wrong, "squares =");
    let places = races.iter().flat_map(|found| [found.line.clone(), found.other_line.clone()]).flatten();
    assert!(places.into_iter().any(|place| place == ("k.cu".into(), second)), "{:#?}", ran.findings);
}

#[test]
#[ignore = "second tier: the toolkit's headers"]
fn algorithms_that_the_host_launches_are_left_out_with_the_host_code() {
    let text = r#"
#include <cub/cub.cuh>
__global__ void k(int *out) {
  typedef cub::WarpReduce<int> Reduce;
  __shared__ Reduce::TempStorage room;
  int sum = Reduce(room).Sum(int(threadIdx.x));
  if (threadIdx.x == 0) out[0] = sum;
}
void host(const int *in, int *out, int n, void *room, size_t bytes) {
  cub::DeviceReduce::Sum(room, bytes, in, out, n);
}
"#;
    let ran = run(&build(text, &["k"], true), launch("k", 1, 32, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.clean().ints("out"), [496]);
}

#[test]
#[ignore = "second tier: the toolkit's headers"]
fn libcu_and_cooperative_groups_stand_beside_cub() {
    let text = r#"
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <cuda/atomic>
#include <cuda/std/limits>
__global__ void k(const int *x, int *out) {
  typedef cub::BlockReduce<int, 64> Reduce;
  __shared__ Reduce::TempStorage room;
  __shared__ int part[64];
  auto block = cooperative_groups::this_thread_block();
  part[threadIdx.x] = x[threadIdx.x];
  block.sync();
  int sum = Reduce(room).Sum(part[63 - threadIdx.x]);
  cuda::atomic_ref<int, cuda::thread_scope_device> total(out[0]);
  if (threadIdx.x == 0) total.fetch_add(sum, cuda::std::memory_order_relaxed), out[1] = cuda::std::numeric_limits<int>::max();
}
"#;
    let data = [ints("x", 0..64), ints("out", [0, 0]).writable()];
    let ran = run(&build(text, &["k"], true), launch("k", 3, 64, vec![ptr("x"), ptr("out")]), &data);
    assert_eq!(ran.ints("out")[0], 3 * 2016, "{ran:?}");
}

/// libcu++'s own barrier, whose destructor CUDA never calls, and a pipeline.
const BESIDE: &str = r#"
#include <cub/block/block_reduce.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>
__global__ void waits(const int *x, int *out) {
  __shared__ int all[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
  if (threadIdx.x == 0) init(&arrived, blockDim.x);
  __syncthreads();
  all[threadIdx.x] = x[threadIdx.x];
  arrived.arrive_and_wait(); // waits
  out[threadIdx.x] = all[63 - threadIdx.x];
}
__global__ void pipes(const int *x, int *out) {
  __shared__ int all[64];
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(&all[threadIdx.x], &x[threadIdx.x], sizeof(int), pipe);
  pipe.producer_commit();
  pipe.consumer_wait();
  out[threadIdx.x] = all[threadIdx.x];
  pipe.consumer_release();
}
"#;

#[test]
#[ignore = "second tier: the toolkit's headers"]
fn barriers_and_pipelines_of_libcupp_stand_beside_cub() {
    let data = [ints("x", 0..64), output("out", 64, 4)];
    let go = |text: &str, entry: &str| {
        run(&build(text, &["waits", "pipes"], true), launch(entry, 1, 64, vec![ptr("x"), ptr("out")]), &data)
    };
    assert_eq!(go(BESIDE, "waits").clean().ints("out"), (0..64).rev().collect::<Vec<_>>());
    assert_eq!(go(BESIDE, "pipes").clean().ints("out"), (0..64).collect::<Vec<_>>());
    let wrong = go(&BESIDE.replace("arrived.arrive_and_wait(); // waits", "(void)arrived.arrive();"), "waits");
    assert!(wrong.findings.iter().any(|found| found.kind == FindingKind::Race), "{:#?}", wrong.findings);
}
