// y[r] = sum of row r: one block a row.
//
// Three steps: every thread sums its share of the row, then the threads of a block add their sums together, then one of them writes. For another reduction change `combine`
// and the value it starts from: maxima are `fmaxf` from -INFINITY.

__device__ float combine(float a, float b) { return a + b; }
constexpr float START = 0.0f;

// Adds up one value of each thread of the block; the result is right in thread 0.
template <int BLOCK, bool SHUFFLE> __device__ float block_combine(float value) {
  __shared__ float shared[BLOCK];
  if constexpr (SHUFFLE) {
    // The 32 threads of a warp exchange registers directly. Only one value a warp then goes through shared memory.
    for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads(); // without it, thread 0 may read what other warps have not written yet: take it out and see how the build tells you
    value = shared[0];
    for (int warp = 1; warp < BLOCK / 32; warp++) value = combine(value, shared[warp]);
    return value;
  } else {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
      __syncthreads(); // outside the branch: all threads of a block must meet at a barrier
    }
    return shared[0];
  }
}

template <int BLOCK, bool SHUFFLE> __global__ void row_sum(const float *__restrict__ x, float *__restrict__ y, int cols) {
  // 64 bits: rows times columns may pass two thousand million.
  const float *row = x + static_cast<size_t>(blockIdx.x) * cols;
  float value = START;
  // Neighbouring threads read neighbouring elements, which memory serves as one wide access.
  for (int i = threadIdx.x; i < cols; i += BLOCK) value = combine(value, row[i]);
  value = block_combine<BLOCK, SHUFFLE>(value);
  if (threadIdx.x == 0) y[blockIdx.x] = value;
}
