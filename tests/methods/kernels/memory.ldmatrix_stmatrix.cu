// Fragments of a matrix between shared memory and registers: by instructions of the whole warp, or word by word.
#include "ptx.cuh"

__global__ void with(uint4* y, const uint4* x) {
    __shared__ alignas(16) uint4 tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(shared_address(tile + threadIdx.x)) : "memory");
    y[threadIdx.x] = v;
}

#if __CUDA_ARCH__ >= 900
__global__ void with_stores(uint4* y, const uint4* x) {
    __shared__ alignas(16) uint4 tile[32];
    const uint4 v = x[threadIdx.x];
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(shared_address(tile + threadIdx.x)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
    __syncthreads();
    y[threadIdx.x] = tile[threadIdx.x];
}
#endif

__global__ void with_transposed_registers(unsigned* y, const unsigned* x) {
    unsigned v;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(v) : "r"(x[threadIdx.x]));
    y[threadIdx.x] = v;
}

__global__ void without(unsigned* y, const unsigned* x) {
    __shared__ unsigned tile[128];
    for (int i = 0; i < 4; i++) tile[i * 32 + threadIdx.x] = x[i * 32 + threadIdx.x];
    __syncthreads();
    const int row = threadIdx.x / 4, column = threadIdx.x % 4;
    for (int i = 0; i < 4; i++) y[threadIdx.x * 4 + i] = tile[(row + 8 * (i % 2)) * 8 + column + 4 * (i / 2)];
}
