//! Inline PTX as kernels use it: every spelling, messages, and kernels that copy asynchronously, multiply matrices, shuffle and load vectors, each correct and
//! with one mistake. What single instructions give is compared in `values`.

use super::harness::*;
use kforge::harness::message::ThreadOrder;
use kforge::record::{Finding, FindingKind};

/// Each statement with its result.
const SPELLINGS: &str = r##"
#define LANE(to) \
  asm volatile( /* of the lane */ \
      "mov.u32 %0, %%laneid;\n\t" \
      "add.u32 %0, %0, 40;" \
      : "=r"(to))
#define TWICE(text) text; text
template <int N> __device__ __forceinline__ unsigned shifted(unsigned v) {
  asm("shl.b32 %0, %0, %1;" : "+r"(v) : "n"(N + 1));
  return v;
}
struct two { unsigned lo, hi; };
__global__ void k(int *out, const float *x, unsigned long long big, short s) {
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(out[0]));
  __asm__("mov.u32 %0, %ntid.x;" : "=r"(out[1]));
  __asm("mov.u32 %0, 0x2A;" : "=r"(out[2]));
  __asm__ volatile("mov.u32 %0, 052;" : "=r"(out[3]));
  __asm__ __volatile__("{ .reg .pred p; setp.lt.f32 p, %1, 0f00000000; selp.s32 %0, 1, 2, p; }" : "=r"(out[4]) : "f"(x[0]));
  LANE(out[5]);
  TWICE(LANE(out[6]));
  out[7] = shifted<2>(5);
  if (x[0] > 0) asm("neg.s32 %0, %1;" : "=r"(out[8]) : "r"(7)); else asm("mov.s32 %0, 9;" : "=r"(out[8]));
  two pair;
  asm volatile(R"(
    {
      .reg .b32 %%r<3>;   // three
      mov.b64 {%%r0, %%r1}, %2;
      /* and
         back */
      mov.b32 %0, %%r1;
      mov.b32 %1, %%r0;
    }
  )" : "=r"(pair.lo), "=r"(pair.hi) : "l"(big) : "memory", "cc");
  out[9] = pair.lo, out[10] = pair.hi;
  asm("cvt.s32.s16 %0, %1;" : "=r"(out[11]) : "h"(s));
  asm("{ .reg .f32 t; mul.f32 t, %1, 0f40000000; cvt.rzi.s32.f32 %0, t; }" : "=r"(out[12]) : "f"(x[1])
  );
  asm volatile("{\n\t.reg .pred p, q;\n\tsetp.gt.and.s32 p|q, %1, 3, 1;\n\t@!p bra.uni;\n\t}" ::"r"(out[0]), "r"(1)) /* replaced below */;
  asm volatile("" ::: "memory");
  asm volatile("// nothing\n");
  asm volatile("st.global.u32 [%0+4], %1;" ::"l"(out + 12), "r"(77) : "memory");
  auto later = [=](int add) { unsigned v; asm("add.s32 %0, %1, %2;" : "=r"(v) : "r"(add), "n"(-3)); return v; };
  out[14] = later(10);
}
"##;

fn spellings() -> String {
    let odd = SPELLINGS.lines().filter(|line| !line.contains("replaced below"));
    odd.map(|line| format!("{line}\n")).collect()
}

fn spelled(cxx: &str) {
    for check in [false, true] {
        let built = try_build_by(std::path::Path::new(cxx), &spellings(), &["k"], check, &[])
            .unwrap_or_else(|log| panic!("{log}"));
        let short = kforge::model::bound::Arg::Scalar {
            dtype: kforge::model::DType::I16,
            value: kforge::model::bound::Scalar::Int(-5),
        };
        let args = vec![ptr("out"), ptr("x"), long(0x0000_0007_0000_0003), short];
        let data = [ints("out", [0; 16]).writable(), floats("x", [1.5, -3.75])];
        let got = run(&built, launch("k", 1, 1, args), &data).clean().ints("out");
        assert_eq!(got, [0, 1, 42, 42, 2, 40, 40, 40, -7, 7, 3, -5, -7, 77, 7, 0]);
    }
}

#[test]
fn statements_in_any_spelling_are_executed() {
    spelled("/usr/bin/g++");
}

#[test]
#[ignore = "second tier: another compiler"]
fn clang_executes_them_too() {
    if std::path::Path::new("/usr/bin/clang++").exists() {
        spelled("/usr/bin/clang++");
    }
}

/// A statement, and the report of its execution.
const REPORTS: [(&str, &str); 19] = [
    (
        r#"asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0}, %1, %2, 1;" : "+f"(f) : "l"(l), "l"(l));"#,
        "`wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16`",
    ),
    (
        r#"__asm__("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(i));"#,
        "`mbarrier.arrive.release.cluster.shared::cluster.b64`",
    ),
    (
        r#"asm("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%1];" :: "l"(l), "r"(i));"#,
        "`cp.async.bulk.tensor.1d.global.shared::cta.bulk_group` with such operands",
    ),
    (
        r#"asm("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 16;" :: "l"(l), "r"(i));"#,
        "`cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32`",
    ),
    (r#"LOAD(i, l);"#, "`ld.global.b128`"),
    (r#"asm("{ add.s32 %0, %0, 1; brev.b32 %0, %0; frobnicate.s32 %0, %0; }" : "+r"(i));"#, "`frobnicate.s32`"),
    (r#"asm("{ here: } bra here;");"#, "`bra`"),
    (r#"asm("add.s32 %0, %1;" : "=r"(i) : "r"(i));"#, "`add.s32`"),
    (r#"asm("add.s32 %0, %1, %2;" : "=r"(i) : "r"(i));"#, "`add.s32`"),
    (r#"asm("add.s64 %0, %1, %1;" : "=r"(i) : "r"(i));"#, "`add.s64`"),
    (r#"asm("mov.u32 %1, %0;" : "=r"(i) : "r"(i));"#, "`mov.u32`"),
    (r#"asm("mov.u32 %0, nothing;" : "=r"(i));"#, "`mov.u32`"),
    (r#"asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(i));"#, "`mov.u32` of `%cluster_ctarank`"),
    (r#"asm("add.s32 %0, %0, 1" SECOND : "+r"(i));"#, "`add.s32` with text from a macro"),
    (r#"asm("add.s32 %0, %0, %1;" : "+r"(i) : "q"(i));"#, "`add.s32` with such operands"),
    (r#"asm("ld.shared.u32 %0, [%1;" : "+r"(i) : "r"(i));"#, "`ld.shared.u32` with such operands"),
    (r#"asm("bar.sync 1, 64;");"#, "`bar` for some threads of a block"),
    (
        r#"asm volatile("{ .reg .pred p; wait: wgmma.fence.sync.aligned; setp.eq.u32 p, %0, 0; @!p bra wait; }" ::"r"(i));"#,
        "`wgmma.fence.sync.aligned`",
    ),
    (r#"asm(".pragma \"nounroll\";");"#, "`.pragma`"),
];

#[test]
fn what_is_not_emulated_names_its_instruction_and_the_line_that_uses_it() {
    let mut text = String::from(
        "#define LOAD(to, from) \\\n  asm volatile(\"ld.global.b128 %0, [%1];\" \\\n : \"=r\"(to) \\\n : \"l\"(from))\n#define SECOND \";\"\n\
         struct pair { int a, b; };\n__global__ void k(int *out, int which) {\n  float f = 1; long l = 2; int i = 3;\n",
    );
    for (at, (statement, _)) in REPORTS.iter().enumerate() {
        text += &format!("  if (which == {at}) {statement} // case {at}.\n");
    }
    text += "  out[0] = i + (int)f + (int)l;\n}\n";
    for check in [false, true] {
        let built = build(&text, &["k"], check);
        let data = [ints("out", [0; 4]).writable()];
        for (at, (_, report)) in REPORTS.iter().enumerate() {
            let ran = run(&built, launch("k", 1, 1, vec![ptr("out"), int(at as i64)]), &data);
            let line = line_of(&text, &format!("// case {at}."));
            assert_eq!(ran.not_emulated, [format!("inline PTX: {report} at k.cu:{line}")]);
            assert!(ran.findings.is_empty(), "{:?}", ran.findings);
        }
        let ran = run(&built, launch("k", 1, 1, vec![ptr("out"), int(99)]), &data);
        assert_eq!(ran.clean().ints("out")[0], 6, "not executed, so not in the way");
    }
}

#[test]
#[ignore = "second tier: two compilations each"]
fn a_statement_whose_translation_does_not_compile_is_unknown_and_a_mistake_elsewhere_is_an_error() {
    let text = "struct pair { int a, b; };\n__global__ void k(int *out) {\n  pair p{1, 2};\n  \
                asm(\"mov.b32 %0, %1;\" : \"=r\"(out[0]) : \"r\"(p));\n}\n";
    let data = [ints("out", [0; 4]).writable()];
    let ran = run(&build(text, &["k"], false), launch("k", 1, 1, vec![ptr("out")]), &data);
    assert_eq!(ran.not_emulated.len(), 1, "{ran:?}");
    assert!(ran.not_emulated[0].ends_with("at k.cu:4"), "{ran:?}");
    let wrong = spellings().replace("out[14] =", "out[14] = five +");
    let said = try_build(&wrong, &["k"], false, &[]).err().unwrap();
    assert!(said.contains("five") && said.contains(&format!("k.cu:{}", line_of(&wrong, "five"))), "{said}");
}

const STAGES: &str = include_str!("../exploits/honest/ptx_async_stages.cu");
const TILES: &str = include_str!("../exploits/honest/ptx_swizzled_tiles.cu");
const SHUFFLES: &str = include_str!("../exploits/honest/ptx_shuffles.cu");
const HINTS: &str = include_str!("../exploits/honest/ptx_vector_hints.cu");
const LARGEST: &str = include_str!("../exploits/honest/ptx_largest_word.cu");

/// A source with a mistake.
fn but(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[track_caller]
fn race(ran: &Ran) -> &Finding {
    ran.findings
        .iter()
        .find(|f| f.kind == FindingKind::Race)
        .unwrap_or_else(|| panic!("{:#?} {:?}", ran.findings, ran.not_emulated))
}

fn affine(text: &str, blocks: u32, threads: u32, check: bool) -> Ran {
    let n = 1003;
    let data = [floats("x", (0..n).map(|i| i as f32)), output("y", n as usize, 4)];
    let args = vec![ptr("x"), ptr("y"), int(n)];
    run(&build(text, &["kernel"], check), launch("kernel", blocks, threads, args), &data)
}

#[test]
fn asynchronous_copies_fill_stages_and_a_missing_barrier_is_a_race() {
    for check in [false, true] {
        let got = affine(STAGES, 3, 32, check).clean().floats("y");
        assert!(got.iter().enumerate().all(|(i, v)| *v == 2.0 * i as f32 + 1.0), "{got:?}");
    }
    let ran = affine(&but(STAGES, "__syncthreads();  // The tile is there.", ""), 3, 32, true);
    let found = race(&ran);
    assert!(found.message.contains("stage"), "{}", found.message);
}

#[test]
#[ignore = "second tier: a source for each mistake"]
fn asynchronous_copies_are_watched() {
    let ran = affine(&but(STAGES, "__syncthreads();  // The stage may be filled again.", ""), 3, 32, true);
    assert_eq!(ran.findings[0].kind, FindingKind::Race);
    // All sixteen bytes are read where four remain.
    let ran = affine(&but(STAGES, "4 * left)", "16)"), 3, 32, true);
    let found = &ran.findings[0];
    assert!(found.kind == FindingKind::OutOfBounds && found.buffer.as_deref() == Some("x"), "{found:?}");
    let ran = affine(
        &but(
            STAGES,
            "&stage[tile / gridDim.x % 2][4 * threadIdx.x]",
            "&stage[tile / gridDim.x % 2][4 * threadIdx.x + 1]",
        ),
        3,
        32,
        true,
    );
    assert!(ran.findings.iter().any(|f| f.kind == FindingKind::Misaligned), "{:#?}", ran.findings);
    // A copy is done at once, so a missing wait is not detected.
    affine(&but(STAGES, "    WAIT(1);\n", ""), 3, 32, true).clean();
}

fn product(text: &str, encode: fn(f32) -> Vec<u8>, check: bool, order: ThreadOrder) -> Ran {
    let (m, n, k) = (32usize, 48usize, 128usize);
    let matrix = |name, count: usize, of: fn(usize) -> f32| Data {
        name,
        bytes: (0..count).flat_map(|i| encode(of(i))).collect(),
        element: 2,
        writable: false,
        poisoned: false,
    };
    let left: fn(usize) -> f32 = |i| (i * 7 % 11) as f32 - 5.0;
    let right: fn(usize) -> f32 = |i| (i * 5 % 13) as f32 - 6.0;
    let data = [matrix("a", m * k, left), matrix("b", k * n, right), output("c", m * n, 4)];
    let args = vec![ptr("a"), ptr("b"), ptr("c"), int(m as i64), int(n as i64), int(k as i64)];
    let mut launched = launch("kernel", (n / 16) as u32, 32, args);
    launched.grid[1] = (m / 16) as u32;
    let ran = run_with(&build(text, &["kernel"], check), vec![launched], &data, &How { order, ..How::default() });
    if ran.findings.is_empty() && ran.not_emulated.is_empty() {
        let want = |e: usize| (0..k).map(|l| left(e / n * k + l) * right(l * n + e % n)).sum::<f32>();
        assert_eq!(ran.floats("c"), (0..m * n).map(want).collect::<Vec<_>>());
    }
    ran
}

const F16: fn(f32) -> Vec<u8> = |v| half::f16::from_f32(v).to_le_bytes().to_vec();
const BF16: fn(f32) -> Vec<u8> = |v| half::bf16::from_f32(v).to_le_bytes().to_vec();

#[test]
fn swizzled_tiles_and_matrix_instructions_give_the_product() {
    product(TILES, F16, true, ThreadOrder::Reversed).clean();
    let ran = product(&but(TILES, "__syncthreads();  // The tiles are there.", ""), F16, true, ThreadOrder::Forward);
    let found = race(&ran);
    assert_eq!(found.line.as_ref().map(|(file, _)| file.as_str()), Some("k.cu"));
}

#[test]
#[ignore = "second tier: a source for each mistake"]
fn matrix_instructions_are_watched_in_every_format() {
    let bfloat =
        TILES.replace("cuda_fp16.h", "cuda_bf16.h").replace("__half", "__nv_bfloat16").replace("f16.f16", "bf16.bf16");
    for check in [false, true] {
        product(TILES, F16, check, ThreadOrder::Random(3)).clean();
        product(&bfloat, BF16, check, ThreadOrder::Random(4)).clean();
    }
    let kinds = |from: &str, to: &str| {
        let ran = product(&but(TILES, from, to), F16, true, ThreadOrder::Forward);
        ran.findings.iter().map(|f| f.kind).collect::<Vec<_>>()
    };
    assert!(kinds("__syncthreads();  // The tiles may be filled again.", "").contains(&FindingKind::Race));
    assert!(
        kinds(
            "\"r\"(piece(from, lane % 16, deep * 2 + lane / 16))",
            "\"r\"(piece(from, lane % 16, deep * 2 + lane / 16) + 8)"
        )
        .contains(&FindingKind::Misaligned)
    );
    // Half of the right tile is never filled.
    assert!(
        kinds("copy(other + i / 2 * 32", "if (i < 32) copy(other + i / 2 * 32").contains(&FindingKind::Uninitialised)
    );
    // A lane that leaves before a matrix instruction, which needs all lanes.
    let early = but(TILES, "float sum[2][4] = {};", "float sum[2][4] = {}; if (lane == 31 && k == 0) return;");
    product(&early, F16, true, ThreadOrder::Forward).clean();
}

#[test]
fn shuffles_and_barriers_of_ptx_reduce_rows() {
    let (rows, cols) = (3usize, 100usize);
    let data = [floats("x", (0..rows * cols).map(|i| (i % 17) as f32)), output("y", rows, 4)];
    let args = || vec![ptr("x"), ptr("y"), int(rows as i64), int(cols as i64)];
    let ran = run(&build(SHUFFLES, &["kernel"], true), launch("kernel", 3, 64, args()), &data);
    let want: Vec<f32> = (0..rows).map(|r| (0..cols).map(|c| ((r * cols + c) % 17) as f32).sum()).collect();
    assert_eq!(ran.clean().floats("y"), want);
    let racy = but(SHUFFLES, "asm volatile(\"bar.sync 0;\" ::: \"memory\");", "");
    let ran = run(&build(&racy, &["kernel"], true), launch("kernel", 3, 64, args()), &data);
    assert!(race(&ran).message.contains("parts"), "{:#?}", ran.findings);
}

#[test]
fn vector_loads_with_hints_are_watched() {
    for check in [false, true] {
        let got = affine(HINTS, 4, 64, check).clean().floats("y");
        assert!(got.iter().enumerate().all(|(i, v)| *v == 2.0 * i as f32 + 1.0), "{got:?}");
    }
    let ran = affine(&but(HINTS, "  @p ld.global", "  ld.global"), 4, 64, true);
    let found = &ran.findings[0];
    assert!(found.kind == FindingKind::OutOfBounds && found.buffer.as_deref() == Some("x"), "{found:?}");
    assert_eq!(found.line, Some(("k.cu".into(), line_of(HINTS, "asm volatile(\"{"))));
    let ran = affine(&but(HINTS, "[%4];", "[%4+4];"), 3, 64, true);
    assert!(ran.findings.iter().any(|f| f.kind == FindingKind::Misaligned), "{:#?}", ran.findings);
}

#[test]
#[ignore = "second tier: a source for each mistake"]
fn atomics_of_ptx_order_nothing_that_they_do_not_say() {
    let (rows, cols) = (4usize, 97usize);
    let x: Vec<f32> = (0..rows * cols).map(|i| ((i * 31) % 193) as f32 - 90.0).collect();
    let data = [floats("x", x.clone()), output("y", rows, 4)];
    let args = || vec![ptr("x"), ptr("y"), int(rows as i64), int(cols as i64)];
    for check in [false, true] {
        let ran = run(&build(LARGEST, &["kernel"], check), launch("kernel", 4, 64, args()), &data);
        let largest = |r: usize| {
            let row = &x[r * cols..(r + 1) * cols];
            (0..cols).fold(0, |best, c| if row[c] > row[best] { c } else { best }) as i32
        };
        assert_eq!(ran.clean().ints("y"), (0..rows).map(largest).collect::<Vec<_>>());
    }
    for wrong in [
        but(LARGEST, "asm volatile(\"barrier.sync 0;\" ::: \"memory\");  // It is empty.", ""),
        but(LARGEST, "asm volatile(\"barrier.sync 0;\" ::: \"memory\");  // All have been there.", ""),
        but(
            LARGEST,
            "atom.shared.cta.max.u64 %0, [%1], %2;",
            "{ ld.shared.u64 %0, [%1]; max.u64 %0, %0, %2; st.shared.u64 [%1], %0; }",
        ),
    ]
    .iter()
    {
        let how = How { order: ThreadOrder::Reversed, ..How::default() };
        let ran = run_with(&build(wrong, &["kernel"], true), vec![launch("kernel", 4, 64, args())], &data, &how);
        race(&ran);
    }
}

#[test]
fn the_only_operand_of_a_load_or_store_may_stand_in_braces() {
    let text = "__global__ void k(int *out) {\n  __shared__ int s[1];\n  const unsigned at = __cvta_generic_to_shared(s);\n  int loaded;\n\
                asm volatile(\"st.shared.u32 [%0], {%1};\" :: \"r\"(at), \"r\"(7) : \"memory\");\n\
                asm volatile(\"ld.shared.u32 {%0}, [%1];\" : \"=r\"(loaded) : \"r\"(at));\n  out[0] = loaded;\n}\n";
    let ran = run(&build(text, &["k"], false), launch("k", 1, 1, vec![ptr("out")]), &[output("out", 1, 4)]);
    assert_eq!(ran.clean().ints("out"), [7]);
}
