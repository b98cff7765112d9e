// Cross entropy of rows of logits against a label each: one block a row, one pass over it.
#include "online.cuh"

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    cross_entropy(const float *__restrict__ x, const long long *__restrict__ labels, float *__restrict__ y, float *__restrict__ lse,
                  int classes) {
  const float *row = x + static_cast<size_t>(blockIdx.x) * classes;
  Online mine = Online::none();
  for (int i = threadIdx.x; i < classes; i += BLOCK) mine.add(row[i]);
  const Online all = block_online<BLOCK>(mine);
  if (threadIdx.x == 0) {
    lse[blockIdx.x] = all.log_sum();
    y[blockIdx.x] = (all.peak - row[labels[blockIdx.x]]) + logf(all.total);
  }
}
