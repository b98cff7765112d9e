// The sum of a whole array in one launch: every block leaves a partial sum, and the block that comes last adds them up, always in the same order. So the result
// is the same to the last bit each time, which a float atomicAdd would not give.
#include <common/reduce.cuh>

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    total(const float *__restrict__ x, float *__restrict__ y, float *partial, unsigned *arrived, int n) {
  __shared__ bool last;
  float sum = 0.0f;
  const long long threads = static_cast<long long>(gridDim.x) * BLOCK;
  for (long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x; i < n; i += threads) sum += x[i];
  sum = common::block_reduce<BLOCK, common::Sum>(sum);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence(); // the partial sum must be seen before the arrival is
    // Wraps to zero at the last arrival, ready for the next launch.
    last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return; // the whole block
  __threadfence(); // and partial sums of others must be read after it
  sum = 0.0f;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += BLOCK) sum += __ldcg(partial + i); // from L2: this block's L1 may be stale
  sum = common::block_reduce<BLOCK, common::Sum>(sum);
  if (threadIdx.x == 0) y[0] = sum;
}
