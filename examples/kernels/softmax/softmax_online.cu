// Softmax of rows of any length: one block a row. ONLINE: the maximum and the sum in one pass, by rescaling the sum when the maximum rises; else one pass each.
#include "online.cuh"
#include <common/reduce.cuh>

template <int BLOCK, bool ONLINE>
__global__ void __launch_bounds__(BLOCK) softmax_online(const float *__restrict__ x, float *__restrict__ y, int cols) {
  const float *row = x + static_cast<size_t>(blockIdx.x) * cols;
  float *out = y + static_cast<size_t>(blockIdx.x) * cols;
  float peak, total;
  if constexpr (ONLINE) {
    Online mine = Online::none();
    for (int i = threadIdx.x; i < cols; i += BLOCK) mine.add(row[i]);
    const Online all = block_online<BLOCK>(mine);
    peak = all.peak;
    total = all.total;
  } else {
    float best = -INFINITY;
    for (int i = threadIdx.x; i < cols; i += BLOCK) best = fmaxf(best, row[i]);
    peak = common::block_reduce<BLOCK, common::Max>(best);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += BLOCK) sum += __expf(row[i] - peak);
    total = common::block_reduce<BLOCK, common::Sum>(sum);
  }
  const float scale = 1.0f / total;
  for (int i = threadIdx.x; i < cols; i += BLOCK) out[i] = __expf(row[i] - peak) * scale;
}
