// Tiles through shared memory: one warp loads while the others compute, told apart by named barriers or by barriers in shared memory; and every warp does both.
#include "ptx.cuh"

__global__ void with(float* y, const float4* x, int tiles) {
    __shared__ float4 tile[2][96];
    if (threadIdx.x < 32) {
        for (int i = 0; i < tiles; i++) {
            if (i >= 2) {
                if (i % 2) named_sync<4, 128>(); else named_sync<3, 128>();
            }
            for (int j = threadIdx.x; j < 96; j += 32) tile[i % 2][j] = x[i * 96 + j];
            __threadfence_block();
            if (i % 2) named_arrive<2, 128>(); else named_arrive<1, 128>();
        }
    } else {
        float sum = 0;
        for (int i = 0; i < tiles; i++) {
            if (i % 2) named_sync<2, 128>(); else named_sync<1, 128>();
            const float4 v = tile[i % 2][threadIdx.x - 32];
            sum += v.x * v.y + v.z * v.w;
            if (i % 2) named_arrive<4, 128>(); else named_arrive<3, 128>();
        }
        y[blockIdx.x * 96 + threadIdx.x - 32] = sum;
    }
}

#if __CUDA_ARCH__ >= 900
__global__ void with_barriers(float* y, const float4* x, int tiles) {
    __shared__ alignas(128) float4 tile[2][128];
    __shared__ unsigned long long full[2], empty[2];
    if (threadIdx.x < 2) {
        barrier_init(&full[threadIdx.x], 1);
        barrier_init(&empty[threadIdx.x], 128);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < tiles && threadIdx.x == 0; i++) {
            if (i >= 2) barrier_wait(&empty[i % 2], (i / 2 - 1) % 2);
            barrier_expect(&full[i % 2], sizeof tile[0]);
            bulk_load(tile[i % 2], x + i * 128, sizeof tile[0], &full[i % 2]);
        }
    } else {
        float sum = 0;
        for (int i = 0; i < tiles; i++) {
            barrier_wait(&full[i % 2], i / 2 % 2);
            const float4 v = tile[i % 2][threadIdx.x - 32];
            sum += v.x * v.y + v.z * v.w;
            barrier_arrive(&empty[i % 2]);
        }
        y[blockIdx.x * 128 + threadIdx.x - 32] = sum;
    }
}
#endif

__global__ void without(float* y, const float4* x, int tiles) {
    __shared__ float4 tile[96];
    float sum = 0;
    for (int i = 0; i < tiles; i++) {
        tile[threadIdx.x] = x[i * 96 + threadIdx.x];
        __syncthreads();
        const float4 v = tile[threadIdx.x ^ 1];
        sum += v.x * v.y + v.z * v.w;
        __syncthreads();
    }
    y[blockIdx.x * 96 + threadIdx.x] = sum;
}
