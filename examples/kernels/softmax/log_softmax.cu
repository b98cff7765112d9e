// Logarithms of softmax in f32 or f16 storage: one block a row, two passes over it.
#include "online.cuh"
#include <common/vec.cuh>

template <class T, int BLOCK> __global__ void __launch_bounds__(BLOCK) log_softmax(const T *__restrict__ x, T *__restrict__ y, int cols) {
  const T *row = x + static_cast<size_t>(blockIdx.x) * cols;
  T *out = y + static_cast<size_t>(blockIdx.x) * cols;
  Online mine = Online::none();
  for (int i = threadIdx.x; i < cols; i += BLOCK) mine.add(common::to_float(row[i]));
  const Online all = block_online<BLOCK>(mine);
  const float log_total = logf(all.total);
  // The maximum first: both are large and their difference is exact where it is small, whereas maximum + logarithm would be rounded.
  for (int i = threadIdx.x; i < cols; i += BLOCK) out[i] = common::from_float<T>((common::to_float(row[i]) - all.peak) - log_total);
}
