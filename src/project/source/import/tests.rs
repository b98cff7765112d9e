//! Tests of what import reads from sources and writes into a manifest, on texts. `tests/cli` and `tests/e2e` run the command and build what it writes.

mod arguments;
mod constants;
mod demands;
mod extents;
mod hostile;
mod sizes;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ImportedManifest, import};
use kforge_foundation::base::{Severity, SourceFile};
use kforge_types::model::{inherit, parse};

/// Imports files, and reads what was written as kforge does: as it is, and with the kernels in its comments once their reference is stated.
fn of(files: &[(&str, &str)]) -> ImportedManifest {
    let files: BTreeMap<String, String> = files.iter().map(|(n, t)| (n.to_string(), t.to_string())).collect();
    let mains: Vec<String> =
        files.keys().filter(|name| name.ends_with(".cu") || name.ends_with(".cuh")).cloned().collect();
    let found = import("mine", &files, &mains);
    loads(&found.text);
    if !found.text.contains("# # kforge refuses this") {
        loads(&completed(&found.text));
    }
    let marked = |line: &str| {
        line.contains(" # check: ") && !line.starts_with("# Written") && !line.starts_with("# the reference, complete")
    };
    assert_eq!(found.checks, found.text.lines().filter(|line| marked(line)).count(), "{}", found.text);
    found
}

/// A manifest with its comments as tables, and with references where they are asked for.
fn completed(text: &str) -> String {
    let Some(at) = text.find("\n# [operator.") else { return text.to_string() };
    let (known, unknown) = text.split_at(at);
    let plain: String = unknown.lines().map(|l| format!("{}\n", l.strip_prefix("# ").unwrap_or(l))).collect();
    format!("{known}{}", plain.replace("reference = \"\"", "reference = \"ref.py::f\""))
}

#[track_caller]
fn loads(text: &str) {
    let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: text.into() });
    let (manifest, mut found) = parse(&file);
    found.extend(inherit(&manifest.unwrap_or_else(|| panic!("{found:?}\n{text}")), None).1);
    let errors: Vec<_> = found.iter().filter(|d| d.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
}

#[track_caller]
fn says(found: &ImportedManifest, lines: &[&str]) {
    for line in lines {
        // What is not known is a comment.
        let is = |l: &str| l == *line || l.starts_with(&format!("{line} # "));
        assert!(found.text.lines().any(|l| is(l.strip_prefix("# ").unwrap_or(l))), "{line}\n{}", found.text);
    }
}

const SCALE: &str = "__global__ void scale(const float *x, float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
";

#[test]
fn a_launch_by_variables_constants_and_macros_is_stated() {
    for launcher in [
        "void run(float *a, float *b, int count) { scale<<<(count + 255) / 256, 256>>>(a, b, 2, count); }",
        "#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))\nconst int BLOCK = 256;\nvoid run(float *a, float *b, int m) { dim3 grid(CEIL_DIV(m, BLOCK)); dim3 block(BLOCK); scale<<<grid, block>>>(a, b, 2, m); }",
        "static inline int up(int a, int b) { return (a + b - 1) / b; }\nvoid run(float *a, int m) { const int threads = 256; const int blocks = up(m, threads); scale<<<blocks, threads, 0, stream>>>(a, a, 2, m); }",
        "void run(T x) { int n = x.numel(); auto grid = dim3(cdiv(n, 256)); scale<<<grid, dim3{256, 1, 1}>>>(x.p(), x.p(), 2, n); }",
        "void run(T x) { scale<<<ceil(x.numel() / 256.0), 256>>>(x.p(), x.p(), 2, x.numel()); }",
    ] {
        let found = of(&[("s.cu", &format!("{SCALE}{launcher}"))]);
        says(
            &found,
            &[
                "grid = [\"ceil_div(n, 256)\"]",
                "block = [256]",
                "args = [\"x\", \"y\", \"a\", \"n\"]",
                "entry = \"scale\"",
            ],
        );
        assert!(!found.text.contains("shared"), "{}", found.text);
        assert_eq!((found.kernels.len(), found.known), (1, 1), "{}", found.text);
    }
}

#[test]
fn the_folder_of_a_header_that_only_it_has_is_included() {
    let made = "#define MADE(NAME, OP) __global__ void NAME(const float *x, float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = OP x[i]; }\n";
    let main = ("ops/negate.cu", "#include <vector>\n#include \"makers.cuh\"\nMADE(negate, -)\n");
    let nested = ("ops/parts/makers.cuh", "#include \"one/made.cuh\"\n");
    let found = of(&[main, nested, ("shared/one/made.cuh", made)]);
    says(&found, &["entry = \"negate\"", "include = [\"ops/parts\", \"shared\"]"]);
    // Beside the source, a header needs no folder; of two files, none is meant.
    let beside = of(&[("ops/negate.cu", main.1), ("ops/makers.cuh", made), ("other/makers.cuh", made)]);
    assert!(beside.kernels.iter().any(|k| k.name == "negate") && !beside.text.contains("include ="), "{}", beside.text);
    let two = of(&[main, ("a/makers.cuh", made), ("b/makers.cuh", made)]);
    assert!(!two.text.contains("include ="), "{}", two.text);
}

#[test]
fn what_a_launch_does_not_say_is_asked_for() {
    let found =
        of(&[("s.cu", &format!("{SCALE}void run(T x) {{ scale<<<blocks_of(x), 128>>>(x.p(), x.p(), 2, x.n()); }}"))]);
    says(
        &found,
        &["grid = [\"ceil_div(n, 128)\"] # check: state it; the source has `blocks_of(x)` at s.cu:5", "block = [128]"],
    );
    let found = of(&[("s.cu", SCALE)]);
    says(&found, &["block = [256] # check: state it; no launch was found"]);
}

#[test]
fn a_grid_in_numbers_is_stated_by_the_dims_that_the_launch_passes_or_is_to_be_checked() {
    let rows = "__global__ void softmax(const float *x, float *y, int rows, int cols) { int r = blockIdx.x; if (r < rows) y[r * cols + threadIdx.x] = x[r * cols + threadIdx.x]; }\n";
    let of_rows =
        |launch: &str| of(&[("s.cu", &format!("{rows}void run(float *x, float *y, int cols) {{ {launch} }}"))]);
    says(
        &of_rows("softmax<<<1024, 256>>>(x, y, 1024, cols);"),
        &["grid = [\"rows\"] # check: a guess: that 1024 stands for `rows`"],
    );
    let elements = "void run(float *a, float *b) { const int N = 1 << 20; scale<<<4096, 256>>>(a, b, 2, N); }";
    says(
        &of(&[("s.cu", &format!("{SCALE}{elements}"))]),
        &["grid = [\"ceil_div(n, 256)\"] # check: a guess: that 4096 stands for `ceil_div(n, 256)`"],
    );
    // Two dims have the number, or none has.
    let asked = "grid = [1024] # check: a guess: that 1024 blocks serve every size";
    says(&of_rows("softmax<<<1024, 256>>>(x, y, 1024, 1024);"), &[asked]);
    says(&of_rows("softmax<<<1024, 256>>>(x, y, 512, cols);"), &[asked]);
    // A dim stands for the blocks of one axis only.
    says(
        &of_rows("softmax<<<dim3(1024, 1024), 256>>>(x, y, 1024, cols);"),
        &["grid = [\"rows\", 1024] # check: a guess: that 1024 stands for `rows`, that 1024 blocks serve every size"],
    );
    // A kernel that goes on behind its grid serves every size, and a kernel of one block says so.
    let looping = "__global__ void relu(const float *x, float *y, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = x[i]; }\n";
    let found = of(&[("s.cu", &format!("{looping}void run(float *x, int n) {{ relu<<<1024, 256>>>(x, x, 1024); }}"))]);
    assert!(found.text.contains("\ngrid = [1024]\n"), "{}", found.text);
    let found = of_rows("softmax<<<1, 256>>>(x, y, 512, cols);");
    assert!(found.text.contains("\ngrid = [1]\n"), "{}", found.text);
}

#[test]
fn a_manifest_without_a_kernel_to_build_says_what_to_state_before_the_build() {
    let unknown = "__global__ void mystery(const float *x, float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = 3 * x[i]; }\n";
    let found = of(&[("s.cu", unknown)]);
    let head = found.text.split("[package]").next().unwrap();
    assert!(
        head.starts_with("# Written by `kforge import cuda`. What the kernels compute could not be guessed"),
        "{head}"
    );
    let [state, build] =
        ["state\n# the reference", "Then run `kforge build --target cpu`"].map(|text| head.find(text).unwrap());
    assert!(state < build && !found.text.contains("kforge builds the other kernels"), "{}", found.text);
    let found = of(&[("s.cu", &format!("{unknown}{SCALE}"))]);
    assert!(found.text.contains("kforge builds the other kernels"), "{}", found.text);
    assert!(
        found.text.starts_with("# Written by `kforge import cuda`. Confirm or complete each line"),
        "{}",
        found.text
    );
}

#[test]
fn constants_may_be_computed_by_every_integer_operator() {
    let kernel = "__global__ void relu(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] > 0 ? x[i] : 0; }\n";
    for (constants, block) in [
        ("constexpr int T = 64;\nconst int B = T << 1;", 128),
        ("#define T (1 << 5)\nconst int B = T << 1, unused = 1 >> 1;", 64),
        ("const int T = 1024, S = 2;\nconst int B = (T >> S) - T / (4 * 2) + 32;", 160),
        ("enum { LOG = 7 };\nstatic const unsigned B = 1u << LOG;", 128),
    ] {
        let host = "void f(int n) { relu<<<(n + B - 1) / B, B>>>(p, q, n); }";
        let found = of(&[("s.cu", &format!("{constants}\n{kernel}{host}"))]);
        says(&found, &[&format!("grid = [\"ceil_div(n, {block})\"]"), &format!("block = [{block}]")]);
    }
    let host = "void f(int n) { const int T = 64; int B = T << 1; relu<<<n + B - 1 >> 7, T << 1, B >> 8>>>(p, q, n); }";
    says(&of(&[("s.cu", &format!("{kernel}{host}"))]), &["grid = [\"ceil_div(n, 128)\"]", "block = [128]"]);
}

#[test]
fn a_template_takes_its_arguments_from_a_launch_or_asks() {
    let kernel = "template <typename T, int B> __global__ void relu_kernel(const T *x, T *y, int n) { int i = blockIdx.x * B + threadIdx.x; if (i < n) y[i] = x[i] > T(0) ? x[i] : T(0); }\n";
    let found = of(&[(
        "s.cu",
        &format!("{kernel}#define B 128\nvoid f(int n) {{ relu_kernel<half, B><<<(n + B - 1) / B, B>>>(p, q, n); }}"),
    )]);
    says(
        &found,
        &["entry = \"relu_kernel<half, 128>\"", "inputs.x = { dtype = \"f16\", shape = [\"n\"] }", "block = [128]"],
    );
    let found = of(&[("s.cu", kernel)]);
    assert!(found.text.contains("entry = \"relu_kernel<float, 256>\" # check: no launch was found"), "{}", found.text);
}

#[test]
fn kernels_are_named_as_cpp_names_them() {
    let body = "(const float *x, float *y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }\n";
    let text = format!(
        "namespace a {{ namespace b {{ __global__ void copy_one{body} }} }}\nnamespace {{ static __global__ void copy_two{body} }}\n\
         extern \"C\" __global__ void copy_three{body}extern \"C\" {{ __global__ void copy_four{body} }}\n\
         __global__ void copy_five{body}__global__ void copy_five(const double *x, double *y, int n) {{ y[0] = x[0]; }}\n\
         #define MAKE(name) __global__ void copy_##name{}\nMAKE(six)\n",
        body.trim_end()
    );
    let found = of(&[("s.cu", &text)]);
    let entries: Vec<&str> = found.kernels.iter().map(|k| k.entry.as_str()).collect();
    let expected = [
        "a::b::copy_one",
        "copy_two",
        "copy_three",
        "copy_four",
        "copy_five(const float *, float *, int)",
        "copy_five(const double *, double *, int)",
        "copy_six",
    ];
    assert_eq!(entries, expected);
}

#[test]
fn a_variable_that_only_the_launcher_has_becomes_a_dim() {
    let text = "__global__ void softmax_k(float *x, float *y, int cols) { y[0] = x[0] + cols; }
void f(torch::Tensor t) { const int S = t.size(0); const int K = t.size(1); dim3 grid(S); softmax_k<<<grid, 128, 4 * sizeof(float)>>>(p, q, K); }";
    let found = of(&[("s.cu", text)]);
    says(
        &found,
        &[
            "dims = [\"S\", \"cols\"]",
            "grid = [\"S\"]",
            "shared = 16",
            "inputs.x = { dtype = \"f32\", shape = [\"S\", \"cols\"] }",
        ],
    );
}

#[test]
fn a_block_that_the_launcher_takes_from_its_caller_has_a_usual_size() {
    let text = "__global__ void softmax_k(float *out, const float *inp, int N, int C) { int i = threadIdx.x; if (i < N) out[i] = inp[i * C]; }
void f(float *o, const float *i, int N, int C, const int block_size) { const int grid_size = ceil_div(N, block_size); softmax_k<<<grid_size, block_size>>>(o, i, N, C); }";
    let found = of(&[("s.cu", text)]);
    let block = "block = [256] # check: a guess: the launcher does not state `block_size`: it is given, or found at run time; 256 is a usual value";
    says(&found, &["dims = [\"N\", \"C\"]", "grid = [\"ceil_div(N, 256)\"]", block]);
    assert_eq!(found.known, 1);
}

#[test]
fn a_dispatch_by_cases_fixes_what_it_is_about() {
    let text = "template <int T> __global__ void softmax_token(float *x, float *y, int N) { int i = blockIdx.x * T + threadIdx.x; if (i < N) y[i] = expf(x[i]); }
#define ONE(H) softmax_token<(H)><<<grid, block>>>(p, q, N);
#define EACH(S, H) dim3 block((H)); dim3 grid((S)); switch ((H)) { case 64: ONE(64) break; case 128: ONE(128) break; default: fail(); }
void f(torch::Tensor t) { const int S = t.size(0); const int H = t.size(1); const int N = S * H; EACH(S, H) }";
    let found = of(&[("s.cu", text)]);
    says(
        &found,
        &["dims = [\"S\"]", "inputs.x = { dtype = \"f32\", shape = [\"S\", 64] }", "grid = [\"S\"]", "block = [64]"],
    );
    says(&found, &["entry = \"softmax_token<64>\"", "args = [\"x\", \"y\", \"S * 64\"]"]);
}

#[test]
fn a_kernel_of_which_nothing_is_known_asks_for_its_reference() {
    let found =
        of(&[("s.cu", "struct S { int a; };\n__global__ void frob(float *x, S s, float t, int64_t n) { x[0] += t; }")]);
    says(
        &found,
        &[
            "inouts.x = { dtype = \"f32\", shape = [\"n\"] } # check: state the shape",
            "params.t = { dtype = \"f32\", value = 1.5 }",
        ],
    );
    let asked = "reference = \"\" # check: state what it computes: a built-in of docs/references.md, or a function of yours: `ref.py::NAME`, or `ref.cpp::NAME`, which needs no numpy";
    says(&found, &[asked]);
    assert!(
        found
            .text
            .contains("args = [\"x\", \"0\", \"t\", { value = \"n\", dtype = \"i64\" }] # check: state `s`, a `S`"),
        "{}",
        found.text
    );
    assert_eq!((found.known, found.operators), (0, 1));
    // It is a comment with the advice before it: the manifest is one without kernels.
    let read: toml_edit::DocumentMut = found.text.parse().unwrap();
    assert!(read.get("operator").is_none() && read.get("kernel").is_none() && read.get("package").is_some());
    assert!(found.text.contains("remove the `# ` in front of its lines"), "{}", found.text);
    // Without the signs of comments it is a manifest with the kernel.
    let (_, tables) = found.text.split_once("# [operator.frob]").unwrap();
    let plain: String = tables.lines().map(|l| format!("{}\n", l.strip_prefix("# ").unwrap_or(l))).collect();
    let read: toml_edit::DocumentMut = format!("[operator.frob]{plain}").parse().unwrap();
    assert!(read["kernel"]["frob"]["launch"][0]["entry"].as_str() == Some("frob"), "{plain}");
}

#[test]
fn a_file_that_ends_inside_a_brace_is_left_out_and_named() {
    let found = of(&[("a.cu", SCALE), ("b.cu", "__global__ void k(float *x) { if (x) {")]);
    assert_eq!(found.kernels.len(), 1);
    assert_eq!(found.unfinished[0].to_string(), "`b.cu` ends inside the brace that opens at line 1");
    assert!(found.text.contains("# Not imported: `b.cu` ends inside the brace"), "{}", found.text);
}

#[test]
fn kernels_of_one_kind_share_an_operator_and_their_sizes_follow_vectors() {
    let text = "__global__ void relu_f32_kernel(float *x, float *y, int N) { int i = threadIdx.x; if (i < N) y[i] = fmaxf(0.f, x[i]); }
__global__ void relu_again_kernel(const float *in, float *out, int n) { int i = threadIdx.x; if (i < n) out[i] = fmaxf(0.f, in[i]); }
__global__ void relu_f32x4_kernel(float *x, float *y, int N) { int i = 4 * threadIdx.x; if (i < N) (reinterpret_cast<float4 *>(&(y[i]))[0]) = (reinterpret_cast<float4 *>(&(x[i]))[0]); }
";
    let found = of(&[("s.cu", text)]);
    let operators: Vec<&str> = found.kernels.iter().map(|k| k.operator.as_str()).collect();
    assert_eq!(operators, ["relu_f32"; 3]);
    says(
        &found,
        &["requires = [\"N % 4 == 0\"]", "small = { N = 49 }", "ragged = { N = 593 }", "partial = { N = 592 }"],
    );
    assert_eq!(found.text.matches("requires").count(), 1, "{}", found.text);
    // Alone, the vectorized kernel decides which shapes there are.
    let alone = of(&[("s.cu", text.lines().last().unwrap())]);
    says(&alone, &["[operator.relu_f32]", "requires = [\"N % 4 == 0\"]", "ragged = { N = 592 }"]);
}

/// The size of a dim in a shape.
#[track_caller]
fn size(found: &ImportedManifest, shape: &str, dim: &str) -> i64 {
    let line = |l: &&str| l.trim_start_matches("# ").starts_with(&format!("{shape} = {{"));
    let line = found.text.lines().find(line).unwrap_or_else(|| panic!("{shape}\n{}", found.text));
    let (_, rest) = line.split_once(&format!("{dim} = ")).unwrap_or_else(|| panic!("{dim}\n{}", found.text));
    rest.split([',', ' ']).next().unwrap().parse().unwrap()
}

const KERNEL: &str = "__global__ void frob(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n";

#[test]
fn names_of_a_launch_mean_what_they_mean_at_its_place() {
    let either = "block = [128] # check: a guess: `BLOCK` is `128` or `256`";
    for (host, block) in [
        (
            "void g() { const int BLOCK = 64; }\nvoid f(int n) { const int BLOCK = 256; frob<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(p, q, n); }",
            "block = [256]",
        ),
        (
            "const int BLOCK = 64;\nvoid f(int n) { const int BLOCK = 256; frob<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(p, q, n); }",
            "block = [256]",
        ),
        (
            "void f(int n) { const int BLOCK = 256; { const int BLOCK = 32; use(BLOCK); } frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }",
            "block = [256]",
        ),
        (
            "void f(int n) { int BLOCK = 256; for (int BLOCK = 0; BLOCK < 3; BLOCK++) use(BLOCK); frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }",
            "block = [256]",
        ),
        (
            "void f(int n) { const int A = 256; const int BLOCK = A; { const int A = 2; frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); } }",
            "block = [256]",
        ),
        (
            "#define BLOCK 64\nvoid g(int n) { other<<<1, BLOCK>>>(n); }\n#undef BLOCK\n#define BLOCK 256\nvoid f(int n) { frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }",
            "block = [256]",
        ),
        (
            "namespace a { const int BLOCK = 64; }\nnamespace b { const int BLOCK = 256;\nvoid f(int n) { frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); } }",
            "block = [256]",
        ),
        (
            "namespace a { const int BLOCK = 256; }\nconst int BLOCK = 64;\nvoid f(int n) { frob<<<ceil_div(n, a::BLOCK), a::BLOCK>>>(p, q, n); }",
            "block = [256]",
        ),
        (
            "struct C { static constexpr int BLOCK = 256; };\nconst int BLOCK = 64;\nvoid f(int n) { frob<<<ceil_div(n, C::BLOCK), C::BLOCK>>>(p, q, n); }",
            "block = [256]",
        ),
        (
            "struct L { void run(int n) { constexpr int BLOCK = 256; frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); } };",
            "block = [256]",
        ),
        ("void f(int n) { int BLOCK; BLOCK = 256; frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }", "block = [256]"),
        (
            "void f(int n) { int BLOCK = 128; if (n > 9) BLOCK = 256; frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }",
            either,
        ),
        (
            "void f(int n) { int BLOCK; if (n > 9) { BLOCK = 128; } else { BLOCK = 256; } frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }",
            either,
        ),
        (
            "#ifdef BIG\n#define BLOCK 128\n#else\n#define BLOCK 256\n#endif\nvoid f(int n) { frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }",
            either,
        ),
        (
            "#ifdef BIG\nconst int BLOCK = 128;\n#else\nconst int BLOCK = 256;\n#endif\nvoid f(int n) { frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }",
            either,
        ),
    ] {
        let found = of(&[("s.cu", &format!("{KERNEL}{host}"))]);
        let line = |l: &str| l.trim_start_matches("# ") == block;
        assert!(found.text.lines().any(line), "{host}\n{block}\n{}", found.text);
    }
    // A parameter of the launcher has no value, although a constant has its name.
    let host = "const int BLOCK = 64;\nvoid f(int n, int BLOCK) { frob<<<ceil_div(n, BLOCK), BLOCK>>>(p, q, n); }";
    let found = of(&[("s.cu", &format!("{KERNEL}{host}"))]);
    assert!(
        found.text.contains("block = [256] # check: a guess: the launcher does not state `BLOCK`"),
        "{}",
        found.text
    );
    // The launcher's `n` is not the kernel's.
    let host = "void f(int n) { frob<<<ceil_div(n, 64), 64>>>(p, q, n / 2); }";
    let found = of(&[("s.cu", &format!("{KERNEL}{host}"))]);
    assert!(
        !found.text.contains("grid = [\"ceil_div(n, 64)\"]\n") || found.text.contains("\"n // 2\""),
        "{}",
        found.text
    );
}

#[test]
fn launches_in_every_form_are_read() {
    for host in [
        "void f(float *x, float *y, int n) { void *args[] = { &x, (void *)&y, &n }; cudaLaunchKernel((void *)frob, dim3((n + 63) / 64), dim3(64), args, 0, stream); }",
        "void f(float *x, float *y, int n) { void *args[] = {&x, &y, &n}; cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(&frob), ceil_div(n, 64), 64, args, 0, 0); }",
        "void f(float *x, float *y, int n) { cudaLaunchConfig_t config = {}; config.gridDim = ceil_div(n, 64); config.blockDim = 64; config.stream = s; cudaLaunchKernelEx(&config, frob, x, y, n); }",
        "void f(float *x, float *y, int n) { auto kernel = &frob; kernel<<<ceil_div(n, 64), 64>>>(x, y, n); }",
        "void f(float *x, float *y, int n) { void (*kernel)(const float *, float *, int) = frob; kernel<<<ceil_div(n, 64), 64>>>(x, y, n); }",
    ] {
        let found = of(&[("s.cu", &format!("{KERNEL}{host}"))]);
        assert!(found.kernels[0].launched.is_some(), "{host}");
        says(&found, &["grid = [\"ceil_div(n, 64)\"]", "block = [64]", "args = [\"x\", \"y\", \"n\"]"]);
        assert!(!found.text.contains("# check: state it"), "{host}\n{}", found.text);
    }
    for grid in ["n > 4096 ? 64 : 32", "blocks_for(n)", "dims[0]"] {
        let found = of(&[(
            "s.cu",
            &format!("{KERNEL}void f(float *x, float *y, int n) {{ frob<<<{grid}, 64, 0, stream>>>(x, y, n); }}"),
        )]);
        says(&found, &["grid = [\"ceil_div(n, 64)\"]", "block = [64]"]);
        assert!(
            found.text.contains(&format!("# check: state it; the source has `{grid}` at s.cu:2")),
            "{}",
            found.text
        );
    }
}

#[test]
fn names_that_mean_something_else_in_a_manifest_get_others() {
    for name in [
        "in",
        "is",
        "role",
        "target",
        "arch",
        "tolerance",
        "f32",
        "i32",
        "max",
        "min",
        "exp",
        "builtin",
        "names",
        "got",
        "x__",
        "$x",
        "not_",
        "sm_count",
        "iteration",
        "none",
        "ceil_div",
    ] {
        for kernel in ["frob", "relu", "add", "softmax", "sgemm", "sum", "transpose", "layer_norm"] {
            let text = format!("__global__ void {kernel}(const float *{name}, float *b, int n, int m) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n * m) b[i] = {name}[i]; }}
__global__ void {kernel}_2(const float *a, const float *b, float *{name}, int M, int N, int K) {{ {name}[0] = a[0] * b[0]; }}
__global__ void {kernel}_3(const float *a, float *b, int {name}) {{ if (threadIdx.x < {name}) b[0] = a[0]; }}
__global__ void {kernel}_4(const float *a, float *b, int n, float {name}) {{ b[0] = a[0] * {name}; }}
void f(int {name}, int k) {{ {kernel}<<<ceil_div({name} * k, 64), 64>>>(p, q, {name}, k); {kernel}_3<<<ceil_div({name}, 64), 64>>>(p, q, {name}); {kernel}_4<<<{name}, 64>>>(p, q, k, 2.0f); }}");
            let found = of(&[("s.cu", &text)]);
            assert!(found.kernels.iter().all(|kernel| kernel.refused.is_none()), "{}", found.text);
        }
    }
    let found = of(&[(
        "s.cu",
        "__global__ void relu(const float *in, float *in_, int n) { int i = threadIdx.x; if (i < n) in_[i] = fmaxf(in[i], 0.f); }",
    )]);
    says(&found, &["args = [\"in_2\", \"in_\", \"n\"]", "inputs.in_2 = { dtype = \"f32\", shape = [\"n\"] }"]);
}

#[test]
fn a_guess_says_why_it_is_one() {
    let types = "#if HALF\ntypedef half real;\n#else\ntypedef float real;\n#endif\n";
    let found = of(&[("s.cu", &format!("{types}{}", KERNEL.replace("float", "real").replace("frob", "copy")))]);
    assert!(found.text.contains("# check: the dtype: `real` is `half` or `float`"), "{}", found.text);
    let found = of(&[(
        "s.cu",
        &format!(
            "typedef half real;\ntemplate <typename T> {}void f(int n) {{ copy<real><<<ceil_div(n, 32), 32>>>(p, q, n); }}",
            KERNEL.replace("float", "T").replace("frob", "copy")
        ),
    )]);
    says(&found, &["entry = \"copy<real>\"", "inputs.x = { dtype = \"f16\", shape = [\"n\"] }"]);
    let found = of(&[("s.cu", "__global__ void frob(const float4 *x, float *y, int n) { y[0] = x[n].x; }")]);
    assert!(
        found.text.contains("shape = [\"n\", 4] } # check: the shape is a guess: `n` may count elements of `float4`"),
        "{}",
        found.text
    );
    let body = "int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x; if (r < M && c < N) { float s = 0; for (int k = 0; k < K; k++) s += INDEX; C[r * N + c] = s; }";
    for (index, settings, why) in [
        ("A[r * K + k] * B[k * N + c]", "", "`B` is stored as its shape says, by its index in the body"),
        ("A[r * K + k] * B[c * K + k]", "transpose_b = true, ", "`B` is stored transposed, by its index in the body"),
        ("A[k * M + r] * B[k * N + c]", "transpose_a = true, ", "`A` is stored transposed, by its index in the body"),
        ("load(A, r, k) * load(B, k, c)", "", "that `B` is stored by rows is a guess"),
    ] {
        let text = format!(
            "__global__ void sgemm(const float *A, const float *B, float *C, int M, int N, int K) {{ {} }}",
            body.replace("INDEX", index)
        );
        let found = of(&[("s.cu", &text)]);
        assert!(
            found.text.contains(&format!("builtin = \"matmul\", {settings}names")) && found.text.contains(why),
            "{index}\n{}",
            found.text
        );
    }
    let text = format!(
        "__global__ void hgemm_tn(const float *A, const float *B, float *C, int M, int N, int K) {{ {} }}",
        body.replace("INDEX", "load(A) * load(B)")
    );
    let found = of(&[("s.cu", &text)]);
    assert!(
        found.text.contains("transpose_b = true") && found.text.contains("a guess from `tn` in the name"),
        "{}",
        found.text
    );
}

#[test]
fn kernels_of_one_name_and_kernels_of_headers_are_each_imported_once() {
    let of_block = |block: i64| {
        KERNEL.replace("frob", "copy")
            + &format!("void f(int n) {{ copy<<<ceil_div(n, {block}), {block}>>>(p, q, n); }}")
    };
    let found = of(&[("a.cu", &of_block(64)), ("b.cu", &KERNEL.replace("frob", "copy")), ("c.cu", &of_block(128))]);
    let seen: Vec<(&str, Option<String>)> =
        found.kernels.iter().map(|k| (k.name.as_str(), k.launched.as_ref().map(ToString::to_string))).collect();
    assert_eq!(seen, [("a_copy", Some("a.cu:2".into())), ("b_copy", None), ("c_copy", Some("c.cu:2".into()))]);
    for header in ["k.cuh", "k.h"] {
        let user = |block: i64| {
            format!("#include \"{header}\"\nvoid f(int n) {{ copy<<<ceil_div(n, {block}), {block}>>>(p, q, n); }}")
        };
        let found = of(&[("a.cu", &user(64)), ("b.cu", &user(64)), (header, &KERNEL.replace("frob", "copy"))]);
        assert_eq!(found.kernels.len(), 1, "{}", found.text);
        let source = if header == "k.h" { "source = \"a.cu\"" } else { "source = \"k.cuh\"" };
        says(&found, &[source, "block = [64]"]);
    }
    // Launched with several arguments of its template: the first, and a comment that names the others.
    let text = "template <int B> __global__ void copy(const float *x, float *y, int n) { int i = blockIdx.x * B + threadIdx.x; if (i < n) y[i] = x[i]; }
void f(int n) { copy<64><<<ceil_div(n, 64), 64>>>(p, q, n); copy<128><<<ceil_div(n, 128), 128>>>(p, q, n); copy<256><<<ceil_div(n, 256), 256>>>(p, q, n); }";
    let found = of(&[("s.cu", text)]);
    says(&found, &["entry = \"copy<64>\" # check: launched also as `copy<128>`, `copy<256>`", "block = [64]"]);
}

#[test]
fn a_kernel_that_kforge_refuses_is_a_comment_with_the_reason_and_the_others_stay() {
    // A block has at most 1024 threads.
    let kernel = "__global__ void relu(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = fmaxf(x[i], 0.f); }\n";
    let wrong = "void f(int n) { relu<<<ceil_div(n, 64), 2048>>>(p, q, n); }";
    let found = of(&[
        ("a.cu", &format!("{kernel}void f(int n) {{ relu<<<ceil_div(n, 64), 64>>>(p, q, n); }}")),
        ("b.cu", &format!("{kernel}{wrong}")),
    ]);
    let refused: Vec<bool> = found.kernels.iter().map(|k| k.refused.is_some()).collect();
    assert_eq!((refused, found.known), (vec![false, true], 1), "{}", found.text);
    assert!(found.text.contains("\n[kernel.a_relu]") && found.text.contains("\n# [kernel.b_relu]"), "{}", found.text);
    let found = import("mine", &BTreeMap::from([("b.cu".into(), format!("{kernel}{wrong}"))]), &["b.cu".into()]);
    loads(&found.text);
    assert!(found.text.contains("# kforge refuses this as it is: ") && found.known == 0, "{}", found.text);
}

#[test]
fn an_unknown_kernel_that_would_not_load_says_so() {
    let found = of(&[(
        "s.cu",
        "__global__ void frob(const float *x, int n) { use(x[n]); }\n__global__ void flagged(float *y, bool f, int n) { if (f) y[n] = 1; }",
    )]);
    assert!(found.text.contains("# dims = [\"n\"] # check: no parameter of the kernel is written"), "{}", found.text);
    assert_eq!(found.text.matches("# # kforge refuses this as it is: ").count(), 1, "{}", found.text);
    says(&found, &["args = [\"y\", { value = \"true\", dtype = \"bool\" }, \"n\"]"]);
    let found = of(&[("s.cu", &format!("{KERNEL}void f(int n) {{ frob<<<0, 2048>>>(p, q, n); }}"))]);
    assert!(found.text.contains("# # kforge refuses this as it is: "), "{}", found.text);
    // Nothing of the line is TOML once the kernel is no comment any more.
    assert!(completed(&found.text).contains("\n# kforge refuses this as it is: "), "{}", found.text);
}

#[test]
fn names_of_files_cannot_break_the_manifest() {
    for file in ["a\nb.cu", "a\"b.cu", "a'b.cu", "a\\b.cu", "ä.cu", "a\tb.cu"] {
        let found = of(&[(file, SCALE)]);
        assert_eq!((found.kernels.len(), found.known), (1, 1), "{}", found.text);
    }
}
