//! Constants of host code as import reads them.

use super::*;

#[test]
fn every_declarator_of_a_declaration_is_a_constant() {
    for declared in [
        "constexpr int kT = 128, kItems = 4;",
        "const int kT = 128, kItems = 4;",
        "static constexpr unsigned kT{128}, kItems{kT / 32};",
        "namespace { constexpr int kT = 128, kItems = kT / 32; }",
        "namespace ns { constexpr int kT = 128, kItems = 4; } using namespace ns;",
        "int const kT = 128, kItems = 4;",
    ] {
        let inner = declared.strip_prefix("namespace ns { ").map(|_| "ns::").unwrap_or_default();
        let source = format!(
            "{declared}\n__global__ void relu_kernel(float *y, const float *x, int numel) {{ int b = blockIdx.x * {inner}kT * {inner}kItems + threadIdx.x; for (int j = 0; j < {inner}kItems; ++j) if (b + j * {inner}kT < numel) y[b + j * {inner}kT] = fmaxf(x[b + j * {inner}kT], 0.f); }}\n\
             void go(const float *a, float *c, int n) {{ relu_kernel<<<(n + {inner}kT * {inner}kItems - 1) / ({inner}kT * {inner}kItems), {inner}kT>>>(c, a, n); }}"
        );
        let found = of(&[("a.cu", &source)]);
        says(&found, &["dims = [\"numel\"]", "grid = [\"ceil_div(numel, 512)\"]", "block = [128]"]);
    }
    // A long list.
    let list: String = (0..30).map(|at| format!("k{at} = {at}, ")).collect();
    let long = format!(
        "constexpr int {list}kLast = 64;\n__global__ void copy(float *y, const float *x, int n) {{ int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = x[i]; }}\nvoid go(const float *a, float *c, int n) {{ copy<<<(n + kLast - 1) / kLast, kLast>>>(c, a, n); }}"
    );
    says(&of(&[("a.cu", &long)]), &["dims = [\"n\"]", "grid = [\"ceil_div(n, 64)\"]", "block = [64]"]);
    let braced = long
        .replace(
            &format!("constexpr int {list}kLast = 64;"),
            "struct S { static constexpr int kOther{2}, kLast{64}; };",
        )
        .replace("go(const", "S_go(const")
        .replace("+ kLast - 1) / kLast, kLast", "+ S::kLast - 1) / S::kLast, S::kLast");
    says(&of(&[("a.cu", &braced)]), &["dims = [\"n\"]", "grid = [\"ceil_div(n, 64)\"]", "block = [64]"]);
    // In a class, for its functions and for others.
    for (launcher, name) in [("", "S::"), ("static void run(const float *a, float *c, int n) { LAUNCH }", "")] {
        let launch =
            format!("copy<<<(n + {name}kT * {name}kItems - 1) / ({name}kT * {name}kItems), {name}kT>>>(c, a, n);");
        let source = format!(
            "__global__ void copy(float *y, const float *x, int n) {{ int i = blockIdx.x * 512 + threadIdx.x; for (int j = 0; j < 4; ++j) if (i + j * 128 < n) y[i + j * 128] = x[i + j * 128]; }}\n\
             struct S {{ static constexpr int kT = 128, kItems = 4; {} }};\n{}",
            launcher.replace("LAUNCH", &launch),
            if name.is_empty() {
                String::new()
            } else {
                format!("void go(const float *a, float *c, int n) {{ {launch} }}")
            },
        );
        says(&of(&[("a.cu", &source)]), &["dims = [\"n\"]", "grid = [\"ceil_div(n, 512)\"]", "block = [128]"]);
    }
    // In the function.
    let local = "__global__ void copy(float *y, const float *x, int n) { int i = blockIdx.x * 512 + threadIdx.x; for (int j = 0; j < 4; ++j) if (i + j * 128 < n) y[i + j * 128] = x[i + j * 128]; }\n\
        void go(const float *a, float *c, int n) { const int t = 128, items = 4; copy<<<(n + t * items - 1) / (t * items), t>>>(c, a, n); }";
    says(&of(&[("a.cu", local)]), &["dims = [\"n\"]", "grid = [\"ceil_div(n, 512)\"]", "block = [128]"]);
    // The value of a template is no constant.
    let template = "template <int N = 4> constexpr int twice = 2 * N;\n__global__ void copy(float *y, const float *x, int N) { int i = blockIdx.x * 64 + threadIdx.x; if (i < N) y[i] = x[i]; }\n\
        void go(const float *a, float *c, int N) { copy<<<(N + 63) / 64, 64>>>(c, a, N); }";
    says(&of(&[("a.cu", template)]), &["dims = [\"N\"]", "grid = [\"ceil_div(N, 64)\"]"]);
}
