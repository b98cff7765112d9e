// f16 matrix product on tensor cores by warp matrix functions: a block makes 64 x 64 of c with four warps, each 32 x 32 as two by two fragments, DEPTH of k at a
// time. Accumulated in f32 and rounded once.
#include <common/vec.cuh>
#include <mma.h>

namespace wmma = nvcuda::wmma;

// Copies a tile of ROWS x COLS from a row-major matrix, zeros beyond its edges. Eight elements an access where rows of the matrix start on sixteen bytes.
template <int ROWS, int COLS, int LINE>
__device__ void load_tile(__half *tile, const __half *from, int row0, int col0, int rows, int cols) {
  for (int i = threadIdx.x; i < ROWS * COLS / 8; i += 128) {
    const int r = i / (COLS / 8), c = i % (COLS / 8) * 8;
    const int row = row0 + r, col = col0 + c;
    common::Vec<__half, 8> v;
    if (cols % 8 == 0 && row < rows && col < cols) {
      v = common::load<8>(from + static_cast<size_t>(row) * cols + col);
    } else {
#pragma unroll
      for (int j = 0; j < 8; j++) {
        v.at[j] = row < rows && col + j < cols ? from[static_cast<size_t>(row) * cols + col + j] : __float2half(0.0f);
      }
    }
    common::store<8>(tile + r * LINE + c, v);
  }
}

template <int DEPTH>
__global__ void __launch_bounds__(128)
    hgemm(const __half *__restrict__ a, const __half *__restrict__ b, __half *__restrict__ c, int m, int n, int k) {
  constexpr int TILE = 64;
  // Eight halves of padding move each row by four banks, so that fragments load without conflicts.
  constexpr int LINE_A = DEPTH + 8, LINE_B = TILE + 8, LINE_C = TILE + 4;
  extern __shared__ __align__(32) unsigned char raw[];
  __half *as = reinterpret_cast<__half *>(raw), *bs = as + TILE * LINE_A;
  const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  const int warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) wmma::fill_fragment(sums[i][j], 0.0f);
  }
  for (int k0 = 0; k0 < k; k0 += DEPTH) {
    load_tile<TILE, DEPTH, LINE_A>(as, a, row0, k0, m, k);
    load_tile<DEPTH, TILE, LINE_B>(bs, b, k0, col0, k, n);
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < DEPTH; kk += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb[2];
      for (int i = 0; i < 2; i++) {
        wmma::load_matrix_sync(fa[i], as + (warp_row + i * 16) * LINE_A + kk, LINE_A);
        wmma::load_matrix_sync(fb[i], bs + kk * LINE_B + warp_col + i * 16, LINE_B);
      }
      for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) wmma::mma_sync(sums[i][j], fa[i], fb[j], sums[i][j]);
      }
    }
    __syncthreads(); // before tiles are overwritten, by the next step or by c
  }

  // Which lane holds what of a fragment is the hardware's secret: c goes through shared memory to be rounded and cut at the edges.
  float *cs = reinterpret_cast<float *>(raw);
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) {
      wmma::store_matrix_sync(cs + (warp_row + i * 16) * LINE_C + warp_col + j * 16, sums[i][j], LINE_C, wmma::mem_row_major);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
    const int row = row0 + i / TILE, col = col0 + i % TILE;
    if (row < m && col < n) c[static_cast<size_t>(row) * n + col] = __float2half(cs[i / TILE * LINE_C + i % TILE]);
  }
}
