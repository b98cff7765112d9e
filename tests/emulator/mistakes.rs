//! Kernels with planted mistakes, and with features that are not emulated: the findings of the emulator, and their places.

use kforge::record::{FindingKind, Space};

use super::ORDERS;
use super::harness::*;

const WRONG: &str = r#"
#include <cuda_runtime.h>
__global__ void shared_race(const float *x, float *y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];                    // race: writes
  y[t] = s[63 - t];               // race: reads
}
__global__ void neighbour_race(const float *x, float *y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  y[t] = s[(t + 1) % blockDim.x];
}
__global__ void twin_race(const float *x, float *y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  y[t] = s[t ^ 1];
}
__global__ void unrolled_race(const float *x, float *y) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
#pragma unroll
  for (int step = 128; step > 0; step /= 2)
    if (t < step) s[t] += s[t + step];
  if (t == 0) y[0] = s[0];
}
__global__ void same_value_race(const float *x, float *y) {
  __shared__ float s[2];
  int t = threadIdx.x;
  s[0] = t == 1 ? 2 : 1; // same value, first
  if (t % 32 == 0) s[0] = 1; // same value, second
  __syncthreads();
  y[t] = s[0];
}
__global__ void self_race(const float *x, float *y) {
  __shared__ float s[1];
  s[0] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[0];
}
__global__ void global_race(int *out) {
  out[0] = blockIdx.x;            // race: blocks
}
__global__ void read_outside(const float *x, float *y, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t <= n) y[0] = x[t];        // outside: reads
}
__global__ void write_outside(int *out, int n) {
  int t = threadIdx.x;
  if (t < n + 3) out[t - 3] = t;  // outside: writes
}
__global__ void static_outside(float *y, int at) {
  __shared__ float tile[32];
  tile[at] = 1;                   // outside: static
  y[0] = tile[0];
}
__global__ void dynamic_outside(float *y, int at) {
  extern __shared__ float area[];
  area[at] = 1;                   // outside: dynamic
  y[0] = 1;
}
__global__ void shared_unwritten(float *y) {
  __shared__ float never[32];
  if (threadIdx.x == 40) never[3] = 1;
  y[threadIdx.x] = never[3];      // unwritten: shared
}
__global__ void output_unwritten(float *y) {
  y[threadIdx.x] += 1;            // unwritten: output
}
__global__ void divergent(int *out) {
  if (threadIdx.x < 16) { __syncthreads(); out[0] = 1; } else { __syncthreads(); } // divergent
}
__global__ void left_early(int *out) {
  if (threadIdx.x >= 48) return;
  __syncthreads();                // left early
  out[threadIdx.x] = 1;
}
__global__ void absent(int *out) {
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 16); // absent
}
__global__ void wrong_mask(int *out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0); // wrong mask
  else { while (true) __syncthreads(); }
}
__global__ void left_out(int *out) {
  out[threadIdx.x] = __shfl_sync(0xffffu, 1, 0); // left out
}
__global__ void crooked(const float *x, float *y) {
  float4 v = *reinterpret_cast<const float4 *>(x + 1); // crooked
  y[0] = v.x;
}
__global__ void writes_input(float *x) {
  x[threadIdx.x] = 0;             // writes input
}
__global__ void null_pointer(int *out, long long none) {
  if (threadIdx.x == 5) *reinterpret_cast<int *>(none) = 1; // null
  out[0] = 1;
}
__global__ void spins(int *flag) {
  while (atomicAdd(flag, 0) == 0) {} // spins
}
__global__ void spins_volatile(int *flag) {
  while (*(volatile int *)flag == 0) {} // spins volatile
}
__global__ void asserts(int *out, int n) {
  assert(n > 3 && "n is small");  // asserts
  out[0] = n;
}
__global__ void traps(int *out) {
  if (threadIdx.x == 1) __trap(); // traps
}
__global__ void divides(int *out, int n) {
  out[0] = 7 / n;                 // divides
}
"#;

const WRONG_ENTRIES: [&str; 26] = [
    "absent",
    "shared_race",
    "neighbour_race",
    "twin_race",
    "unrolled_race",
    "same_value_race",
    "self_race",
    "global_race",
    "read_outside",
    "write_outside",
    "static_outside",
    "dynamic_outside",
    "shared_unwritten",
    "output_unwritten",
    "divergent",
    "left_early",
    "wrong_mask",
    "left_out",
    "crooked",
    "writes_input",
    "null_pointer",
    "spins",
    "spins_volatile",
    "asserts",
    "traps",
    "divides",
];

fn wrong_line(mark: &str) -> Option<(String, u32)> {
    Some(("k.cu".into(), line_of(WRONG, &format!("// {mark}"))))
}

#[test]
#[ignore = "second tier: compiles every planted mistake"]
fn a_check_build_names_every_planted_mistake_with_its_place() {
    let built = build(WRONG, &WRONG_ENTRIES, true);
    let x = || floats("x", (0..64).map(|i| i as f32));
    let y = || output("y", 64, 4);
    for order in ORDERS {
        let how = How { order, threads: 1, ..How::default() };
        let go = |launch, data: &[Data]| run_with(&built, vec![launch], data, &how);

        let ran = go(launch("shared_race", 1, 64, vec![ptr("x"), ptr("y")]), &[x(), y()]);
        let races: Vec<_> = ran.findings.iter().filter(|f| f.kind == FindingKind::Race).collect();
        assert_eq!(races.len(), 1, "{races:#?}");
        let found = races[0];
        assert_eq!((found.buffer.as_deref(), found.space), (Some("s"), Some(Space::Shared)));
        let mut places = [found.line.clone(), found.other_line.clone()];
        places.sort();
        assert_eq!(places, [wrong_line("race: writes"), wrong_line("race: reads")], "{found:?}");
        assert!(found.index.is_some_and(|i| (0..64).contains(&i)) && found.count > 0);
        assert!(found.message.contains("; such a read is undefined in CUDA C++"), "{}", found.message);

        // Where threads of two warps race, the hint names the missing barrier, whichever race came first.
        let hint = |entry: &str, threads| {
            let ran = go(launch(entry, 1, threads, vec![ptr("x"), ptr("y")]), &[x(), y()]);
            let races: Vec<_> = ran.findings.iter().filter(|f| f.kind == FindingKind::Race).collect();
            assert_eq!(races.len(), 1, "{entry}: {races:#?}");
            (races[0].message.clone(), races[0].count)
        };
        let (message, count) = hint("neighbour_race", 64);
        assert!(message.ends_with("different warps: `__syncthreads` between the two places orders them"), "{message}");
        assert!(!message.contains("__syncwarp") && count > 1, "{count} {message}");
        let (message, _) = hint("neighbour_race", 32);
        assert!(message.contains("only `__syncwarp` guarantees it") && !message.contains("__syncthreads"), "{message}");
        let (message, _) = hint("twin_race", 64);
        assert!(message.contains("no race between different warps was seen here: the lanes of one warp"), "{message}");
        let (message, _) = hint("self_race", 64);
        assert!(message.contains("race on element 0 of `s`") && !message.contains("__sync"), "{message}");

        // Wherever a race of two warps shows, no message says that lanes of one warp are all that matters.
        for (entry, threads) in [("unrolled_race", 256), ("same_value_race", 64)] {
            let x = floats("x", (0..256).map(|i| i as f32));
            let data = [x, output("y", 64, 4)];
            let ran = go(launch(entry, 1, threads, vec![ptr("x"), ptr("y")]), &data);
            let races: Vec<_> = ran.findings.iter().filter(|f| f.kind == FindingKind::Race).collect();
            assert!(!races.is_empty() && races.iter().any(|f| f.message.contains("`__syncthreads`")), "{races:#?}");
            assert!(races.iter().all(|f| !f.message.contains("__syncwarp")), "{entry}: {races:#?}");
        }
        let (message, _) = hint("shared_race", 64);
        let (write, read) = (wrong_line("race: writes").unwrap().1, wrong_line("race: reads").unwrap().1);
        let number = |text: &str| {
            text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect::<String>().replace("##", "#")
        };
        let plain = number(message.split_once(", with").unwrap().0);
        let sentences = [
            format!(
                "it is read at k.cu:{read} by thread # of block # and written at k.cu:{write} by thread # of the same block"
            ),
            format!(
                "it is written at k.cu:{write} by thread # of block # and read at k.cu:{read} by thread # of the same block"
            ),
        ];
        let sentences = sentences.map(|text| number(&format!("race on element # of `s`: {text}")));
        assert!(sentences.contains(&plain), "{message}");

        let ran = go(launch("global_race", 4, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
        let found = ran.only(FindingKind::Race);
        assert_eq!((found.buffer.as_deref(), found.index, found.space), (Some("out"), Some(0), Some(Space::Global)));
        assert_eq!(
            (found.line.clone(), found.other_line.clone()),
            (wrong_line("race: blocks"), wrong_line("race: blocks"))
        );
        assert_eq!(found.count, 3);
        let line = found.line.as_ref().unwrap().1;
        let twice = |one, other| {
            format!(
                "it is written at k.cu:{line} by thread 0 of block {one} and at k.cu:{line} by thread 0 of block {other}, "
            )
        };
        assert!(found.message.contains(&twice(1, 0)), "{}", found.message);

        let ran = go(launch("read_outside", 3, 32, vec![ptr("x"), ptr("y"), int(64)]), &[x(), output("y", 1, 4)]);
        let found = ran.findings.iter().find(|f| f.kind == FindingKind::OutOfBounds).unwrap();
        assert_eq!((found.buffer.as_deref(), found.index), (Some("x"), Some(64)));
        assert_eq!((found.block, found.thread), (Some([2, 0, 0]), Some([0, 0, 0])));
        assert_eq!(found.line, wrong_line("outside: reads"));

        let ran = go(launch("write_outside", 1, 64, vec![ptr("out"), int(32)]), &[output("out", 32, 4)]);
        let found = ran.only(FindingKind::OutOfBounds);
        assert!(found.index.is_some_and(|i| (-3..0).contains(&i)), "{found:?}");
        assert_eq!((found.buffer.as_deref(), found.line.clone()), (Some("out"), wrong_line("outside: writes")));

        for at in [32, -1] {
            let ran = go(launch("static_outside", 1, 1, vec![ptr("y"), int(at)]), &[y()]);
            let found = ran.only(FindingKind::OutOfBounds);
            assert_eq!((found.index, found.line.clone()), (Some(at), wrong_line("outside: static")));
        }

        let mut dynamic = launch("dynamic_outside", 1, 1, vec![ptr("y"), int(16)]);
        dynamic.shared = 64;
        let ran = go(dynamic, &[y()]);
        let found = ran.only(FindingKind::OutOfBounds);
        assert_eq!((found.buffer.as_deref(), found.index, found.space), (Some("area"), Some(16), Some(Space::Shared)));
        assert_eq!(found.line, wrong_line("outside: dynamic"));

        let ran = go(launch("shared_unwritten", 1, 32, vec![ptr("y")]), &[y()]);
        let found = ran.only(FindingKind::Uninitialised);
        assert_eq!((found.buffer.as_deref(), found.index, found.count), (Some("never"), Some(3), 32));
        assert_eq!(found.line, wrong_line("unwritten: shared"));

        let ran = go(launch("output_unwritten", 1, 8, vec![ptr("y")]), &[y()]);
        let found = ran.only(FindingKind::Uninitialised);
        assert_eq!((found.buffer.as_deref(), found.count), (Some("y"), 8));
        assert_eq!(found.line, wrong_line("unwritten: output"));

        let ran = go(launch("divergent", 1, 32, vec![ptr("out")]), &[output("out", 1, 4)]);
        let found = ran.only(FindingKind::DivergentBarrier);
        assert_eq!((found.line.clone(), found.other_line.clone()), (wrong_line("divergent"), wrong_line("divergent")));
        assert!(found.message.contains("undefined in CUDA C++; it may work on hardware"), "{}", found.message);

        let ran = go(launch("left_early", 1, 64, vec![ptr("out")]), &[output("out", 64, 4)]);
        assert_eq!(ran.only(FindingKind::ExitedBeforeBarrier).line, wrong_line("left early"));
        assert_eq!(ran.ints("out")[..48], [1; 48]);

        let ran = go(launch("absent", 1, 20, vec![ptr("out")]), &[output("out", 20, 4)]);
        let found = ran.only(FindingKind::AbsentLane);
        assert_eq!((found.line.clone(), found.count), (wrong_line("absent"), 1));
        let said = "lane 4 reads lane 20 in the shuffle at ";
        assert!(
            found.message.starts_with(said) && found.message.contains("the block has no such lane"),
            "{}",
            found.message
        );

        let ran = go(launch("wrong_mask", 1, 32, vec![ptr("out")]), &[output("out", 32, 4)]);
        let found = ran.only(FindingKind::WarpMask);
        assert_eq!(found.line, wrong_line("wrong mask"));
        assert!(found.message.contains("lanes 16, 17"), "{}", found.message);

        let ran = go(launch("left_out", 1, 32, vec![ptr("out")]), &[output("out", 32, 4)]);
        assert_eq!(ran.only(FindingKind::WarpMask).line, wrong_line("left out"));

        let ran = go(launch("crooked", 1, 1, vec![ptr("x"), ptr("y")]), &[x(), y()]);
        let found = ran.only(FindingKind::Misaligned);
        assert_eq!(
            (found.buffer.as_deref(), found.index, found.line.clone()),
            (Some("x"), Some(1), wrong_line("crooked"))
        );

        let ran = go(launch("writes_input", 1, 4, vec![ptr("x")]), &[x()]);
        let found = ran.only(FindingKind::InputModified);
        assert_eq!((found.buffer.as_deref(), found.line.clone()), (Some("x"), wrong_line("writes input")));

        let ran = go(launch("null_pointer", 1, 8, vec![ptr("out"), long(0)]), &[output("out", 1, 4)]);
        // A signal would end it if its accesses were not watched.
        let found = ran.findings.iter().find(|f| f.kind == FindingKind::Crash).unwrap();
        assert_eq!(found.line, wrong_line("null"));
        assert!(found.message.contains("null pointer"), "{}", found.message);

        let ran = go(launch("spins_volatile", 1, 4, vec![ptr("out")]), &[ints("out", [0]).writable()]);
        assert_eq!(ran.only(FindingKind::NoProgress).line, wrong_line("spins volatile"));
    }
}

#[test]
fn a_plain_build_reports_what_the_process_itself_notices() {
    let built = build(WRONG, &WRONG_ENTRIES, false);
    let go = |launch, data: &[Data]| run(&built, launch, data);
    for how in [How::default(), How { guard_after: false, ..How::default() }] {
        let ran = run_with(
            &built,
            vec![launch("write_outside", 1, 8, vec![ptr("out"), int(1 << 20)])],
            &[output("out", 1024, 4)],
            &How { guard_after: false, ..how.clone() },
        );
        let found = ran.only(FindingKind::OutOfBounds);
        assert_eq!((found.buffer.as_deref(), found.index), (Some("out"), Some(-3)));
        assert_eq!(ran.done, 0);
    }
    let x = floats("x", (0..64).map(|i| i as f32));
    let ran = go(launch("read_outside", 3, 32, vec![ptr("x"), ptr("y"), int(64)]), &[x.clone(), output("y", 1, 4)]);
    let found = ran.only(FindingKind::OutOfBounds);
    assert_eq!((found.buffer.as_deref(), found.index), (Some("x"), Some(64)));
    assert_eq!(found.line, wrong_line("outside: reads"));
    let ran = go(launch("writes_input", 1, 4, vec![ptr("x")]), &[x]);
    assert_eq!(ran.only(FindingKind::InputModified).buffer.as_deref(), Some("x"));

    let ran = go(launch("null_pointer", 1, 8, vec![ptr("out"), long(0)]), &[output("out", 1, 4)]);
    let found = ran.only(FindingKind::Crash);
    assert_eq!((found.thread, found.line.clone()), (Some([5, 0, 0]), wrong_line("null")));
    assert_eq!(ran.done, 0, "a crashed trial does not end");

    let ran = go(launch("divergent", 1, 32, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.only(FindingKind::DivergentBarrier).line, wrong_line("divergent"));
    let ran = go(launch("left_early", 1, 64, vec![ptr("out")]), &[output("out", 64, 4)]);
    assert_eq!(ran.clean().ints("out")[..48], [1; 48]);
    let ran = go(launch("spins", 1, 4, vec![ptr("out")]), &[ints("out", [0]).writable()]);
    assert_eq!(ran.only(FindingKind::NoProgress).line, wrong_line("spins"));
    let ran = go(launch("asserts", 1, 1, vec![ptr("out"), int(1)]), &[output("out", 1, 4)]);
    let found = ran.only(FindingKind::Assertion);
    assert!(found.message.contains("n > 3"), "{}", found.message);
    assert_eq!(found.line, wrong_line("asserts"));
    let ran = go(launch("traps", 1, 2, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.only(FindingKind::Trap).thread, Some([1, 0, 0]));
    let ran = go(launch("divides", 1, 1, vec![ptr("out"), int(0)]), &[output("out", 1, 4)]);
    assert_eq!(ran.only(FindingKind::Crash).line, wrong_line("divides"));
}

const UNSUPPORTED: &str = r#"
#include <cuda_runtime.h>
__global__ void ptx(int *out) {
  if (out[0] == 1) asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); // ptx
  if (out[0] == 2) asm("bar.red.popc.u32 %0, 0, p;" : "=r"(out[1])); // plain asm
  out[3] = 4;
}
__global__ void deep(int *out, int n) {
  char local[200000];
  for (int i = 0; i < 200000; i += 1000) ((volatile char *)local)[i] = (char)n;
  out[0] = local[n * 1000]; // deep
}
"#;

#[test]
fn what_is_not_emulated_says_so_where_it_is_executed_and_only_there() {
    for check in [false, true] {
        let built = build(UNSUPPORTED, &["ptx", "deep"], check);
        for (first, want, mark) in [
            (1, "inline PTX: `wgmma.fence.sync.aligned`", "// ptx"),
            (2, "inline PTX: `bar.red.popc.u32`", "// plain asm"),
        ] {
            let ran = run(&built, launch("ptx", 1, 1, vec![ptr("out")]), &[ints("out", [first, 0, 0, 0]).writable()]);
            assert_eq!(ran.not_emulated, [format!("{want} at k.cu:{}", line_of(UNSUPPORTED, mark))]);
            assert!(ran.findings.is_empty());
        }
        let ran = run(&built, launch("ptx", 1, 1, vec![ptr("out")]), &[ints("out", [0, 0, 0, 0]).writable()]);
        assert_eq!(ran.clean().ints("out")[3], 4);
        if !check {
            let ran = run(&built, launch("deep", 1, 1, vec![ptr("out"), int(1)]), &[output("out", 1, 4)]);
            assert!(ran.not_emulated[0].contains("bytes of stack"), "{:?}", ran.not_emulated);
        }
    }
}

pub(super) const HIDDEN: &str = r#"
#include <cuda_runtime.h>
#include <cuda/atomic>
struct Row { float of[40]; };
__global__ void flag_late(int *out, int late) {
  __shared__ int flag, data;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 40) {
    if (!late) data = 9;
    __threadfence_block();
    if (late) data = 9;                                     // flag: writes
    atomicExch(&flag, 1);
  } else if (threadIdx.x == 3) {
    while (atomicAdd(&flag, 0) == 0) {}
    out[0] = data;                                          // flag: reads
  }
}
__global__ void flag_of_another(int *out, int mine) {
  __shared__ int flag, data;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 40) {
    data = 9;                                               // another: writes
    if (mine) __threadfence_block();
    atomicExch(&flag, 1);
  } else if (threadIdx.x == 41) {
    __threadfence_block();
  } else if (threadIdx.x == 3) {
    while (atomicAdd(&flag, 0) == 0) {}
    out[0] = data;                                          // another: reads
  }
}
__global__ void released(int *out, int relaxed) {
  __shared__ int flag, data;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> f(flag);
  if (threadIdx.x == 40) {
    data = 9;                                               // released: writes
    f.store(1, relaxed ? cuda::memory_order_relaxed : cuda::memory_order_release);
  } else if (threadIdx.x == 3) {
    while (f.load(cuda::memory_order_acquire) == 0) {}
    out[0] = data;                                          // released: reads
  }
}
__global__ void copied(const float *x, float *y, int n) {
  __shared__ float s[64];
  if (threadIdx.x == 0) memcpy(s, x, n);                    // copied: writes
  y[threadIdx.x] = s[threadIdx.x];                          // copied: reads
}
__global__ void copied_outside(const float *x, float *y, int n) {
  memcpy(y, x, n);                                          // copied outside
}
__global__ void filled(float *y, int n) {
  __shared__ float s[64];
  memset(s, 0, n);                                          // filled
  y[0] = s[0];
}
__global__ void rows(const Row *x, Row *y) {
  __shared__ Row s[2];
  s[threadIdx.x % 2] = x[0];                                // rows: writes
  y[threadIdx.x] = s[threadIdx.x / 2];                      // rows: reads
}
__global__ void moved(float *y, int n) {
  memmove(y + 1, y, n);                                     // moved
}
__global__ void spills(float *y, int by) {
  __shared__ float first[32];
  __shared__ float second[32];
  float *p = first, *q = second;
  q[threadIdx.x] = 1;
  p[threadIdx.x + by] = 2;                                  // spills
  __syncthreads();
  y[threadIdx.x] = second[31 - threadIdx.x] + first[threadIdx.x];
}
"#;

#[test]
fn a_flag_orders_what_its_fence_covers_and_nothing_else() {
    let built = build(HIDDEN, &["flag_late", "flag_of_another", "released"], true);
    for order in ORDERS {
        let how = How { order, threads: 1, ..How::default() };
        let go = |entry: &str, wrong: i64| {
            run_with(&built, vec![launch(entry, 1, 64, vec![ptr("out"), int(wrong)])], &[output("out", 1, 4)], &how)
        };
        for (entry, right, wrong, mark) in
            [("flag_late", 0, 1, "flag"), ("flag_of_another", 1, 0, "another"), ("released", 0, 1, "released")]
        {
            assert_eq!(go(entry, right).clean().ints("out"), [9], "{entry}");
            let ran = go(entry, wrong);
            let found = ran.only(FindingKind::Race);
            let line = |did: &str| Some(("k.cu".to_owned(), line_of(HIDDEN, &format!("// {mark}: {did}"))));
            assert_eq!((found.line.clone(), found.other_line.clone()), (line("reads"), line("writes")), "{entry}");
            assert_eq!(found.buffer.as_deref(), Some("data"));
        }
    }
}

#[test]
fn copies_fills_and_structs_are_watched_like_any_access() {
    let entries = ["copied", "copied_outside", "filled", "rows", "moved", "spills"];
    let built = build(HIDDEN, &entries, true);
    let line = |mark: &str| Some(("k.cu".to_owned(), line_of(HIDDEN, &format!("// {mark}"))));
    let x = || floats("x", (0..80).map(|i| i as f32));
    let how = How { threads: 1, ..How::default() };
    let go = |launch, data: &[Data]| run_with(&built, vec![launch], data, &how);

    let ran = go(launch("copied", 1, 64, vec![ptr("x"), ptr("y"), int(256)]), &[x(), output("y", 64, 4)]);
    let found = ran.only(FindingKind::Race);
    let mut places = [found.line.clone(), found.other_line.clone()];
    places.sort();
    assert_eq!(places, [line("copied: writes"), line("copied: reads")]);
    let ran = go(launch("copied", 1, 1, vec![ptr("x"), ptr("y"), int(256)]), &[x(), output("y", 64, 4)]);
    assert_eq!(ran.clean().floats("y")[0], 0.0);

    let outside = launch("copied_outside", 1, 1, vec![ptr("x"), ptr("y"), int(260)]);
    let ran = go(outside, &[x(), output("y", 64, 4)]);
    let found = ran.only(FindingKind::OutOfBounds);
    assert_eq!((found.buffer.as_deref(), found.line.clone()), (Some("y"), line("copied outside")));

    let ran = go(launch("filled", 1, 1, vec![ptr("y"), int(256)]), &[output("y", 64, 4)]);
    assert_eq!(ran.clean().floats("y")[0], 0.0);
    let ran = go(launch("filled", 1, 1, vec![ptr("y"), int(260)]), &[output("y", 64, 4)]);
    let found = ran.only(FindingKind::OutOfBounds);
    assert_eq!((found.buffer.as_deref(), found.line.clone()), (Some("s"), line("filled")));

    let ran = go(launch("rows", 1, 1, vec![ptr("x"), ptr("y")]), &[x(), output("y", 160, 4)]);
    assert_eq!(ran.clean().floats("y")[39], 39.0);
    let ran = go(launch("rows", 1, 4, vec![ptr("x"), ptr("y")]), &[x(), output("y", 160, 4)]);
    assert!(ran.findings.iter().any(|f| f.kind == FindingKind::Race && f.buffer.as_deref() == Some("s")));

    let moved = launch("moved", 1, 1, vec![ptr("y"), int(16)]);
    let ran = go(moved, &[output("y", 64, 4)]);
    let found = ran.only(FindingKind::Uninitialised);
    assert_eq!((found.buffer.as_deref(), found.line.clone()), (Some("y"), line("moved")));

    let spill = |by| go(launch("spills", 1, 32, vec![ptr("y"), int(by)]), &[output("y", 32, 4)]);
    assert_eq!(spill(0).clean().floats("y"), [3.0; 32]);
    for by in [1, 32] {
        let ran = spill(by);
        let found = ran.only(FindingKind::OutOfBounds);
        assert_eq!((found.space, found.line.clone()), (Some(Space::Shared), line("spills")));
    }
}
