//! Tests of what import reads from sources and writes into a manifest, on texts. `tests/cli` and `tests/e2e` run the command and build what it writes.

use std::collections::BTreeMap;

use super::{ImportedManifest, import};

fn of(files: &[(&str, &str)]) -> ImportedManifest {
    let files: BTreeMap<String, String> = files.iter().map(|(n, t)| (n.to_string(), t.to_string())).collect();
    let mains: Vec<String> = files.keys().cloned().collect();
    let found = import("mine", &files, &mains);
    assert!(found.text.parse::<toml_edit::DocumentMut>().is_ok(), "{}", found.text);
    found
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
        &["grid = [\"ceil_div(n, 256)\"] # check: state it; the source has `blocks_of(x)` at s.cu:5", "block = [128]"],
    );
    let found = of(&[("s.cu", SCALE)]);
    says(&found, &["block = [256] # check: state it; no launch was found"]);
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
    let block = "block = [256] # check: `block_size` is the launcher's parameter; 256 is a usual value";
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
    assert!(found.text.contains("reference = \"\" # check: state what it computes"), "{}", found.text);
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
    says(&found, &["requires = [\"N % 4 == 0\"]", "small = { N = 512 }", "ragged = { N = 1003 }"]);
    assert_eq!(found.text.matches("requires").count(), 1, "{}", found.text);
    // Alone, the vectorized kernel decides which shapes there are.
    let alone = of(&[("s.cu", text.lines().last().unwrap())]);
    says(&alone, &["[operator.relu_f32]", "requires = [\"N % 4 == 0\"]", "ragged = { N = 996 }"]);
}
