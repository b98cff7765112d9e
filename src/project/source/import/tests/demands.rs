//! Sizes that import drafts, and what it demands of them.

use super::*;

#[test]
fn an_unknown_kernel_is_tried_in_several_blocks_with_a_rest_on_each_axis() {
    for (launch, steps) in [
        ("frob<<<(n + 127) / 128, 128>>>(x, y, n, m);", [("n", 128), ("m", 1)]),
        (
            "dim3 block(16, 16); dim3 grid((n + 15) / 16, (m + block.y - 1) / block.y); frob<<<grid, block>>>(x, y, n, m);",
            [("n", 16), ("m", 16)],
        ),
        (
            "const int TILE = 32; dim3 grid(n, ceil_div(m, TILE * 4)); frob<<<grid, 256>>>(x, y, n, m);",
            [("n", 1), ("m", 128)],
        ),
        ("frob<<<ceil_div(n * 32, 128), 128>>>(x, y, n, m);", [("n", 4), ("m", 1)]),
        (
            "int threads = 64; frob<<<(n * m + threads * 4 - 1) / (threads * 4), threads>>>(x, y, n, m);",
            [("m", 256), ("n", 1)],
        ),
        ("frob<<<std::min(ceil_div(n, 512), 1024), 512>>>(x, y, n, m);", [("n", 512), ("m", 1)]),
        ("frob<<<blocks(n), 64>>>(x, y, n, m);", [("m", 64), ("n", 1)]),
    ] {
        let text = format!(
            "__global__ void frob(const float *x, float *y, int n, int m) {{ if (threadIdx.x < n) y[0] = x[m]; }}\nvoid f(float *x, float *y, int n, int m) {{ {launch} }}"
        );
        let found = of(&[("s.cu", &text)]);
        for (dim, step) in steps.into_iter().filter(|(_, step)| *step > 1) {
            let (small, ragged, large) =
                (size(&found, "small", dim), size(&found, "ragged", dim), size(&found, "large", dim));
            assert!(small < step && ragged > 2 * step && ragged % step != 0, "{launch}\n{}", found.text);
            assert!(large >= 2 * step && large % step == 0, "{launch}\n{}", found.text);
        }
        let all = ["small", "ragged", "large"].map(|shape| size(&found, shape, "n") * size(&found, shape, "m"));
        assert!(all.iter().all(|all| *all <= 1 << 17), "{launch} {all:?}");
        assert_eq!(found.text.matches(".shapes] # check: ").count(), 1);
    }
}

#[test]
fn sizes_that_hide_a_missing_check_are_not_demanded() {
    let kernel = |body: &str, grid: &str| {
        format!(
            "__global__ void relu(const float *x, float *y, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}\nvoid f(int n) {{ relu<<<{grid}, 128>>>(p, q, n); }}"
        )
    };
    let write = "y[i] = fmaxf(x[i], 0.f);";
    for (body, grid, demanded) in [
        // It forgot the check, or its launch forgot to round up.
        (write.to_string(), "(n + 127) / 128", false),
        (format!("if (i < n) {write}"), "n / 128", false),
        // Both agree on whole blocks.
        (write.to_string(), "n / 128", true),
        // A vector, with and without a rest.
        ("if (4 * i < n) reinterpret_cast<float4 *>(y)[i] = reinterpret_cast<const float4 *>(x)[i];".into(), "(n + 511) / 512", true),
        ("if (4 * i + 3 < n) reinterpret_cast<float4 *>(y)[i] = reinterpret_cast<const float4 *>(x)[i]; else for (int j = 4 * i; j < n; j++) y[j] = x[j];".into(), "(n + 511) / 512", false),
        ("if (4 * i < n) reinterpret_cast<float4 *>(y)[i] = reinterpret_cast<const float4 *>(x)[i]; else for (int j = 4 * i; j < n; j++) y[j] = x[j];".into(), "(n + 511) / 512", false),
        // A sum of a block also forgot it.
        (format!("__shared__ float tile[128]; tile[threadIdx.x] = x[i]; __syncthreads(); {write}"), "(n + 127) / 128", false),
    ] {
        let found = of(&[("s.cu", &kernel(&body, grid))]);
        assert_eq!(found.text.contains("requires = "), demanded, "{body} {grid}\n{}", found.text);
        assert!(!found.text.contains("# kforge refuses"), "{}", found.text);
    }
}

#[test]
fn whole_tiles_are_demanded_of_a_matrix_kernel_without_any_check_alone() {
    for (check, demanded) in [("", true), ("if (x < m)", false), ("if (x < m && y < n)", false)] {
        let text = format!("__global__ void transpose(const float *a, float *b, int n, int m) {{ __shared__ float tile[16][17]; int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; tile[threadIdx.y][threadIdx.x] = a[y * m + x]; __syncthreads(); {check} b[x * n + y] = tile[threadIdx.y][threadIdx.x]; }}
void f(int n, int m) {{ dim3 grid((m + 15) / 16, (n + 15) / 16); transpose<<<grid, dim3(16, 16)>>>(p, q, n, m); }}");
        let found = of(&[("s.cu", &text)]);
        assert_eq!(found.text.contains("requires = "), demanded, "{check}\n{}", found.text);
        assert!(!demanded || found.text.contains("if it must serve every size, remove this line"), "{}", found.text);
    }
}

#[test]
fn a_loop_by_the_threads_of_a_block_is_gone_through_three_times_with_a_rest() {
    for (block, step) in [("blockDim.x", 1024), ("blockDim.x", 128), ("512", 512)] {
        let text = format!("__global__ void softmax_k(const float *x, float *y, int rows, int cols) {{ float s = 0; for (int i = threadIdx.x; i < cols; i += {block}) s += x[blockIdx.x * cols + i]; y[blockIdx.x * cols] = s; }}
void f(float *a, float *b, int rows, int cols) {{ softmax_k<<<rows, {step}>>>(a, b, rows, cols); }}");
        let found = of(&[("s.cu", &text)]);
        let ragged = size(&found, "ragged", "cols");
        assert!(ragged > 2 * step && ragged % step != 0 && ragged & (ragged - 1) != 0, "{}", found.text);
        assert!(size(&found, "large", "cols") != size(&found, "large", "rows"), "{}", found.text);
    }
    let square = "__global__ void transpose(const float *a, float *b, int n, int m) { int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; if (x < m && y < n) b[x * n + y] = a[y * m + x]; }
void f(int n, int m) { dim3 grid((m + 15) / 16, (n + 15) / 16); transpose<<<grid, dim3(16, 16)>>>(p, q, n, m); }";
    let found = of(&[("s.cu", square)]);
    assert_ne!(size(&found, "large", "n"), size(&found, "large", "m"), "{}", found.text);
}

#[test]
fn a_name_alone_says_nothing_of_vectors() {
    let text = "__global__ void scale_f32x4(const float *x, float *y, float a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n / 4 * 4) y[i] = a * x[i]; }
void f(float a, int n) { scale_f32x4<<<(n + 255) / 256, 256>>>(p, q, a, n); }";
    let found = of(&[("s.cu", text)]);
    assert!(
        found.known == 1 && !found.text.contains("requires") && size(&found, "ragged", "n") % 4 != 0,
        "{}",
        found.text
    );
}

#[test]
fn what_host_code_checks_before_a_launch_is_required() {
    let launch = "relu<<<(n / 4 + 63) / 64, 64>>>(p, q, n);";
    for (host, demanded) in [
        ("TORCH_CHECK(n % 4 == 0, \"n\"); LAUNCH", true),
        ("assert(n > 0 && n % 4 == 0); LAUNCH", true),
        ("if (n % 4 != 0) return; LAUNCH", true),
        ("if (n % 4) { throw 1; } LAUNCH", true),
        ("if (!(n % 4 == 0)) { return; } LAUNCH", true),
        ("if (n % 4 == 0) { LAUNCH }", true),
        ("if (n < 1 || n % 4 != 0) return; LAUNCH", true),
        ("if (n % 4 == 0) { return; } LAUNCH", false),
        ("if (n % 4 != 0) { LAUNCH }", false),
        ("if (n % 4 != 0) use(n); LAUNCH", false),
        ("assert(n == 1 || n % 4 == 0); LAUNCH", false),
        ("if (n > 9) { assert(n % 4 == 0); } LAUNCH", false),
        ("int rest = n % 4; LAUNCH", false),
        ("LAUNCH", false),
    ] {
        let text = format!("__global__ void relu(const float *x, float *y, int count) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (4 * i < count) reinterpret_cast<float4 *>(y)[i] = reinterpret_cast<const float4 *>(x)[i]; else for (int j = 4 * i; j < count; j++) y[j] = x[j]; }}
void f(int n) {{ {} }}", host.replace("LAUNCH", launch));
        let found = of(&[("s.cu", &text)]);
        let line = "requires = [\"count % 4 == 0\"] # check: host code checks that 4 divides `count` before the launch";
        assert_eq!(found.text.contains(line), demanded, "{host}\n{}", found.text);
    }
    let tensors = "__global__ void softmax_k(const float *x, float *y, int rows, int cols) { y[blockIdx.x] = x[cols]; }
void f(torch::Tensor t) { int m = t.size(0); int n = t.size(1); TORCH_CHECK(n % 8 == 0, \"n\"); softmax_k<<<m, 64>>>(p, q, m, n); }";
    says(
        &of(&[("s.cu", tensors)]),
        &["requires = [\"cols % 8 == 0\"] # check: host code checks that 8 divides `cols` before the launch"],
    );
}
