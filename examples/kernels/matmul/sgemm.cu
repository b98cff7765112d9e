// f32 matrix product by tiles of TILE x TILE, four by four elements a thread, DEPTH of k at a time, in two stages: while one is multiplied the next is fetched.
// ASYNC: by asynchronous copies (compute capability 8.0 and later); else by plain loads and stores.
#include <cuda_pipeline.h>

template <bool ASYNC> __device__ __forceinline__ void fetch(float *to, const float *from, bool inside) {
  if (!inside) {
    *to = 0.0f; // adds nothing; the address may not even exist
  } else if constexpr (ASYNC) {
    __pipeline_memcpy_async(to, from, sizeof(float));
  } else {
    *to = *from;
  }
}

template <int TILE, int DEPTH, bool ASYNC>
__global__ void __launch_bounds__((TILE / 4) * (TILE / 4))
    sgemm(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k) {
  constexpr int SIDE = TILE / 4, THREADS = SIDE * SIDE;
  constexpr int LINE = TILE + 4; // rows stay on sixteen bytes, columns spread over banks
  constexpr int STAGE = 2 * DEPTH * LINE;
  extern __shared__ __align__(16) float stages[]; // each: a transposed, [DEPTH][LINE]; then b, [DEPTH][LINE]
  const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;

  const auto fetch_stage = [&](int stage, int k0) {
    float *as = stages + stage * STAGE, *bs = as + DEPTH * LINE;
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
      const int row = row0 + i / DEPTH, kk = i % DEPTH;
      fetch<ASYNC>(as + kk * LINE + i / DEPTH, a + static_cast<size_t>(row) * k + k0 + kk, row < m && k0 + kk < k);
    }
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
      const int kk = i / TILE, col = col0 + i % TILE;
      fetch<ASYNC>(bs + kk * LINE + i % TILE, b + static_cast<size_t>(k0 + kk) * n + col, k0 + kk < k && col < n);
    }
    if constexpr (ASYNC) __pipeline_commit();
  };

  float sums[4][4] = {};
  const int steps = (k + DEPTH - 1) / DEPTH;
  fetch_stage(0, 0);
  for (int step = 0; step < steps; step++) {
    if (step + 1 < steps) fetch_stage((step + 1) % 2, (step + 1) * DEPTH);
    // All but the newest copies must have landed; at the last step there is no newer one.
    if constexpr (ASYNC) {
      if (step + 1 < steps) {
        __pipeline_wait_prior(1);
      } else {
        __pipeline_wait_prior(0);
      }
    }
    __syncthreads(); // a thread waits for its own copies only: the barrier tells it of the others'
    const float *as = stages + step % 2 * STAGE, *bs = as + DEPTH * LINE;
#pragma unroll
    for (int kk = 0; kk < DEPTH; kk++) {
      const float4 x = *reinterpret_cast<const float4 *>(as + kk * LINE + ty * 4);
      const float4 y = *reinterpret_cast<const float4 *>(bs + kk * LINE + tx * 4);
      const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] += xs[i] * ys[j];
      }
    }
    __syncthreads(); // before the next step's fetch overwrites this stage
  }

#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = row0 + ty * 4 + i;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int col = col0 + tx * 4 + j;
      if (row < m && col < n) c[static_cast<size_t>(row) * n + col] = sums[i][j];
    }
  }
}
