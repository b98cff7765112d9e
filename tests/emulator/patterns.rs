//! Correct kernels that share data by atomic operations, fences and polls, as they are written in practice: no finding in any order of threads. From each, one
//! line is taken or changed, and the race is found.

use kforge::record::FindingKind;

use super::ORDERS;
use super::harness::*;

/// A kernel `k(x, y, room, n)`: `x` has `n` numbers, `y` and `room` are zero before. With it, each change (a text and what replaces it) that makes it racy.
struct Pattern {
    name: &'static str,
    text: &'static str,
    want: fn(&[i32]) -> Vec<i32>,
    racy: &'static [(&'static str, &'static str)],
}

const PATTERNS: [Pattern; 12] = [
    Pattern {
        name: "a histogram with a copy for each block",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  __shared__ int own[16];
  if (threadIdx.x < 16) own[threadIdx.x] = 0;
  __syncthreads(); // Set.
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[x[i] & 15], 1);
  __syncthreads(); // Counted.
  if (threadIdx.x < 16 && own[threadIdx.x] > 0) atomicAdd(&y[threadIdx.x], own[threadIdx.x]);
}
"#,
        want: |x| (0..16).map(|bin| x.iter().filter(|v| **v & 15 == bin).count() as i32).collect(),
        racy: &[
            ("__syncthreads(); // Set.", ""),
            ("__syncthreads(); // Counted.", ""),
            ("atomicAdd(&own[x[i] & 15], 1)", "++own[x[i] & 15]"),
            ("atomicAdd(&y[threadIdx.x], own[threadIdx.x])", "y[threadIdx.x] += own[threadIdx.x]"),
        ],
    },
    Pattern {
        name: "a counter that saturates, with a look before each step",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int *p = &y[x[i] & 15], old = *p;
    while (old < 5) {
      int seen = atomicCAS(p, old, old + 1);
      if (seen == old) break;
      old = seen;
    }
  }
}
"#,
        want: |x| (0..16).map(|bin| x.iter().filter(|v| **v & 15 == bin).count().min(5) as i32).collect(),
        racy: &[("int seen = atomicCAS(p, old, old + 1);", "int seen = old; *p = old + 1;")],
    },
    Pattern {
        name: "a table of keys with open addressing",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int key = (x[i] & 15) + 1;
    for (int at = key * 7 & 31;; at = (at + 1) & 31) {
      int found = room[at];
      if (found == 0) found = atomicCAS(&room[at], 0, key);
      if (found == 0) atomicAdd(&y[key - 1], 1);
      if (found == 0 || found == key) break;
    }
  }
}
"#,
        want: |x| (0..16).map(|bin| i32::from(x.iter().any(|v| v & 15 == bin))).collect(),
        racy: &[("found = atomicCAS(&room[at], 0, key);", "room[at] = key;")],
    },
    Pattern {
        name: "the last block sums the parts of all",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  __shared__ bool last;
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
  if (threadIdx.x % 32 == 0) atomicAdd(&room[1 + blockIdx.x], sum);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence(); // Gives.
    last = atomicAdd(&room[0], 1) == gridDim.x - 1;
  }
  __syncthreads(); // Told.
  if (last && threadIdx.x == 0) {
    __threadfence();
    for (int b = 0; b < gridDim.x; ++b) y[0] += room[1 + b];
  }
}
"#,
        want: |x| vec![x.iter().sum()],
        racy: &[("__threadfence(); // Gives.", ""), ("__syncthreads(); // Told.", "")],
    },
    Pattern {
        name: "all threads fence, and one counts after a barrier",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  __shared__ bool last;
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  room[1 + at] = x[at];
  __threadfence(); // Gives.
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&room[0], 1) == gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) y[0] += room[1 + i];
  }
}
"#,
        want: |x| vec![x.iter().sum()],
        racy: &[
            ("__threadfence(); // Gives.", ""),
            ("__threadfence(); // Gives.", "__threadfence_block();"),
            ("room[1 + at] = x[at];\n  __threadfence(); // Gives.", "__threadfence();\n  room[1 + at] = x[at];"),
        ],
    },
    Pattern {
        name: "one counts by an operation that releases after a barrier",
        text: r#"
#include <cuda/atomic>
__global__ void k(const int *x, int *y, int *room, int n) {
  __shared__ bool last;
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  room[1 + at] = x[at];
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<int, cuda::thread_scope_device> count(room[0]);
    // None.
    last = count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) y[0] += room[1 + i];
  }
}
"#,
        want: |x| vec![x.iter().sum()],
        racy: &[
            ("memory_order_acq_rel", "memory_order_acquire"),
            ("memory_order_acq_rel", "memory_order_relaxed"),
            (
                "// None.\n    last = count.fetch_add(1, cuda::memory_order_acq_rel)",
                "cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);\n    last = count.fetch_add(1, cuda::memory_order_relaxed)",
            ),
        ],
    },
    Pattern {
        name: "a barrier of the grid that asks by an atomic operation",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  room[1 + blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(room, 1);
  }
  while (atomicAdd(room, 0) < gridDim.x) {}
  __threadfence();
  __syncthreads();
  int from = ((blockIdx.x + 1) % gridDim.x) * blockDim.x + threadIdx.x;
  y[blockIdx.x * blockDim.x + threadIdx.x] = room[1 + from];
}
"#,
        want: |x| (0..256).map(|i| x[(i + 64) % 256]).collect(),
        racy: &[("while (atomicAdd(room, 0) < gridDim.x) {}", "")],
    },
    Pattern {
        name: "a barrier of the grid",
        text: r#"
__device__ void meet(int *arrived, int blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence(); // Gives.
    atomicAdd(arrived, 1);
    while (*(volatile int *)arrived < blocks) {}
    __threadfence();
  }
  __syncthreads(); // Goes on.
}
__global__ void k(const int *x, int *y, int *room, int n) {
  room[1 + blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  meet(room, gridDim.x);
  int from = ((blockIdx.x + 1) % gridDim.x) * blockDim.x + threadIdx.x;
  y[blockIdx.x * blockDim.x + threadIdx.x] = room[1 + from];
}
"#,
        want: |x| (0..256).map(|i| x[(i + 64) % 256]).collect(),
        racy: &[
            ("__threadfence(); // Gives.", ""),
            ("__syncthreads(); // Goes on.", ""),
            ("*(volatile int *)arrived < blocks", "false"),
        ],
    },
    Pattern {
        name: "a running sum that looks back",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  __shared__ int s[64], before, ticket;
  int *flags = room + 1, *sums = room + 65;
  if (threadIdx.x == 0) ticket = atomicAdd(room, 1);
  __syncthreads();
  const int block = ticket, t = threadIdx.x;
  s[t] = x[block * 64 + t];
  __syncthreads();
  for (int by = 1; by < 64; by *= 2) {
    int more = t >= by ? s[t - by] : 0;
    __syncthreads();
    s[t] += more;
    __syncthreads();
  }
  if (t == 0) {
    before = 0;
    if (block > 0) {
      while (atomicAdd(&flags[block - 1], 0) == 0) __nanosleep(20);
      __threadfence();
      before = sums[block - 1];
    }
    sums[block] = before + s[63];
    __threadfence(); // Gives.
    atomicExch(&flags[block], 1);
  }
  __syncthreads(); // Told.
  y[block * 64 + t] = before + s[t];
}
"#,
        want: |x| {
            x.iter()
                .scan(0, |sum, v| {
                    *sum += v;
                    Some(*sum)
                })
                .collect()
        },
        racy: &[
            ("__threadfence(); // Gives.", ""),
            ("__syncthreads(); // Told.", ""),
            ("atomicAdd(&flags[block - 1], 0) == 0", "flags[block - 1] == 0"),
        ],
    },
    Pattern {
        name: "a lock that spins",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  for (bool done = false; !done;) {
    if (atomicExch(room, 1) == 0) { // Takes.
      __threadfence();
      y[0] = y[0] + x[blockIdx.x * blockDim.x + threadIdx.x];
      __threadfence(); // Gives.
      atomicExch(room, 0);
      done = true;
    }
  }
}
"#,
        want: |x| vec![x.iter().sum()],
        racy: &[("__threadfence(); // Gives.", ""), ("atomicExch(room, 1) == 0", "true")],
    },
    Pattern {
        name: "numbers that are kept, in any order, by warps",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  bool keep = i < n && x[i] % 3 == 0;
  unsigned kept = __ballot_sync(~0u, keep);
  int from = 0;
  if (lane == 0 && kept) from = atomicAdd(room, __popc(kept));
  from = __shfl_sync(~0u, from, 0);
  if (keep) atomicAdd(&y[0], room[1 + from + __popc(kept & ((1u << lane) - 1))] = x[i]);
}
"#,
        want: |x| vec![x.iter().filter(|v| **v % 3 == 0).sum()],
        racy: &[
            ("from = __shfl_sync(~0u, from, 0);", ""),
            ("from = atomicAdd(room, __popc(kept))", "from = *room, *room += __popc(kept)"),
        ],
    },
    Pattern {
        name: "a queue that one warp fills and another empties",
        text: r#"
__global__ void k(const int *x, int *y, int *room, int n) {
  __shared__ int slots[4], filled, taken;
  if (threadIdx.x == 0) filled = taken = 0;
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) {
      while (i - atomicAdd(&taken, 0) >= 4) {}
      slots[i % 4] = x[i];
      __threadfence_block(); // Gives.
      atomicAdd(&filled, 1);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 32) {
    int sum = 0;
    for (int i = 0; i < n; ++i) {
      while (atomicAdd(&filled, 0) <= i) {}
      __threadfence_block();
      sum += slots[i % 4];
      __threadfence_block(); // Gives back.
      atomicAdd(&taken, 1);
    }
    y[0] = sum;
  }
}
"#,
        want: |x| vec![x.iter().sum()],
        racy: &[("__threadfence_block(); // Gives.", ""), ("__threadfence_block(); // Gives back.", "")],
    },
];

fn checked(text: &str) -> Built {
    build(&format!("#include <cuda_runtime.h>\n{text}"), &["k"], true)
}

fn ran(built: &Built, how: &How, x: &[i32]) -> Ran {
    let data = [ints("x", x.iter().copied()), ints("y", [0; 256]).writable(), ints("room", [0; 257]).writable()];
    let args = vec![ptr("x"), ptr("y"), ptr("room"), int(256)];
    run_with(built, vec![launch("k", 4, 64, args)], &data, how)
}

fn numbers() -> Vec<i32> {
    (0..256).map(|i| i * 37 % 101).collect()
}

#[test]
#[ignore = "second tier: compiles many kernels"]
fn kernels_that_share_by_atomic_operations_pass() {
    let x = numbers();
    for Pattern { name, text, want, .. } in PATTERNS {
        let built = checked(text);
        for order in ORDERS {
            let ran = ran(&built, &How { order, ..How::default() }, &x);
            assert!(ran.findings.is_empty(), "{name} {order:?} {:#?}", ran.findings);
            let want = want(&x);
            assert_eq!(ran.ints("y")[..want.len()], want, "{name} {order:?}");
        }
    }
}

#[test]
#[ignore = "second tier: a source for each mistake"]
fn each_of_them_races_without_one_of_its_lines() {
    let x = numbers();
    for Pattern { name, text, racy, .. } in PATTERNS {
        for (from, to) in racy {
            assert!(text.contains(from), "{name}: {from}");
            let built = checked(&text.replace(from, to));
            let found = ORDERS.iter().any(|order| {
                let how = How { order: *order, threads: 1, ..How::default() };
                ran(&built, &how, &x).findings.iter().any(|f| f.kind == FindingKind::Race)
            });
            assert!(found, "{name} without `{from}`");
        }
    }
}
