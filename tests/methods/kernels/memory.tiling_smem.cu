// A matrix product whose tiles are kept in shared memory (stored there, or copied there by the hardware), or read from global memory by every thread.
#include "ptx.cuh"

__global__ void with(float* c, const float* a, const float* b, int n) {
    __shared__ float x[16][16], y[16][16];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        x[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        y[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += x[threadIdx.y][i] * y[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

#if __CUDA_ARCH__ >= 800
__global__ void with_async(float* c, const float* a, int n) {
    __shared__ alignas(16) float x[512];
    copy16_async(x + threadIdx.x * 4, a + threadIdx.x * 4);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[(threadIdx.x + i) % 512];
    c[threadIdx.x] = sum;
}
#endif

#if __CUDA_ARCH__ >= 900
__global__ void with_bulk(float* c, const float* a, int n) {
    __shared__ alignas(128) float x[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof x);
        bulk_load(x, a, sizeof x, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[(threadIdx.x + i) % 512];
    c[threadIdx.x] = sum;
}

__global__ void with_tensor(float* c, const void* map, int n) {
    __shared__ alignas(128) float x[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof x);
        tensor_load(x, map, 0, blockIdx.x, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[(threadIdx.x + i) % 512];
    c[threadIdx.x] = sum;
}
#endif

__global__ void without(float* c, const float* a, const float* b, int n) {
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
