// A tile of a tensor for every block of a cluster: fetched once and written to all, or fetched by each.
#include "ptx.cuh"

__global__ void with(float* y, const void* map, unsigned short blocks) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof tile);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(shared_address(tile)), "l"(map), "r"(0), "r"(blockIdx.x), "r"(shared_address(&full)), "h"(blocks) : "memory");
    }
    __syncthreads();
    barrier_wait(&full, 0);
    y[threadIdx.x] = tile[threadIdx.x];
}

__global__ void with_bulk(float* y, const float* x, unsigned short blocks) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof tile);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                     ::"r"(shared_address(tile)), "l"(x), "r"(2048), "r"(shared_address(&full)), "h"(blocks) : "memory");
    }
    __syncthreads();
    barrier_wait(&full, 0);
    y[threadIdx.x] = tile[threadIdx.x];
}

__global__ void without(float* y, const void* map, unsigned short blocks) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof tile);
        tensor_load(tile, map, 0, blockIdx.x, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    y[threadIdx.x] = tile[threadIdx.x];
}
