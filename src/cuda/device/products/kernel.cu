// The oracle's matrix product on a device, to the very bits of the host's (`reference/gemm.rs`): 256 terms of a dot product at a time, in order, each added by one fused
// multiply-add to a sum that begins with zero, and the blocks' sums added in order. `kernel.ptx` is made of this file by NVRTC, as
// `tests/toolchain_network/own_kernels.rs` says: after an edit, by `SNAPSHOTS=overwrite cargo test --test acquire own_kernels`.

typedef unsigned int u32;
typedef unsigned long long u64;

// A block of 256 threads makes 64 x 64 elements, a thread 4 x 4 of them that lie 16 apart.
enum : u32 { TILE = 64, EACH = 4, DEPTH = 16, TERMS = 256 };

struct Matrix {
    const double* first;
    u64 row;
    u64 column;
};

// Copies `TILE` rows and `DEPTH` columns of a matrix, transposed, zeros beyond its end; neighbours in memory to neighbouring threads.
static __device__ __forceinline__ void stage(double (*to)[TILE + 1], Matrix from, u64 row, u64 rows, u64 column, u64 columns) {
    for (u32 at = threadIdx.x; at < TILE * DEPTH; at += 256) {
        u32 i = from.column == 1 ? at / DEPTH : at % TILE;
        u32 l = from.column == 1 ? at % DEPTH : at / TILE;
        bool within = row + i < rows && column + l < columns;
        to[l][i] = within ? from.first[(row + i) * from.row + (column + l) * from.column] : 0.0;
    }
}

// `c` is row-major without gaps; rows from `top` on are made, as many as there are blocks along y. A term beyond the end is a product of zeros, and adding it
// changes no sum: sums begin with +0, and no sum of finite terms that do not vanish ends as -0.
extern "C" __global__ void __launch_bounds__(256) kforge_product(
    const double* a, u64 a_row, u64 a_column, const double* b, u64 b_row, u64 b_column, double* c, u64 m, u64 k, u64 n, u64 top) {
    __shared__ double left[DEPTH][TILE + 1];
    __shared__ double right[DEPTH][TILE + 1];
    u64 row = top + (u64)blockIdx.y * TILE;
    u64 column = (u64)blockIdx.x * TILE;
    u32 x = threadIdx.x % 16;
    u32 y = threadIdx.x / 16;
    // The columns of `b` are the rows of what is staged.
    Matrix of_a = {a, a_row, a_column};
    Matrix of_b = {b, b_column, b_row};
    double total[EACH][EACH] = {};
    for (u64 block = 0; block < k; block += TERMS) {
        double sum[EACH][EACH] = {};
        u64 end = block + TERMS < k ? block + TERMS : k;
        for (u64 from = block; from < end; from += DEPTH) {
            __syncthreads();
            stage(left, of_a, row, m, from, end);
            stage(right, of_b, column, n, from, end);
            __syncthreads();
#pragma unroll
            for (u32 l = 0; l < DEPTH; ++l) {
                double p[EACH];
                double q[EACH];
#pragma unroll
                for (u32 i = 0; i < EACH; ++i) p[i] = left[l][y + 16 * i];
#pragma unroll
                for (u32 j = 0; j < EACH; ++j) q[j] = right[l][x + 16 * j];
#pragma unroll
                for (u32 i = 0; i < EACH; ++i) {
#pragma unroll
                    for (u32 j = 0; j < EACH; ++j) sum[i][j] = __fma_rn(p[i], q[j], sum[i][j]);
                }
            }
        }
#pragma unroll
        for (u32 i = 0; i < EACH; ++i) {
#pragma unroll
            for (u32 j = 0; j < EACH; ++j) total[i][j] = __dadd_rn(total[i][j], sum[i][j]);
        }
    }
#pragma unroll
    for (u32 i = 0; i < EACH; ++i) {
#pragma unroll
        for (u32 j = 0; j < EACH; ++j) {
            u64 r = row + y + 16 * i;
            u64 s = column + x + 16 * j;
            if (r < m && s < n) c[r * n + s] = total[i][j];
        }
    }
}
