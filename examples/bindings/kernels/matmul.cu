// A matrix product in f16 with sums in f32. A block makes a tile of 64 by 64: for each 64 of k, one thread asks the copy engine for a tile of a and one of b, whose
// elements beyond the matrices are zeros, and four warps multiply them on tensor cores.
#include <cuda.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 64;

__device__ inline unsigned at(const void *shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

__device__ inline void load(void *tile, const CUtensorMap *map, int x, int y, unsigned long long *arrived) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(tile)), "l"(map), "r"(x), "r"(y),
               "r"(at(arrived))
               : "memory");
}

__device__ inline void wait(unsigned long long *arrived, unsigned phase) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(at(arrived)), "r"(phase) : "memory");
}

__global__ void __launch_bounds__(128)
    matmul(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *__restrict__ c, int m, int n, int k) {
  extern __shared__ unsigned char room[];
  // Copies arrive at multiples of 128 bytes.
  half *as = reinterpret_cast<half *>(room + (-at(room) & 127)), *bs = as + TILE * TILE;
  __shared__ alignas(8) unsigned long long arrived;
  const int row = blockIdx.y * TILE, col = blockIdx.x * TILE, warp = threadIdx.x / 32, top = warp / 2 * 32, left = warp % 2 * 32;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&arrived)));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
  for (auto &line : sums)
    for (auto &sum : line) wmma::fill_fragment(sum, 0.0f);
  unsigned phase = 0;
  for (int k0 = 0; k0 < k; k0 += TILE, phase ^= 1) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&arrived)), "r"(2 * TILE * TILE * 2) : "memory");
      load(as, &a, k0, row, &arrived);
      load(bs, &b, col, k0, &arrived);
    }
    wait(&arrived, phase);
    for (int kk = 0; kk < TILE; kk += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left_part[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right_part[2];
      for (int i = 0; i < 2; i++) {
        wmma::load_matrix_sync(left_part[i], as + (top + 16 * i) * TILE + kk, TILE);
        wmma::load_matrix_sync(right_part[i], bs + kk * TILE + left + 16 * i, TILE);
      }
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) wmma::mma_sync(sums[i][j], left_part[i], right_part[j], sums[i][j]);
    }
    __syncthreads();
  }
  // The tile of c takes the place of those of a and b.
  float *cs = reinterpret_cast<float *>(as);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) wmma::store_matrix_sync(cs + (top + 16 * i) * TILE + left + 16 * j, sums[i][j], TILE, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
    const int r = row + i / TILE, s = col + i % TILE;
    if (r < m && s < n) c[static_cast<size_t>(r) * n + s] = cs[i];
  }
}
