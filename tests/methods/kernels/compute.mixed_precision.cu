// y = a x + y of two values a thread: in packed halves, in bfloat16, stored in halves and computed in single precision; and in single precision throughout.
#include <cuda_bf16.h>
#include <mma.h>
#include "ptx.cuh"

__global__ void with(half2* y, const half2* x, half2 a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __hmul2(__hadd2(__hmul2(a, x[i]), y[i]), x[i]);
}

__global__ void with_stored(half2* y, const half2* x, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float2 p = __half22float2(x[i]), q = __half22float2(y[i]);
    y[i] = __floats2half2_rn(a * p.x + q.x, a * p.y + q.y);
}

#if __CUDA_ARCH__ >= 800
__global__ void with_bfloat16(__nv_bfloat162* y, const __nv_bfloat162* x, __nv_bfloat162 a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __hfma2(a, x[i], y[i]);
}

__global__ void with_stored_bfloat16(__nv_bfloat162* y, const __nv_bfloat162* x, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float2 p = __bfloat1622float2(x[i]), q = __bfloat1622float2(y[i]);
    y[i] = __floats2bfloat162_rn(a * p.x + q.x, a * p.y + q.y);
}
#endif

__global__ void with_fragments(float* y, const half* x) {
    using namespace nvcuda;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(a, x, 16);
    wmma::load_matrix_sync(b, x, 16);
    wmma::mma_sync(sum, a, b, sum);
    wmma::store_matrix_sync(y, sum, 16, wmma::mem_row_major);
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__global__ void with_warpgroup(float* y, unsigned long long a, unsigned long long b) {
    float d[4] = {};
    group_fence();
    group_product(d, a, b);
    group_commit();
    group_wait<0>();
    for (int i = 0; i < 4; i++) y[threadIdx.x * 4 + i] = d[i];
}
#endif

__global__ void without(float2* y, const float2* x, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float2 p = x[i], q = y[i];
    y[i] = make_float2(a * p.x + q.x, a * p.y + q.y);
}
