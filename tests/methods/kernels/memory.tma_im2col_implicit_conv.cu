// The windows of a convolution: gathered by the copy engine from a tensor map, or address by address.
#include "ptx.cuh"

__global__ void with(float* y, const void* map, unsigned short across, unsigned short down) {
    __shared__ alignas(128) float tile[512];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof tile);
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
                     ::"r"(shared_address(tile)), "l"(map), "r"(0), "r"(blockIdx.x), "r"(blockIdx.y), "r"(blockIdx.z),
                       "r"(shared_address(&full)), "h"(across), "h"(down) : "memory");
    }
    __syncthreads();
    barrier_wait(&full, 0);
    y[threadIdx.x] = tile[threadIdx.x];
}

__global__ void without(float* y, const float* x, int width, int height) {
    __shared__ float tile[512];
    const int row = blockIdx.y + threadIdx.y, column = blockIdx.x + threadIdx.x;
    tile[threadIdx.y * 16 + threadIdx.x] = row < height && column < width ? x[row * width + column] : 0.0f;
    __syncthreads();
    y[threadIdx.x] = tile[threadIdx.x];
}
