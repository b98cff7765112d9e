// Tiles through three buffers that copies fill ahead of their use, by threads or in bulk; and through one, filled when it is needed.
#include "ptx.cuh"

template <int STAGES>
__device__ void pipeline(float* y, const float* x, int tiles) {
    __shared__ alignas(16) float tile[STAGES][512];
    float sum = 0;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < tiles) copy16_async(&tile[s][threadIdx.x * 4], x + s * 512 + threadIdx.x * 4);
        commit_copies();
    }
#pragma unroll 1
    for (int i = 0; i < tiles; i++) {
        const int next = i + STAGES - 1;
        if (next < tiles) copy16_async(&tile[next % STAGES][threadIdx.x * 4], x + next * 512 + threadIdx.x * 4);
        commit_copies();
        wait_copies<STAGES - 1>();
        __syncthreads();
        sum += tile[i % STAGES][511 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}

__global__ void with(float* y, const float* x, int tiles) { pipeline<3>(y, x, tiles); }
__global__ void without(float* y, const float* x, int tiles) { pipeline<1>(y, x, tiles); }

// Against a kernel that has no copies past the registers at all.
__global__ void with_plain(float* y, const float* x, int tiles) { pipeline<3>(y, x, tiles); }
__global__ void without_plain(float* y, const float* x, int tiles) {
    __shared__ float tile[512];
    float sum = 0;
    for (int i = 0; i < tiles; i++) {
        tile[threadIdx.x] = x[i * 512 + threadIdx.x];
        __syncthreads();
        sum += tile[511 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}

#if __CUDA_ARCH__ >= 900
template <int STAGES, bool TENSOR>
__device__ void bulk_pipeline(float* y, const float* x, int tiles) {
    __shared__ alignas(128) float tile[STAGES][512];
    __shared__ unsigned long long full[STAGES];
    if (threadIdx.x < STAGES) barrier_init(&full[threadIdx.x], 1);
    __syncthreads();
    auto fill = [&](int i) {
        if (i < tiles && threadIdx.x == 0) {
            barrier_expect(&full[i % STAGES], sizeof tile[0]);
            if (TENSOR) {
                tensor_load(tile[i % STAGES], x, 0, i, &full[i % STAGES]);
            } else {
                bulk_load(tile[i % STAGES], x + i * 512, sizeof tile[0], &full[i % STAGES]);
            }
        }
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) fill(s);
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < tiles; i++) {
        fill(i + STAGES - 1);
        barrier_wait(&full[i % STAGES], i / STAGES % 2);
        sum += tile[i % STAGES][511 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
__global__ void with_bulk(float* y, const float* x, int tiles) { bulk_pipeline<3, false>(y, x, tiles); }
__global__ void without_bulk(float* y, const float* x, int tiles) { bulk_pipeline<1, false>(y, x, tiles); }
__global__ void with_tensor(float* y, const float* map, int tiles) { bulk_pipeline<3, true>(y, map, tiles); }
__global__ void without_tensor(float* y, const float* map, int tiles) { bulk_pipeline<1, true>(y, map, tiles); }
#endif
