//! Sizes of drafts by the launches of kernels: those at which an honest kernel passes, and one that forgot a loop fails.

use super::*;

const COPY: &str = "__global__ void copy(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }";
const NORM: &str = "__global__ void rms_norm_kernel(float *out, const float *x, const float *w, float eps, int tokens, int h) { __shared__ float s; float v = 0; for (int i = threadIdx.x; i < h; i += blockDim.x) v += x[blockIdx.x * h + i]; v = block_sum(v); if (threadIdx.x == 0) s = v; __syncthreads(); for (int i = threadIdx.x; i < h; i += blockDim.x) out[blockIdx.x * h + i] = x[blockIdx.x * h + i] * s * w[i]; }";

fn launched(kernel: &str, launch: &str) -> ImportedManifest {
    of(&[("a.cu", &format!("{kernel}\nvoid go(float *x, float *w, float *y, int m, int n) {{ {launch} }}"))])
}

fn all(found: &ImportedManifest, dim: &str) -> [i64; 3] {
    ["small", "ragged", "large"].map(|shape| size(found, shape, dim))
}

#[test]
fn a_block_that_follows_a_dim_has_whole_warps_below_its_limit_and_a_rest_above() {
    for (block, cap, warp) in [
        ("std::min(n, 1024)", 1024, 32),
        ("min(512, n)", 512, 32),
        ("std::max(std::min(n, 256), 32)", 256, 32),
        ("std::min(n / 4, 1024)", 4096, 128),
        ("std::min(n, 64)", 64, 32),
        // Blocks are whole warps at every size.
        ("std::min((n + 31) / 32 * 32, 1024)", 1024, 1),
    ] {
        let found = launched(NORM, &format!("rms_norm_kernel<<<m, {block}>>>(y, x, w, 1e-5f, m, n);"));
        let [small, ragged, large] = all(&found, "h");
        assert!(small < cap && small % warp == 0 && (warp > 1 || small % 32 != 0), "{block}\n{}", found.text);
        assert!(ragged > cap && ragged % warp.max(32) != 0, "{block}\n{}", found.text);
        assert!(large >= cap && large % cap == 0, "{block}\n{}", found.text);
        if cap == 1024 {
            assert_eq!(ragged, 1024 + 97, "{}", found.text);
        }
        assert!(all(&found, "tokens").iter().all(|rows| *rows < 128), "{}", found.text);
    }
}

#[test]
fn a_block_that_follows_a_dim_of_the_grid_is_several_blocks_and_a_rest() {
    let found = launched(COPY, "copy<<<(n + 255) / 256, std::min(n, 256)>>>(x, y, n);");
    let [small, ragged, large] = all(&found, "n");
    assert!(small < 256 && small % 32 == 0 && ragged > 512 && ragged % 32 != 0 && large >= 512, "{}", found.text);
}

#[test]
fn columns_of_the_threads_of_a_block_exceed_them() {
    let sum = "__global__ void sum_rows(const float *x, float *y, int rows, int cols) { __shared__ float s[256]; int t = threadIdx.x; s[t] = t < cols ? x[blockIdx.x * cols + t] : 0.f; __syncthreads(); for (int o = 128; o; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); } if (t == 0) y[blockIdx.x] = s[0]; }";
    for threads in [32, 64, 256, 1024] {
        let found = launched(sum, &format!("sum_rows<<<m, {threads}>>>(x, y, m, n);"));
        let [small, ragged, _] = all(&found, "cols");
        assert!(small < threads && ragged > threads && ragged % 32 != 0, "{}", found.text);
    }
    // Where that makes the ragged sizes too many, the small ones.
    let frob = "__global__ void frob(const float *x, float *y, int n, int m) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n && m > 3) y[i] = x[i]; }";
    let found = launched(frob, "frob<<<ceil_div(n, 512), 512>>>(x, y, n, m);");
    assert!(size(&found, "small", "m") > 512 && size(&found, "small", "n") < 512, "{}", found.text);
    // A kernel whose threads take several columns each serves as many as a number of its own says.
    let unrolled = "__global__ void sum_rows(const float *x, float *y, int rows, int cols) { float v = 0; for (int i = 0; i < 4; ++i) { int c = threadIdx.x + i * 32; if (c < cols) v += x[blockIdx.x * cols + c]; } for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o); if (threadIdx.x == 0) y[blockIdx.x] = v; }";
    let found = launched(unrolled, "sum_rows<<<m, 32>>>(x, y, m, n);");
    assert!(all(&found, "cols").iter().all(|cols| *cols <= 32), "{}", found.text);
    // A kernel that loops shares the operator, and its blocks take more.
    let looped = sum.replace("sum_rows", "sum_loop").replace(
        "s[t] = t < cols ? x[blockIdx.x * cols + t] : 0.f;",
        "float v = 0; for (int c = t; c < cols; c += 512) v += x[blockIdx.x * cols + c]; s[t] = v;",
    );
    let found =
        launched(&format!("{sum}\n{looped}"), "sum_rows<<<m, 256>>>(x, y, m, n); sum_loop<<<m, 512>>>(x, y, m, n);");
    assert_eq!(found.operators, 1, "{}", found.text);
    assert!(size(&found, "ragged", "cols") > 2 * 512, "{}", found.text);
}

#[test]
fn a_grid_with_a_limit_is_gone_through_more_than_once_with_a_rest() {
    for (grid, total) in [
        ("std::min((n + 255) / 256, 1024)", 1024 * 256),
        ("std::min(65536 / 256, (n + 255) / 256)", 256 * 256),
        ("std::min((n + 255) / 256, 16)", 16 * 256),
    ] {
        let found = launched(COPY, &format!("copy<<<{grid}, 256>>>(x, y, n);"));
        let sizes = all(&found, "n");
        let over = |n: &i64| *n > total && n % 256 != 0 && *n < 2 * total;
        assert!(sizes.iter().any(over) && sizes[0] < 256, "{grid}\n{}", found.text);
        // A small limit needs no large shape.
        assert_eq!(over(&sizes[1]), total <= 8192, "{}", found.text);
    }
    // Millions of elements are not tried.
    let found = launched(COPY, "copy<<<std::min((n + 255) / 256, 65535), 256>>>(x, y, n);");
    assert_eq!(size(&found, "large", "n"), 65536, "{}", found.text);
    // Two dims, and a limit of rows.
    let plane = "__global__ void copy(const float *x, float *y, int rows, int cols) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += gridDim.x * blockDim.x) y[i] = x[i]; }";
    let found = launched(plane, "copy<<<std::min((m * n + 255) / 256, 512), 256>>>(x, y, m, n);");
    assert!(size(&found, "large", "rows") * size(&found, "large", "cols") > 512 * 256, "{}", found.text);
    let found = launched(NORM, "rms_norm_kernel<<<std::min(m, 1024), 256>>>(y, x, w, 1e-5f, m, n);");
    assert!(size(&found, "large", "tokens") > 1024 && size(&found, "large", "h") > 512, "{}", found.text);
    let found = launched(NORM, "rms_norm_kernel<<<std::min(m, 16384), 256>>>(y, x, w, 1e-5f, m, n);");
    let (rows, cols) = (size(&found, "large", "tokens"), size(&found, "large", "h"));
    assert!(rows > 16384 && rows * cols <= 1 << 22, "{}", found.text);
}
