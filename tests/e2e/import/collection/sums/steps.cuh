#pragma once
// Combines the values of 256 threads: their largest, or their sum.
__device__ inline float all_threads(float v, float *shared, bool largest) {
  __syncthreads();
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      float other = shared[threadIdx.x + step];
      shared[threadIdx.x] = largest ? fmaxf(shared[threadIdx.x], other) : shared[threadIdx.x] + other;
    }
    __syncthreads();
  }
  return shared[0];
}
