// A linear layer with bias and GELU (its tanh form) over a batch: blockIdx.z is the batch. Weights are [n, k], as frameworks keep them, so both operands are read
// along k. A thread makes four rows of one column.
#include <common/vec.cuh>

__device__ __forceinline__ float gelu_tanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}

template <class T, int TILE>
__global__ void __launch_bounds__(TILE *TILE / 4)
    linear(const T *__restrict__ a, const T *__restrict__ w, const T *__restrict__ bias, T *__restrict__ c, int m, int n, int k) {
  constexpr int ROWS = TILE / 4; // of threads
  __shared__ float as[TILE][TILE];
  __shared__ float ws[TILE][TILE + 1]; // read down its columns: the padding keeps them off one bank
  const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  const T *left = a + static_cast<size_t>(blockIdx.z) * m * k;
  T *out = c + static_cast<size_t>(blockIdx.z) * m * n;

  float sums[4] = {};
  for (int k0 = 0; k0 < k; k0 += TILE) {
    const int at = k0 + threadIdx.x;
#pragma unroll
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
      as[i][threadIdx.x] = row0 + i < m && at < k ? common::to_float(left[static_cast<size_t>(row0 + i) * k + at]) : 0.0f;
      ws[i][threadIdx.x] = col0 + i < n && at < k ? common::to_float(w[static_cast<size_t>(col0 + i) * k + at]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < TILE; kk++) {
      const float weight = ws[threadIdx.x][kk];
#pragma unroll
      for (int i = 0; i < 4; i++) sums[i] += as[threadIdx.y + i * ROWS][kk] * weight;
    }
    __syncthreads();
  }

  const int col = col0 + threadIdx.x;
  if (col >= n) return;
  const float offset = common::to_float(bias[col]);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = row0 + threadIdx.y + i * ROWS;
    if (row < m) out[static_cast<size_t>(row) * n + col] = common::from_float<T>(gelu_tanh(sums[i] + offset));
  }
}
