// A tile from global to shared memory: copied past the registers, by threads or in bulk (and back in bulk), or loaded and stored.
#include "ptx.cuh"

__global__ void with(float* y, const float* x) {
    __shared__ alignas(16) float tile[512];
    copy16_async(tile + threadIdx.x * 4, x + threadIdx.x * 4);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    y[threadIdx.x] = tile[511 - threadIdx.x];
}

#if __CUDA_ARCH__ >= 900
__global__ void with_bulk(float* y, const float* x) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof tile);
        bulk_load(tile, x, sizeof tile, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    y[threadIdx.x] = tile[511 - threadIdx.x];
}

__global__ void with_tensor(float* y, const void* map) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof tile);
        tensor_load(tile, map, 0, blockIdx.x, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    y[threadIdx.x] = tile[511 - threadIdx.x];
}

__global__ void with_tensor_store(const void* map, const float* x) {
    __shared__ alignas(128) float tile[512];
    tile[threadIdx.x] = x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     ::"l"(map), "r"(0), "r"(blockIdx.x), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
#endif

__global__ void without(float* y, const float* x) {
    __shared__ float tile[512];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[511 - threadIdx.x];
}
