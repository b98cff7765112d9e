//! Accesses of PTX with an order or a part that is left out: volatile, relaxed and released words in shared memory, vectors that are used in part, and copies that
//! read less than they write. Each mistake beside them is found.

use kforge::record::{Finding, FindingKind};

use super::ORDERS;
use super::harness::*;

const HEAD: &str = r#"
#include <cuda_runtime.h>
#define ADDRESS(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
"#;
const FLAGS: &str = r#"
__global__ void NAME(int *out, int *flag_of_all) {
  __shared__ int data, own_flag;
  if (threadIdx.x == 0) own_flag = 0;
  __syncthreads();
  int *flag = FLAG;
  if (threadIdx.x == 0) {
    data = 42; // gives
    BEFORE
    SET
  }
  if (threadIdx.x == 40) {
    int seen;
    do { GET } while (seen == 0); // polls
    AFTER
    out[0] = data; // takes
  }
}
"#;

/// How a flag is set and read, without and with the fences that make it hand over.
const VOLATILE: [&str; 2] = [
    r#"asm volatile("st.volatile.SPACE.u32 [%0], %1;" ::AT, "r"(1) : "memory");"#,
    r#"asm volatile("ld.volatile.SPACE.u32 %0, [%1];" : "=r"(seen) : AT : "memory");"#,
];
const RELAXED: [&str; 2] = [
    r#"asm volatile("st.relaxed.cta.SPACE.u32 [%0], %1;" ::AT, "r"(1) : "memory");"#,
    r#"asm volatile("ld.relaxed.cta.SPACE.u32 %0, [%1];" : "=r"(seen) : AT : "memory");"#,
];
const RELEASED: [&str; 2] = [
    r#"asm volatile("st.release.cta.SPACE.u32 [%0], %1;" ::AT, "r"(1) : "memory");"#,
    r#"asm volatile("ld.acquire.cta.SPACE.u32 %0, [%1];" : "=r"(seen) : AT : "memory");"#,
];
const CPP: [&str; 2] = ["*(volatile int *)flag = 1;", "seen = *(volatile int *)flag;"];

/// A flag that a kernel of its own sets and reads.
#[derive(Clone, Copy, Debug)]
struct Flag {
    way: [&'static str; 2],
    fences: bool,
    global: bool,
}

impl Flag {
    fn kernel(&self, name: &str) -> String {
        let [set, get] = self.way;
        let fence = if self.fences { "__threadfence_block();" } else { "" };
        let (flag, space, address) = match self.global {
            true => ("flag_of_all", "global", "\"l\"(flag)"),
            false => ("&own_flag", "shared", "\"r\"(ADDRESS(flag))"),
        };
        let text = FLAGS.replace("NAME", name).replace("SET", set).replace("GET", get).replace("FLAG", flag);
        text.replace("BEFORE", fence).replace("AFTER", fence).replace("SPACE", space).replace("AT", address)
    }
}

/// What each flag's kernel does in each order of threads.
fn flags(all: &[Flag], check: bool) -> Vec<(Flag, Vec<Ran>)> {
    let names: Vec<String> = (0..all.len()).map(|i| format!("k{i}")).collect();
    let kernels: String = all.iter().zip(&names).map(|(flag, name)| flag.kernel(name)).collect();
    let entries: Vec<&str> = names.iter().map(String::as_str).collect();
    let built = build(&format!("{HEAD}{kernels}"), &entries, check);
    let data = || [output("out", 1, 4), ints("flag", [0]).writable()];
    let run = |name: &str, order| {
        let launch = launch(name, 1, 64, vec![ptr("out"), ptr("flag")]);
        run_with(&built, vec![launch], &data(), &How { order, ..How::default() })
    };
    all.iter()
        .zip(&names)
        .map(|(flag, name)| (*flag, ORDERS.into_iter().map(|order| run(name, order)).collect()))
        .collect()
}

/// The variables that races are about.
fn raced(ran: &Ran) -> Vec<&str> {
    let race = |f: &&Finding| f.kind == FindingKind::Race;
    ran.findings.iter().filter(race).filter_map(|f| f.buffer.as_deref()).collect()
}

#[test]
#[ignore = "second tier: many sources"]
fn flags_that_ptx_polls_are_handed_over_in_shared_memory_as_in_global_memory() {
    let flag = |way, fences, global| Flag { way, fences, global };
    let places = [false, true];
    let ordered = [(VOLATILE, true), (RELAXED, true), (RELEASED, false)];
    // A volatile access of C++ is one of global memory only.
    let mut given: Vec<Flag> = vec![flag(CPP, true, true)];
    given.extend(places.into_iter().flat_map(|global| ordered.map(|(way, fences)| flag(way, fences, global))));
    for check in [true, false] {
        for (flag, runs) in flags(&given, check) {
            for ran in runs {
                assert_eq!(ran.clean().ints("out"), [42], "{flag:?}");
            }
        }
    }
    // Without a fence, the flag itself is no race, but what it guards is one.
    let unfenced: Vec<Flag> =
        places.into_iter().flat_map(|global| [VOLATILE, RELAXED].map(|way| flag(way, false, global))).collect();
    for (flag, runs) in flags(&unfenced, true) {
        for ran in runs {
            assert_eq!(raced(&ran), ["data"], "{flag:?} {:#?}", ran.findings);
        }
    }
    // A volatile access of C++ is a plain one in shared memory.
    for (_, runs) in flags(&[flag(CPP, true, false)], true) {
        for ran in runs {
            assert!(raced(&ran).contains(&"own_flag"), "{:#?}", ran.findings);
        }
    }
}

const PARTS: &str = r#"
#include <cuda_runtime.h>
#define ADDRESS(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
// Three of four elements are written and used.
__global__ void three(const float *x, float *y) {
  __shared__ __align__(16) float s[128];
  for (int i = 0; i < 3; ++i) s[4 * threadIdx.x + i] = x[3 * threadIdx.x + i];
  __syncwarp();
  float4 v = *reinterpret_cast<const float4 *>(s + 4 * (threadIdx.x ^ 1));
  y[threadIdx.x] = v.x + v.y + v.z;
}
__global__ void three_of_ptx(const float *x, float *y) {
  __shared__ __align__(16) float s[128];
  for (int i = 0; i < 3; ++i) s[4 * threadIdx.x + i] = x[3 * threadIdx.x + i];
  __syncwarp();
  float a, b, c, d;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "r"(ADDRESS(s + 4 * (threadIdx.x ^ 1))));
  y[threadIdx.x] = a + b + c;
}
// What is used depends on a number.
__global__ void as_many(const float *x, float *y, int n) {
  __shared__ __align__(16) float s[128];
  for (int i = 0; i < n; ++i) s[4 * threadIdx.x + i] = x[3 * threadIdx.x + i];
  __syncwarp();
  float4 v = *reinterpret_cast<const float4 *>(s + 4 * (threadIdx.x ^ 1));
  float sum = v.x;
  if (n > 1) sum += v.y;
  if (n > 2) sum += v.z;
  if (n > 3) sum += v.w;
  y[threadIdx.x] = sum;
}
__global__ void as_many_of_four(const float *x, float *y, int n) {
  __shared__ float4 s[32];
  float4 mine;
  for (int i = 0; i < n; ++i) (&mine.x)[i] = x[3 * threadIdx.x + i];
  s[threadIdx.x].x = mine.x, s[threadIdx.x].y = mine.y;
  if (n > 2) s[threadIdx.x].z = mine.z;
  __syncwarp();
  float4 v = s[threadIdx.x ^ 1];
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
  y[threadIdx.x] = sum;
}
// The same from a workspace in global memory, and the lower half of a pair.
__global__ void three_of_room(const float *x, float *room, float *y) {
  for (int i = 0; i < 3; ++i) room[4 * threadIdx.x + i] = x[3 * threadIdx.x + i];
  float a, b, c, d;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(room + 4 * threadIdx.x));
  y[threadIdx.x] = a + b + c;
}
// Wrong: a load of four elements that were never written, and of one.
__global__ void none(float *y) {
  __shared__ __align__(16) float s[128];
  if (threadIdx.x > 0) s[4 * threadIdx.x] = 0;
  float a, b, c, d;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "r"(ADDRESS(s + 4 * threadIdx.x))); // none
  y[threadIdx.x] = threadIdx.x > 0 ? a : 0;
}
__global__ void one(float *y) {
  __shared__ float s[64];
  if (threadIdx.x != 3) s[threadIdx.x] = 0;
  y[threadIdx.x] = s[threadIdx.x]; // one
}
// Wrong: an operation on a counter that was never set.
__global__ void counter(float *y) {
  __shared__ int n;
  atomicAdd(&n, 1); // counter
  y[threadIdx.x] = 0;
}
"#;

#[test]
fn a_vector_load_is_a_read_before_a_write_only_if_none_of_its_elements_was_written() {
    let built = build(
        PARTS,
        &["three", "three_of_ptx", "three_of_room", "as_many", "as_many_of_four", "none", "one", "counter"],
        true,
    );
    let x = floats("x", (0..96).map(|i| i as f32));
    let y = || output("y", 32, 4);
    let want = |swapped: usize| (0..32).map(|t| (9 * (t ^ swapped) + 3) as f32).collect::<Vec<_>>();
    for entry in ["three", "three_of_ptx"] {
        let ran = run(&built, launch(entry, 1, 32, vec![ptr("x"), ptr("y")]), &[x.clone(), y()]);
        assert_eq!(ran.clean().floats("y"), want(1), "{entry}");
    }
    for entry in ["as_many", "as_many_of_four"] {
        let ran = run(&built, launch(entry, 1, 32, vec![ptr("x"), ptr("y"), int(3)]), &[x.clone(), y()]);
        assert_eq!(ran.clean().floats("y"), want(1), "{entry}");
    }
    let args = vec![ptr("x"), ptr("room"), ptr("y")];
    let ran = run(&built, launch("three_of_room", 1, 32, args), &[x, output("room", 128, 4), y()]);
    assert_eq!(ran.clean().floats("y"), want(0));
    for entry in ["none", "one", "counter"] {
        let ran = run(&built, launch(entry, 1, 32, vec![ptr("y")]), &[y()]);
        let found = ran.only(FindingKind::Uninitialised);
        assert_eq!(found.line, Some(("k.cu".into(), line_of(PARTS, &format!("// {entry}")))));
    }
}

const COPIES: &str = r#"
#include <cuda_runtime.h>
#define ADDRESS(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
// Each thread copies as many bytes as `n` leaves it, the rest being zeros. Behind the end, it gives an address that may not be read.
template <int Size> __device__ void padded(const unsigned char *x, unsigned char *y, int n) {
  __shared__ __align__(16) unsigned char s[32 * Size];
  int from = threadIdx.x * Size, left = n - from < 0 ? 0 : n - from < Size ? n - from : Size;
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(ADDRESS(s + from)), "l"(x + from), "n"(Size), "r"(left));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  for (int i = 0; i < Size; ++i) y[from + i] = s[from + i];
}
__global__ void padded_4(const unsigned char *x, unsigned char *y, int n) { padded<4>(x, y, n); }
__global__ void padded_8(const unsigned char *x, unsigned char *y, int n) { padded<8>(x, y, n); }
__global__ void padded_16(const unsigned char *x, unsigned char *y, int n) { padded<16>(x, y, n); }
__global__ void ignored(const float4 *x, float4 *y, int n) {
  __shared__ float4 s[32];
  asm volatile("{ .reg .pred p; setp.ge.s32 p, %2, %3; cp.async.cg.shared.global [%0], [%1], 16, p; }" ::"r"(ADDRESS(s + threadIdx.x)), "l"(x + threadIdx.x), "r"(threadIdx.x), "r"(n));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void nowhere(float *y) {
  __shared__ float s[32];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(ADDRESS(s + threadIdx.x)), "l"(static_cast<const float *>(nullptr)), "r"(0));
  asm volatile("cp.async.wait_all;");
  y[threadIdx.x] = s[threadIdx.x];
}
// Wrong: one byte more than there is.
__global__ void beyond(const unsigned char *x, unsigned char *y, int n) {
  padded<8>(x, y, n + 1); // beyond
}
"#;

#[test]
fn an_asynchronous_copy_reads_only_the_bytes_that_it_takes() {
    let entries = ["padded_4", "padded_8", "padded_16", "ignored", "nowhere", "beyond"];
    for check in [true, false] {
        let built = build(COPIES, &entries, check);
        for (entry, size) in [("padded_4", 4), ("padded_8", 8), ("padded_16", 16)] {
            for left in [0, 1, size - 1, size, size + 1, 20 * size + 3, 32 * size] {
                let x: Vec<u8> = (0..left).map(|i| (i % 251 + 1) as u8).collect();
                let mut want = x.clone();
                want.resize(32 * size, 0);
                let given = Data { name: "x", bytes: x, element: 1, writable: false, poisoned: false };
                let args = vec![ptr("x"), ptr("y"), int(left as i64)];
                let ran = run(&built, launch(entry, 1, 32, args), &[given, output("y", 32 * size, 1)]);
                assert_eq!(ran.clean().buffers["y"], want, "{entry} {left}");
            }
        }
        let x = floats("x", (0..40).map(|i| i as f32 + 1.0));
        let ran = run(&built, launch("ignored", 1, 32, vec![ptr("x"), ptr("y"), int(10)]), &[x, output("y", 128, 4)]);
        let want: Vec<f32> = (0..128).map(|i| if i < 40 { i as f32 + 1.0 } else { 0.0 }).collect();
        assert_eq!(ran.clean().floats("y"), want);
        let ran = run(&built, launch("nowhere", 1, 32, vec![ptr("y")]), &[output("y", 32, 4)]);
        assert_eq!(ran.clean().floats("y"), [0.0; 32]);
        if check {
            let given = Data { name: "x", bytes: vec![1; 19], element: 1, writable: false, poisoned: false };
            let args = vec![ptr("x"), ptr("y"), int(19)];
            let ran = run(&built, launch("beyond", 1, 32, args), &[given, output("y", 256, 1)]);
            ran.only(FindingKind::OutOfBounds);
        }
    }
}

const ADDRESSES: &str = r#"
#include <cuda_runtime.h>
__global__ void converted(int *y) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(s)) + 4 * threadIdx.x;
  int x, back = *static_cast<int *>(__cvta_shared_to_generic(at));
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
  y[threadIdx.x] = x + back;
}
__global__ void low_half(int *y) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  int x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(static_cast<unsigned>(reinterpret_cast<size_t>(s + threadIdx.x))) : "memory"); // low half
  y[threadIdx.x] = x;
}
__global__ void generic(int *y) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  int x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "l"(s + threadIdx.x) : "memory"); // generic
  y[threadIdx.x] = x;
}
"#;

#[test]
fn a_generic_address_is_no_shared_address_until_it_is_converted() {
    let y = || output("y", 32, 4);
    for check in [true, false] {
        let built = build(ADDRESSES, &["converted", "low_half", "generic"], check);
        let ran = run(&built, launch("converted", 1, 32, vec![ptr("y")]), &[y()]);
        assert_eq!(ran.clean().ints("y"), (0..32).map(|i| 2 * i).collect::<Vec<_>>());
        for (entry, mark) in [("low_half", "// low half"), ("generic", "// generic")] {
            let ran = run(&built, launch(entry, 1, 32, vec![ptr("y")]), &[y()]);
            let found = ran.only(FindingKind::Crash);
            assert_eq!(found.line, Some(("k.cu".into(), line_of(ADDRESSES, mark))), "{}", found.message);
            let hint = "where PTX takes a shared one; convert it with `__cvta_generic_to_shared`";
            assert_eq!(found.message.ends_with(hint), check, "{}", found.message);
        }
    }
}
