// Consumers wait for producers and producers do not wait: by a barrier in shared memory; or all wait for all.
#include "ptx.cuh"

__global__ void with(float* y, const float* x) {
    __shared__ float tile[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) barrier_init(&full, 128);
    __syncthreads();
    if (threadIdx.x < 128) {
        tile[threadIdx.x] = x[threadIdx.x];
        barrier_arrive(&full);
    } else {
        barrier_wait(&full, 0);
        y[threadIdx.x - 128] = tile[255 - threadIdx.x];
    }
}

__global__ void without(float* y, const float* x) {
    __shared__ float tile[128];
    if (threadIdx.x < 128) tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x >= 128) y[threadIdx.x - 128] = tile[255 - threadIdx.x];
}
