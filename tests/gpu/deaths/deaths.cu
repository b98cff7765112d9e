// Dies in the way that DEATH says; 0 does not.
#if DEATH == 6
#define BOUNDS __launch_bounds__(64)
#else
#define BOUNDS
#endif
__device__ int launches;
__global__ void BOUNDS kernel(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  // Oftener than a verification launches it: it is timed.
  bool timed = atomicAdd(&launches, 0) > 40 * gridDim.x;
#if DEATH == 0
  // Slower than who dies when it is timed, so that those are timed in full.
  for (long long start = clock64(); clock64() - start < 20000;);
#endif
  if (i < n) {
#if DEATH == 1
    y[i + (1ll << 40)] = 1;
#elif DEATH == 2
    *(float *)((char *)y + 1) = 1;
#elif DEATH == 3
    __trap();
#elif DEATH == 4
    for (volatile int spin = 0;;) spin = spin + 1;
#elif DEATH == 8
    if (timed) y[i + (1ll << 40)] = 1;
#elif DEATH == 9
    if (timed) {
      for (volatile int spin = 0;;) spin = spin + 1;
    }
#endif
    y[i] = 2.0f * x[i] + 1.0f;
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&launches, 1);
}
