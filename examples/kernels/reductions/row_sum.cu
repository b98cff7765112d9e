// Sums of rows: one block a row, VEC elements an access where rows are aligned.
#include <common/reduce.cuh>
#include <common/vec.cuh>

template <int BLOCK, int VEC>
__global__ void __launch_bounds__(BLOCK) row_sum(const float *__restrict__ x, float *__restrict__ y, int cols) {
  const float *row = x + static_cast<size_t>(blockIdx.x) * cols;
  const int wide = cols % VEC == 0 ? cols : 0;
  // One accumulator for each place of an access: independent chains of additions, and shorter ones, which also rounds less.
  float sums[VEC] = {};
  for (int i = threadIdx.x * VEC; i < wide; i += BLOCK * VEC) {
    const auto v = common::load<VEC>(row + i);
#pragma unroll
    for (int j = 0; j < VEC; j++) sums[j] += v.at[j];
  }
  for (int i = wide + threadIdx.x; i < cols; i += BLOCK) sums[0] += row[i];
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < VEC; j++) sum += sums[j];
  sum = common::block_reduce<BLOCK, common::Sum>(sum);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
