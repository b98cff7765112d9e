// Four-bit weights to halves: the bits are put into the mantissa of 1024 by three-input logic, or converted as integers.
#include <cuda_fp16.h>

__global__ void with(half2* y, const unsigned* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned bits = x[i];
    for (int j = 0; j < 4; j++) {
        unsigned h;
        asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(h) : "r"(bits >> (4 * j)), "n"(0x000f000f), "n"(0x64006400));
        y[i * 4 + j] = __hsub2(*reinterpret_cast<half2*>(&h), __half2half2(__float2half(1024.0f)));
    }
}

__global__ void without(half2* y, const unsigned* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned bits = x[i];
    for (int j = 0; j < 4; j++)
        y[i * 4 + j] = __halves2half2(__int2half_rn(bits >> (4 * j) & 15), __int2half_rn(bits >> (4 * j + 16) & 15));
}

__global__ void without_floats(half2* y, const unsigned* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned bits = x[i];
    for (int j = 0; j < 4; j++)
        y[i * 4 + j] = __floats2half2_rn(float(bits >> (4 * j) & 15), float(bits >> (4 * j + 16) & 15));
}
__global__ void with_floats(half2* y, const unsigned* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned bits = x[i];
    for (int j = 0; j < 4; j++) {
        const unsigned h = (bits >> (4 * j) & 0x000f000f) | 0x64006400;
        y[i * 4 + j] = __hsub2(*reinterpret_cast<const half2*>(&h), __half2half2(__float2half(1024.0f)));
    }
}
