// Softmax of short rows: a warp a row, which it holds in registers, ITEMS values a lane. One reading, one writing, no shared memory, no block barrier.
#include <common/reduce.cuh>

template <int BLOCK, int ITEMS>
__global__ void __launch_bounds__(BLOCK) softmax_warp(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
  if (row >= rows) return; // the whole warp
  const float *in = x + static_cast<size_t>(row) * cols;
  float *out = y + static_cast<size_t>(row) * cols;

  float held[ITEMS]; // unrolled throughout, or it would live in local memory
  float peak = -INFINITY;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const int col = i * 32 + lane;
    held[i] = col < cols ? in[col] : -INFINITY; // exp(-inf) adds nothing
    peak = fmaxf(peak, held[i]);
  }
  peak = common::warp_reduce<common::Max>(peak);
  float total = 0.0f;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    held[i] = __expf(held[i] - peak);
    total += held[i];
  }
  const float scale = 1.0f / common::warp_reduce<common::Sum>(total);
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const int col = i * 32 + lane;
    if (col < cols) out[col] = held[i] * scale;
  }
}
