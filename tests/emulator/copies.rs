//! Copies of whole structs: padding and members without a value may be copied, and are still without a value in the copy.

use kforge::record::FindingKind;

use super::ORDERS;
use super::harness::*;

const SOURCE: &str = r#"
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
struct Element { MEMBERS };
// Every member but the last is written; all bytes are copied in each way.
template <class T> __device__ void fill(T *s, const int *x, bool last) {
  int t = threadIdx.x;
  s[t].first = x[t];
  s[t].wide = x[t] + 1;
  if (last) s[t].last = x[t] + 2;
}
template <class T> __device__ void use(const T *s, int *y, bool last) {
  int t = threadIdx.x;
  y[t] = s[t].first + (int)s[t].wide;
  if (last) y[t] += s[t].last; // uses
}
#define KERNEL(name, TO, COPY)                                                                    \
  __global__ void name(const int *x, Element *room, int *y, int fills, int uses) {                \
    __shared__ Element s[32], other[32];                                                          \
    int t = threadIdx.x;                                                                          \
    fill(s, x, fills);                                                                            \
    __syncthreads();                                                                              \
    COPY;                                                                                         \
    __syncthreads();                                                                              \
    use(TO, y, uses);                                                                             \
  }
KERNEL(assigns, other, other[t] = s[t])
KERNEL(assigns_global, room, room[t] = s[t])
KERNEL(from_global, other, room[t] = s[t]; other[t] = room[t])
KERNEL(copies, other, memcpy(&other[t], &s[t], sizeof(Element)))
KERNEL(copies_all, other, if (t == 0) memcpy(other, s, sizeof s))
KERNEL(moves, room, if (t == 0) memmove(room, s, sizeof s))
KERNEL(shares, other, cooperative_groups::memcpy_async(cooperative_groups::this_thread_block(), other, s, sizeof s); cooperative_groups::wait(cooperative_groups::this_thread_block()))
// By way of a variable: all of its bytes count as written.
KERNEL(by_variable, other, Element e = s[t]; e.first += 0; other[t] = e)
// A copy that is stored over what the copy holds, and two statements that are no copy.
__global__ void later(const int *x, Element *room, int *y, int fills, int uses) {
  __shared__ Element s[32], other[32];
  int t = threadIdx.x;
  fill(s, x, false);
  Element mine = {};
  mine.first = x[t], mine.wide = x[t] + 1, mine.last = -1;
  other[t] = mine;
  Element theirs = s[t];
  room[t] = s[t];
  if (theirs.first == x[t]) room[t].last = -1;
  use(other, y, true);
  use(room, y, true);
}
// Each thread reads what nobody wrote.
__global__ void nothing(Element *room, int *y) {
  __shared__ Element s[32];
  if (threadIdx.x == 40) fill(s, y, true);
  room[threadIdx.x] = s[threadIdx.x]; // nothing
}
"#;

const MEMBERS: [(usize, &str); 5] = [
    (16, "char first; char wide; int last; long long more"),
    (24, "char first; double wide; int last"),
    (12, "char first; int wide; int last"),
    (40, "short first; double wide; char inner[9]; int last"),
    (112, "int first; char wide; double most[12]; int last"),
];
const CERTAIN: [&str; 7] = ["assigns", "assigns_global", "from_global", "copies", "copies_all", "moves", "shares"];

#[test]
#[ignore = "second tier: a matrix of sizes, ways and orders"]
fn a_copy_of_a_struct_carries_over_what_was_written() {
    for (size, members) in MEMBERS {
        let text = SOURCE.replace("MEMBERS", &(members.to_string() + ";"));
        let entries: Vec<&str> = CERTAIN.into_iter().chain(["by_variable", "later", "nothing"]).collect();
        let built = build(&text, &entries, true);
        let x = || ints("x", 0..32);
        let room = || output("room", 32 * size / 4, 4);
        let y = || output("y", 32, 4);
        for order in ORDERS {
            let how = How { order, ..How::default() };
            let go = |entry: &str, fills, uses| {
                let args = vec![ptr("x"), ptr("room"), ptr("y"), int(fills), int(uses)];
                run_with(&built, vec![launch(entry, 1, 32, args)], &[x(), room(), y()], &how)
            };
            for entry in CERTAIN.into_iter().chain(["by_variable"]) {
                let ran = go(entry, 1, 1);
                assert!(ran.findings.is_empty(), "{entry} {size} {:#?}", ran.findings);
                assert_eq!(ran.ints("y"), (0..32).map(|i| 3 * i + 3).collect::<Vec<_>>(), "{entry} {size}");
                let ran = go(entry, 0, 0);
                assert!(ran.findings.is_empty(), "{entry} {size} {:#?}", ran.findings);
            }
            let ran = go("later", 0, 0).clean();
            assert_eq!(ran.ints("y"), (0..32).map(|i| 2 * i).collect::<Vec<_>>(), "{size}");
            for entry in CERTAIN {
                let ran = go(entry, 0, 1);
                assert_eq!(ran.findings.len(), 1, "{entry} {size}");
                let found = ran.only(FindingKind::Uninitialised);
                assert_eq!(found.line, Some(("k.cu".into(), line_of(&text, "// uses"))), "{entry} {size}");
            }
            let args = vec![ptr("room"), ptr("y")];
            let ran = run_with(&built, vec![launch("nothing", 1, 32, args)], &[room(), y()], &how);
            let found = ran.only(FindingKind::Uninitialised);
            assert_eq!(found.line, Some(("k.cu".into(), line_of(&text, "// nothing"))), "{size}");
        }
    }
}
