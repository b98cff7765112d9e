//! Plain reads before an atomic operation on the same word: no race by themselves. The racy twin of each kernel is found.

use kforge::record::FindingKind;

use super::ORDERS;
use super::harness::*;

const LOOKS: &str = r#"
#include <cuda_runtime.h>
// The CUDA C++ Programming Guide's own addition of doubles.
__device__ double add(double *address, double val) {
  unsigned long long int *address_as_ull = (unsigned long long int *)address;
  unsigned long long int old = *address_as_ull, assumed;
  do {
    assumed = old;
    old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
__global__ void doubles(const int *x, double *sum, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) add(sum, x[i]);
}
__global__ void largest(const int *x, int *most, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (*most < x[i]) atomicMax(most, x[i]);
}
__global__ void largest_by_block(const int *x, int *most, int n) {
  __shared__ int own;
  if (threadIdx.x == 0) own = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (own < x[i]) atomicMax(&own, x[i]);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(most, own);
}
// One lane of a warp operates, after others have read the word.
__global__ void largest_by_vote(const int *x, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int mine = i < n ? x[i] : 0;
  unsigned better = __ballot_sync(~0u, *most < mine);
  for (; better; better &= better - 1) {
    int from = __ffs(better) - 1, value = __shfl_sync(~0u, mine, from);
    if (threadIdx.x % 32 == from) atomicMax(most, value);
  }
}
// All lanes look, and one of them operates for the warp, which only some warps do.
__global__ void largest_of_warp(const int *x, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int mine = i < n ? x[i] : 0;
  if (__any_sync(~0u, *most < mine)) {
    int best = __reduce_max_sync(~0u, mine);
    if (threadIdx.x % 32 == 0) atomicMax(most, best);
  }
}
// The lane that operates is not one that looks.
__global__ void largest_by_other(const int *x, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int mine = i < n ? x[i] : 0, lane = threadIdx.x % 32;
  bool better = lane >= 16 && *most < mine;
  unsigned which = __ballot_sync(~0u, better);
  int best = __reduce_max_sync(~0u, better ? mine : 0);
  if (which && lane == 0) atomicCAS(most, 0, best), atomicMax(most, best);
}
// One lane looks, and the others operate.
__global__ void largest_by_shuffle(const int *x, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, seen = 0;
  if (threadIdx.x % 32 == 0) seen = *most;
  seen = __shfl_sync(~0u, seen, 0);
  int mine = i < n ? x[i] : 0;
  if (threadIdx.x % 32 != 0 && seen < mine) atomicMax(most, mine);
}
__global__ void largest_by_shared(const int *x, int *most, int n) {
  __shared__ int seen[2], own;
  int i = blockIdx.x * blockDim.x + threadIdx.x, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) own = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 31) seen[warp] = own;
  __syncwarp();
  int mine = i < n ? x[i] : 0, best = __reduce_max_sync(~0u, mine);
  if (threadIdx.x % 32 == 5 && seen[warp] < best) atomicMax(&own, best);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(most, own);
}
__global__ void flags_of_warp(const int *x, unsigned *flags) {
  unsigned bit = 1u << x[blockIdx.x * blockDim.x + threadIdx.x] % 32;
  if (!__all_sync(~0u, *flags & bit)) {
    unsigned bits = __reduce_or_sync(~0u, bit);
    if (threadIdx.x % 32 == 31) atomicOr(flags, bits);
  }
}
__global__ void test_and_set(int *lock, int *count) {
  for (bool done = false; !done;) {
    if (*lock == 0 && atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *count = *count + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    } else {
      __nanosleep(20);
    }
  }
}
__global__ void relax(const int *from, const int *to, const int *before, int *dist, int *changed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int far = before[from[i]] + 1;
    if (far < dist[to[i]]) {
      atomicMin(&dist[to[i]], far);
      atomicOr(changed, 1);
    }
  }
}
__global__ void lock_of_block(int *count) {
  __shared__ int lock, own;
  if (threadIdx.x == 0) lock = own = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    for (;;) {
      while (*(volatile int *)&lock) {}
      if (atomicCAS(&lock, 0, 1) == 0) break;
    }
    __threadfence_block();
    own = own + 1;
    __threadfence_block();
    atomicExch(&lock, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) count[blockIdx.x] = own;
}
// Wrong: what is read is used, and nothing orders it.
__global__ void early_sum(const int *x, int *sum, int *out) {
  atomicAdd(sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = *sum; // early
}
__global__ void spins(int *flag, int *out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) atomicExch(flag, 1); // sets
  if (blockIdx.x == 1 && threadIdx.x == 0) {
    for (int i = 0; i < 1000 && *flag == 0; ++i) __nanosleep(20); // spins
    out[0] = 1;
  }
}
__global__ void plain_largest(const int *x, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && *most < x[i]) *most = x[i]; // stores
}
// Wrong: the look conflicts with a plain write.
__global__ void cleared(const int *x, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == n) *most = 0; // clears
  if (i < n && *most < x[i]) atomicMax(most, x[i]);
}
// Wrong: the word that is read is not the one that is changed.
__global__ void relax_in_place(const int *from, const int *to, int *dist, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int far = dist[from[i]] + 1; // other word
    atomicMin(&dist[to[i]], far);
  }
}
// Wrong: one place looks, another only reads.
__global__ void both(const int *x, int *most, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && *most < x[i]) atomicMax(most, x[i]);
  if (i == n) out[0] = *most; // only reads
}
// Wrong: the ticket is stale once another thread takes it.
__global__ void ticket(const int *x, int *next, int *out) {
  int slot = *next; // ticket
  atomicAdd(next, 1);
  out[slot % 4] = x[slot % 4];
}
// Wrong: two threads may see a free lock.
__global__ void lock_unasked(int *lock, int *out) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1000 && *lock != 0; ++i) __nanosleep(20); // free
    atomicExch(lock, 1);
    out[blockIdx.x] = 1;
    atomicExch(lock, 0);
  }
}
// Wrong: one lane takes the ticket that all of its warp have read.
__global__ void ticket_of_warp(const int *x, int *next, int *out) {
  int slot = *next; // ticket of warp
  if (__any_sync(~0u, slot >= 0) && threadIdx.x % 32 == 0) atomicAdd(next, 1);
  out[slot % 4] = x[slot % 4];
}
// Wrong: one lane asks for its warp, and another one takes the lock.
__global__ void lock_of_warp(int *lock, int *out) {
  int taken = 1, lane = threadIdx.x % 32;
  for (int i = 0; i < 100 && taken; ++i) {
    if (lane == 0) taken = *lock; // asks for the warp
    taken = __shfl_sync(~0u, taken, 0);
  }
  if (lane == 1) {
    atomicExch(lock, 1);
    out[threadIdx.x / 32] = 1;
    atomicExch(lock, 0);
  }
}
// Wrong: the lanes that read have not met the one that operates.
__global__ void unmet(const int *x, int *most, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 == 0) atomicMax(most, x[i]);
  else if (threadIdx.x % 32 == 1) out[i / 32 % 4] = *most; // unmet
}
// Wrong: only the upper half of the warp has met, and a lane of the lower half operates.
__global__ void half_of_warp(const int *x, int *most, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  if (lane >= 16) {
    int seen = *most; // upper half
    int any = __any_sync(0xffff0000u, seen < x[i]);
    if (lane == 16) out[i / 32 % 4] = any;
  } else if (__any_sync(0x0000ffffu, x[i] > 0) && lane == 0) {
    atomicMax(most, x[i]);
  }
}
// Wrong: they read after they met.
__global__ void afterwards(const int *x, int *most, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int best = __reduce_max_sync(~0u, x[i]);
  if (threadIdx.x % 32 == 0) atomicMax(most, best);
  __syncwarp();
  if (threadIdx.x % 32 == 1) out[i / 32 % 4] = *most; // afterwards
}
// Wrong: the warp operates on another word than the one that it read.
__global__ void other_word_of_warp(const int *x, int *both, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, which = i / 32 % 2;
  int seen = both[1 - which]; // other word of warp
  int best = __reduce_max_sync(~0u, seen < x[i] ? x[i] : 0);
  if (threadIdx.x % 32 == 0) atomicMax(&both[which], best);
}
// Wrong: the warps that read do not operate, and those that operate do not read.
__global__ void other_warp(const int *x, int *most, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i / 32 % 2) {
    bool more = __any_sync(~0u, *most < x[i]); // other warp
    if (threadIdx.x % 32 == 0) out[blockIdx.x] = more;
  } else {
    int best = __reduce_max_sync(~0u, x[i]);
    if (threadIdx.x % 32 == 0) atomicMax(most, best);
  }
}
// Wrong: the block's barrier does not order what other blocks do.
__global__ void long_ago(const int *x, int *most) {
  int seen = *most; // long ago
  __syncthreads();
  int mine = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (seen < mine) atomicMax(most, mine);
}
"#;

const ENTRIES: [&str; 28] = [
    "largest_of_warp",
    "largest_by_other",
    "largest_by_shuffle",
    "largest_by_shared",
    "flags_of_warp",
    "ticket_of_warp",
    "lock_of_warp",
    "unmet",
    "half_of_warp",
    "afterwards",
    "other_word_of_warp",
    "other_warp",
    "doubles",
    "largest",
    "largest_by_block",
    "largest_by_vote",
    "test_and_set",
    "relax",
    "early_sum",
    "relax_in_place",
    "lock_of_block",
    "spins",
    "plain_largest",
    "cleared",
    "both",
    "long_ago",
    "ticket",
    "lock_unasked",
];

/// Values in an order in which every maximum so far is often exceeded.
fn values(count: usize) -> impl Iterator<Item = i32> {
    (0..count as i32).map(move |i| (i * 37) % (count as i32 + 1))
}

#[test]
#[ignore = "second tier: many sources"]
fn a_plain_read_before_an_atomic_operation_on_the_word_is_no_race() {
    let built = build(LOOKS, &ENTRIES, true);
    for order in ORDERS {
        let how = How { order, ..How::default() };
        let run = |entry: &str, grid, args, data: &[Data]| {
            run_with(&built, vec![launch(entry, grid, 64, args)], data, &how).clean()
        };
        let x = ints("x", values(256));
        let most = || ints("most", [0]).writable();
        let want = values(256).max().unwrap();
        for entry in ["largest", "largest_by_block", "largest_by_vote"] {
            let ran = run(entry, 4, vec![ptr("x"), ptr("most"), int(256)], &[x.clone(), most()]);
            assert_eq!(ran.ints("most"), [want], "{entry}");
        }
        let sum = Data { name: "sum", bytes: vec![0; 8], element: 8, writable: true, poisoned: false };
        let ran = run("doubles", 2, vec![ptr("x"), ptr("sum"), int(256)], &[x.clone(), sum]);
        let total = values(256).map(f64::from).sum::<f64>();
        assert_eq!(ran.buffers["sum"], total.to_le_bytes());
        let word = |name| ints(name, [0]).writable();
        let ran = run("test_and_set", 3, vec![ptr("lock"), ptr("count")], &[word("lock"), word("count")]);
        assert_eq!(ran.ints("count"), [192]);
        let from = ints("from", (0..128).map(|i| i % 16));
        let to = ints("to", (0..128).map(|i| (i * 7 + 1) % 16));
        let dist = ints("dist", (0..16).map(|i| if i == 0 { 0 } else { 1000 })).writable();
        let before = Data { name: "before", writable: false, ..dist.clone() };
        let args = vec![ptr("from"), ptr("to"), ptr("before"), ptr("dist"), ptr("changed"), int(128)];
        let ran = run("relax", 2, args, &[from, to, before, dist, word("changed")]);
        assert_eq!((ran.ints("dist")[0], ran.ints("dist")[1], ran.ints("changed")[0]), (0, 1, 1));
        let ran = run("lock_of_block", 2, vec![ptr("count")], &[output("count", 2, 4)]);
        assert_eq!(ran.ints("count"), [2, 2]);
    }
}

#[test]
#[ignore = "second tier: many sources"]
fn a_plain_read_before_an_atomic_operation_of_a_lane_that_met_the_reader_is_no_race() {
    let built = build(LOOKS, &ENTRIES, true);
    let kernels = ["largest_of_warp", "largest_by_other", "largest_by_shuffle", "largest_by_shared"];
    for order in ORDERS {
        for threads in [1, 2] {
            let how = How { order, threads, ..How::default() };
            // With the largest value anywhere, so that few or many warps operate.
            for first in [0, 40, 130] {
                let x: Vec<i32> = (0..256).map(|i| if i == first { 5000 } else { (i * 37) % 257 }).collect();
                for entry in kernels {
                    let args = vec![ptr("x"), ptr("most"), int(256)];
                    let data = [ints("x", x.clone()), ints("most", [0]).writable()];
                    let ran = run_with(&built, vec![launch(entry, 4, 64, args)], &data, &how);
                    assert!(ran.findings.is_empty(), "{entry} {order:?} {first} {:#?}", ran.findings);
                    let all = entry != "largest_by_shuffle" || first != 0;
                    let all = all && (entry != "largest_by_other" || first % 32 >= 16);
                    assert!(!all || ran.ints("most") == [5000], "{entry} {order:?} {first}");
                }
            }
            let args = vec![ptr("x"), ptr("flags")];
            let data = [ints("x", values(256)), ints("flags", [0]).writable()];
            let ran = run_with(&built, vec![launch("flags_of_warp", 4, 64, args)], &data, &how).clean();
            assert_eq!(ran.ints("flags"), [-1]);
        }
    }
}

#[test]
fn a_read_of_what_others_change_atomically_is_a_race_unless_it_was_a_look() {
    let built = build(LOOKS, &ENTRIES, true);
    let x = || ints("x", values(512));
    let most = || ints("most", [0]).writable();
    let out = || ints("out", [0; 4]).writable();
    let line = |mark: &str| format!("k.cu:{}", line_of(LOOKS, mark));
    for order in ORDERS {
        // On one core, so that the same accesses meet each time: the last two reads of a word are remembered.
        let how = How { order, threads: 1, ..How::default() };
        let races = |entry: &str, grid, args, data: &[Data], mark: &str| {
            let ran = run_with(&built, vec![launch(entry, grid, 64, args)], data, &how);
            let here = line(mark);
            let at = |line: &Option<(String, u32)>| line.as_ref().is_some_and(|(f, l)| format!("{f}:{l}") == here);
            let found = ran.findings.iter().find(|f| f.kind == FindingKind::Race && (at(&f.line) || at(&f.other_line)));
            assert!(found.is_some(), "{entry} {order:?} {:#?}", ran.findings);
            ran
        };
        let sum = ints("sum", [0]).writable();
        races("early_sum", 2, vec![ptr("x"), ptr("sum"), ptr("out")], &[x(), sum, out()], "// early");
        let from = ints("from", (0..128).map(|i| i % 16));
        let to = ints("to", (0..128).map(|i| (i * 7 + 1) % 16));
        let dist = ints("dist", [0; 16]).writable();
        let args = vec![ptr("from"), ptr("to"), ptr("dist"), int(128)];
        races("relax_in_place", 2, args, &[from, to, dist], "// other word");
        let flag = ints("flag", [0]).writable();
        races("spins", 2, vec![ptr("flag"), ptr("out")], &[flag, out()], "// spins");
        races("plain_largest", 2, vec![ptr("x"), ptr("most"), int(128)], &[x(), most()], "// stores");
        races("cleared", 2, vec![ptr("x"), ptr("most"), int(100)], &[x(), most()], "// clears");
        let args = vec![ptr("x"), ptr("most"), ptr("out"), int(100)];
        let ran = races("both", 2, args, &[x(), most(), out()], "// only reads");
        assert_eq!(ran.findings.len(), 1, "the look itself is no race: {:#?}", ran.findings);
        races("long_ago", 2, vec![ptr("x"), ptr("most")], &[x(), most()], "// long ago");
        let next = || ints("next", [0]).writable();
        races("ticket", 2, vec![ptr("x"), ptr("next"), ptr("out")], &[x(), next(), out()], "// ticket");
        for (entry, mark) in [
            ("ticket_of_warp", "// ticket of warp"),
            ("unmet", "// unmet"),
            ("half_of_warp", "// upper half"),
            ("afterwards", "// afterwards"),
            ("other_warp", "// other warp"),
        ] {
            let args = vec![ptr("x"), ptr("next"), ptr("out")];
            races(entry, 2, args, &[x(), next(), out()], mark);
        }
        let both = ints("both", [0, 0]).writable();
        races(
            "other_word_of_warp",
            2,
            vec![ptr("x"), ptr("both"), ptr("out")],
            &[x(), both, out()],
            "// other word of warp",
        );
        races("lock_of_warp", 2, vec![ptr("next"), ptr("out")], &[next(), out()], "// asks for the warp");
        races("lock_unasked", 2, vec![ptr("next"), ptr("out")], &[next(), out()], "// free");
    }
}

const READ_ONLY: &str = r#"
#include <cuda_runtime.h>
#include <cooperative_groups.h>
__global__ void ordered(const float *x, float *room, float *y) {
  const int t = threadIdx.x;
  room[t] = x[t]; // writes
  __syncthreads();
  y[t] = READ; // reads
}
__global__ void first(const float *x, float *room) { room[threadIdx.x] = x[threadIdx.x]; }
__global__ void second(const float *room, float *y) { y[threadIdx.x] = __ldg(room + 63 - threadIdx.x); }
__global__ void in_place(float *y) { y[threadIdx.x] = 2 * __ldg(y + threadIdx.x); }
__global__ void other_half(const float4 *x, float4 *room, float *y) {
  if (threadIdx.x >= 32) room[threadIdx.x - 32] = x[threadIdx.x - 32];
  __syncthreads();
  float4 v = threadIdx.x < 32 ? __ldg(x + threadIdx.x) : room[threadIdx.x - 32];
  y[threadIdx.x] = v.x + v.w;
}
"#;

#[test]
fn a_read_through_the_read_only_cache_of_what_the_launch_wrote_is_reported() {
    let entries = ["ordered", "first", "second", "in_place", "other_half"];
    let x = || floats("x", (0..256).map(|i| i as f32));
    let room = || output("room", 256, 4);
    let y = || output("y", 64, 4);
    let ptx = r#"[&] { float v; asm("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(room + 63 - t)); return v; }()"#;
    for (read, stale) in [("__ldg(room + 63 - t)", true), (ptx, true), ("room[63 - t]", false)] {
        let text = READ_ONLY.replace("READ", read);
        let built = build(&text, &entries, true);
        let args = vec![ptr("x"), ptr("room"), ptr("y")];
        let ran = run(&built, launch("ordered", 1, 64, args), &[x(), room(), y()]);
        if !stale {
            ran.clean();
            continue;
        }
        let found = ran.only(FindingKind::StaleRead);
        let line = |mark| Some(("k.cu".to_string(), line_of(&text, mark)));
        assert_eq!((found.line.clone(), found.other_line.clone()), (line("// reads"), line("// writes")));
        assert!(found.message.contains("`room` is read through the read-only cache"), "{}", found.message);

        let launches = vec![
            launch("first", 1, 64, vec![ptr("x"), ptr("room")]),
            launch("second", 1, 64, vec![ptr("room"), ptr("y")]),
        ];
        let ran = run_with(&built, launches, &[x(), room(), y()], &How::default()).clean();
        assert_eq!(ran.floats("y"), (0..64).map(|i| (63 - i) as f32).collect::<Vec<_>>());
        let both = floats("y", (0..64).map(|i| i as f32)).writable();
        let ran = run(&built, launch("in_place", 1, 64, vec![ptr("y")]), &[both]).clean();
        assert_eq!(ran.floats("y"), (0..64).map(|i| 2.0 * i as f32).collect::<Vec<_>>());
        let args = vec![ptr("x"), ptr("room"), ptr("y")];
        let ran = run(&built, launch("other_half", 1, 64, args), &[x(), room(), y()]).clean();
        assert_eq!(ran.floats("y")[33], 4.0 + 7.0);
    }
}
