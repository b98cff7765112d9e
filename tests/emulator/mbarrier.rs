//! Branches inside inline PTX, `mbarrier` and the bulk copies that it completes: what they give, and what a mistake with them is reported as.

use super::harness::*;
use kforge::harness::message::ThreadOrder;
use kforge::record::FindingKind;

const BRANCHES: &str = r##"
#define POWER(to, of, times) \
  asm volatile("{ .reg .pred p;\n  .reg .b32 left;\n  mov.b32 left, %1;\n  mov.b32 %0, 1;\n" \
               "AGAIN_%=:\n  setp.eq.s32 p, left, 0;\n  @p bra DONE_%=;\n" \
               "  mul.lo.s32 %0, %0, %2;\n  add.s32 left, left, -1;\n  bra.uni AGAIN_%=;\nDONE_%=: }" \
               : "=&r"(to) : "r"(times), "r"(of))
template <int Of> __device__ int power(int times) { int to; POWER(to, Of, times); return to; }
__global__ void k(int *out, int n) {
  out[0] = power<3>(n), out[1] = power<2>(n + 1);
  int first, second;
  POWER(first, 5, 2); POWER(second, 7, n - n);
  out[2] = first, out[3] = second;
  // The same label in two scopes, and a branch out of one.
  asm("{ .reg .pred p; setp.gt.s32 p, %1, 3; { @!p bra skip; add.s32 %0, %1, 100; bra out; skip: mov.s32 %0, 7; } { bra skip; skip: } out: }"
      : "=r"(out[4]) : "r"(n));
}
"##;

#[test]
fn a_branch_inside_a_statement_goes_to_its_label() {
    let built = build(BRANCHES, &["k"], true);
    for (n, last) in [(4, 104), (3, 7)] {
        let ran = run(&built, launch("k", 1, 1, vec![ptr("out"), int(n)]), &[output("out", 5, 4)]).clean();
        assert_eq!(ran.ints("out"), [3i32.pow(n as u32), 2i32.pow(n as u32 + 1), 25, 1, last]);
    }
}

#[test]
#[ignore = "second tier: another compiler"]
fn clang_takes_branches_and_barriers_too() {
    let clang = std::path::Path::new("/usr/bin/clang++");
    if !clang.exists() {
        return;
    }
    let by_clang =
        |text, entry, check| try_build_by(clang, text, &[entry], check, &[]).unwrap_or_else(|log| panic!("{log}"));
    for check in [false, true] {
        let built = by_clang(BRANCHES, "k", check);
        let ran = run(&built, launch("k", 1, 1, vec![ptr("out"), int(4)]), &[output("out", 5, 4)]).clean();
        assert_eq!(ran.ints("out"), [81, 32, 25, 1, 104]);
        let data = [floats("x", (0..1003).map(|i| i as f32)), output("y", 1003, 4)];
        let args = vec![ptr("x"), ptr("y"), int(1003)];
        is_affine(run(&by_clang(STAGES, "kernel", check), launch("kernel", 2, 64, args), &data));
    }
}

const STAGES: &str = include_str!("../exploits/honest/ptx_bulk_stages.cu");
const SPLIT: &str = include_str!("../exploits/honest/ptx_split_barrier.cu");

fn but(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

fn affine_in(order: ThreadOrder, text: &str, blocks: u32, threads: u32, check: bool) -> Ran {
    let n = 1003;
    let data = [floats("x", (0..n).map(|i| i as f32)), output("y", n as usize, 4)];
    let args = vec![ptr("x"), ptr("y"), int(n)];
    let how = How { order, ..How::default() };
    run_with(&build(text, &["kernel"], check), vec![launch("kernel", blocks, threads, args)], &data, &how)
}

fn affine(text: &str, blocks: u32, threads: u32, check: bool) -> Ran {
    affine_in(ThreadOrder::Forward, text, blocks, threads, check)
}

#[track_caller]
fn is_affine(ran: Ran) {
    let got = ran.clean().floats("y");
    assert!(got.iter().enumerate().all(|(i, v)| *v == 2.0 * i as f32 + 1.0), "{got:?}");
}

#[track_caller]
fn finds(ran: &Ran, kind: FindingKind) {
    assert!(ran.findings.iter().any(|f| f.kind == kind), "{:#?} {:?}", ran.findings, ran.not_emulated);
}

#[test]
fn bulk_copies_complete_a_barrier_and_a_missing_wait_is_a_race() {
    is_affine(affine(STAGES, 2, 64, true));
    finds(&affine(&but(STAGES, "wait(full[stage], phase);", ""), 2, 64, true), FindingKind::Race);
}

#[test]
#[ignore = "second tier: a source for each mistake"]
fn mistakes_with_barriers_and_bulk_copies_are_found() {
    is_affine(affine(STAGES, 3, 32, false));
    is_affine(affine(SPLIT, 3, 96, true));
    is_affine(affine(SPLIT, 3, 96, false));
    // A byte too many is never brought.
    finds(
        &affine(&but(STAGES, "expect(full[stage], BYTES)", "expect(full[stage], BYTES + 1)"), 2, 64, true),
        FindingKind::NoProgress,
    );
    let ran = affine(&but(STAGES, "wait(full[stage], phase);", "wait(full[stage], phase ^ 1);"), 2, 64, true);
    assert!(!ran.findings.is_empty(), "the phase before is over at once");
    // Nobody else knows of the barrier yet.
    let early = but(STAGES, "__syncthreads();  // The barriers are there.", "");
    finds(&affine_in(ThreadOrder::Reversed, &early, 2, 64, true), FindingKind::Uninitialised);
    // Whoever has not waited yet misses a whole phase.
    let refilled = but(STAGES, "__syncthreads();  // The stage may be filled again.", "");
    finds(&affine(&refilled, 2, 64, true), FindingKind::NoProgress);
    finds(&affine(&but(STAGES, "x + tile * TILE", "x + tile * TILE + 1"), 2, 64, true), FindingKind::Misaligned);
    finds(&affine(&but(SPLIT, "wait(&ready, state);", ""), 3, 96, true), FindingKind::Race);
    finds(
        &affine(&but(SPLIT, "init(&ready, blockDim.x)", "init(&ready, blockDim.x + 1)"), 3, 96, true),
        FindingKind::NoProgress,
    );
    let ran = affine(&but(STAGES, "BYTES = 4 * TILE", "BYTES = 4 * TILE - 4"), 2, 64, true);
    assert!(ran.not_emulated[0].contains("no multiple of 16"), "{ran:?}");
}

/// Every form of the instructions, with the words of the barrier's state that PTX defines.
const FORMS: &str = r##"
#include <cuda/ptx>
#include <cuda/barrier>
__device__ __forceinline__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void k(const int *x, int *out) {
  __shared__ __align__(16) int room[8];
  __shared__ unsigned long long bar;
  unsigned long long state, other;
  int over, left;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 3;" ::"r"(at(&bar)));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at(&bar)));
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(state));
  out[0] = left;
  asm volatile("mbarrier.arrive.noComplete.b64 %0, [%1], 1;" : "=l"(other) : "l"(&bar));
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(other));
  out[1] = left;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }" : "=r"(over) : "r"(at(&bar)), "l"(state));
  out[2] = over;
  // Before it is expected.
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 32, [%2];" ::"r"(at(room)), "l"(x), "r"(at(&bar)));
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], 32;" ::"r"(at(&bar)));
  asm volatile("{ .reg .pred p; mbarrier.try_wait.acquire.cta.shared::cta.b64 p, [%1], %2, 100; selp.s32 %0, 1, 0, p; }" : "=r"(over) : "r"(at(&bar)), "l"(state));
  out[3] = over, out[4] = room[7];
  // An arrival, and one fewer is needed from the next phase on.
  asm volatile("mbarrier.arrive_drop.b64 _, [%0];" ::"l"(&bar));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(room)), "l"(x + 5));
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at(&bar)));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at(&bar)));
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 1; selp.s32 %0, 1, 0, p; }" : "=r"(over) : "r"(at(&bar)));
  out[5] = over;
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(at(&bar)));
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 1;" : "=l"(state) : "r"(at(&bar)));
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }" : "=r"(over) : "r"(at(&bar)), "l"(state));
  out[6] = over;
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(at(&bar)));
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }" : "=r"(over) : "r"(at(&bar)), "l"(state));
  out[7] = over;
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at(&bar)));
  asm volatile("fence.proxy.async.shared::cta;");
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + 8), "r"(at(room)), "r"(16) : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;");
}
__global__ void named(const int *x, int *out) {
  namespace ptx = cuda::ptx;
  __shared__ alignas(16) int room[32];
  __shared__ uint64_t bar;
  __shared__ cuda::barrier<cuda::thread_scope_block> whole;
  if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1), init(&whole, blockDim.x), ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, room, x, 64, &bar);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 64);
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(room + 16, x + 16, cuda::aligned_size_t<16>(64), whole);
    token = cuda::device::barrier_arrive_tx(whole, 1, 64);
  } else {
    token = whole.arrive();
  }
  int sum = room[threadIdx.x % 16];
  whole.wait(static_cast<decltype(token) &&>(token));
  out[threadIdx.x] = sum + room[16 + threadIdx.x % 16];
}
"##;

#[test]
fn every_form_counts_as_ptx_defines() {
    let built = build(FORMS, &["k", "named"], true);
    let data = [ints("x", 0..32), ints("out", [-1; 32]).writable()];
    let ran = run(&built, launch("k", 1, 1, vec![ptr("x"), ptr("out")]), &data).clean();
    assert_eq!(ran.ints("out")[..12], [3, 2, 0, 1, 7, 0, 0, 1, 5, 1, 2, 3]);
    let ran = run(&built, launch("named", 1, 32, vec![ptr("x"), ptr("out")]), &data).clean();
    assert_eq!(ran.ints("out"), (0..32).map(|t| 2 * (t % 16) + 16).collect::<Vec<_>>());
}
