// The next tile is on its way while this one is used: by asynchronous copies of threads or in bulk; or each tile is loaded, waited for, then used.
#include "ptx.cuh"

__global__ void with(float* y, const float* x, int tiles) {
    __shared__ alignas(16) float tile[2][512];
    float sum = 0;
    copy16_async(&tile[0][threadIdx.x * 4], x + threadIdx.x * 4);
    commit_copies();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) copy16_async(&tile[(i + 1) % 2][threadIdx.x * 4], x + (i + 1) * 512 + threadIdx.x * 4);
        commit_copies();
        wait_copies<1>();
        __syncthreads();
        sum += tile[i % 2][511 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}

#if __CUDA_ARCH__ >= 900
template <bool TENSOR>
__device__ void bulk_pipeline(float* y, const float* x, int tiles) {
    __shared__ alignas(128) float tile[2][512];
    __shared__ unsigned long long full[2];
    if (threadIdx.x < 2) barrier_init(&full[threadIdx.x], 1);
    __syncthreads();
    float sum = 0;
    for (int i = -1; i < tiles; i++) {
        if (i + 1 < tiles && threadIdx.x == 0) {
            barrier_expect(&full[(i + 1) % 2], sizeof tile[0]);
            if (TENSOR) {
                tensor_load(tile[(i + 1) % 2], x, 0, i + 1, &full[(i + 1) % 2]);
            } else {
                bulk_load(tile[(i + 1) % 2], x + (i + 1) * 512, sizeof tile[0], &full[(i + 1) % 2]);
            }
        }
        if (i < 0) continue;
        barrier_wait(&full[i % 2], i / 2 % 2);
        sum += tile[i % 2][511 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
__global__ void with_bulk(float* y, const float* x, int tiles) { bulk_pipeline<false>(y, x, tiles); }
__global__ void with_tensor(float* y, const float* map, int tiles) { bulk_pipeline<true>(y, map, tiles); }
#endif

__global__ void without(float* y, const float* x, int tiles) {
    __shared__ alignas(16) float4 tile[128];
    float sum = 0;
    for (int i = 0; i < tiles; i++) {
        tile[threadIdx.x] = reinterpret_cast<const float4*>(x + i * 512)[threadIdx.x];
        __syncthreads();
        sum += reinterpret_cast<float*>(tile)[511 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
