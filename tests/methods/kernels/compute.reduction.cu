// The sum of a row: as a tree over the lanes of a warp, by the warp's own reduction, or by one thread for all.
__global__ void with(float* y, const float* x, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += x[blockIdx.x * n + i];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

#if __CUDA_ARCH__ >= 800
__global__ void with_integers(int* y, const int* x, int n) {
    int sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += x[blockIdx.x * n + i];
    sum = __reduce_add_sync(~0u, sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
__global__ void with_largest(float* y, const float* x, int n) {
    float largest = x[threadIdx.x];
    asm volatile("redux.sync.max.f32 %0, %0, 0xffffffff;" : "+f"(largest));
    if (threadIdx.x == 0) y[blockIdx.x] = largest;
}
#endif

__global__ void without(float* y, const float* x, int n) {
    if (threadIdx.x != 0) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[blockIdx.x * n + i];
    y[blockIdx.x] = sum;
}
