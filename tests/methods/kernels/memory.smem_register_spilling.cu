// Sixty-four values a thread under a limit of about forty registers: what does not fit is kept in shared memory, or in local memory.
template <bool SHARED>
__device__ __forceinline__ void keep(float* y, const float* x) {
    if (SHARED) asm volatile(".pragma \"enable_smem_spilling\";");
    float v[64];
#pragma unroll
    for (int i = 0; i < 64; i++) v[i] = x[i * 128 + threadIdx.x];
#pragma unroll
    for (int i = 0; i < 64; i++) y[i * 128 + threadIdx.x] = v[63 - i] * v[(i * 7) % 64] + v[(i * 11) % 64];
}
__global__ void __launch_bounds__(128, 12) with(float* y, const float* x) { keep<true>(y, x); }
__global__ void __launch_bounds__(128, 12) without(float* y, const float* x) { keep<false>(y, x); }

__global__ void __launch_bounds__(128, 12) with_own_array(float* y, const float* x, const int* order) {
    __shared__ float v[40][128];
    for (int i = 0; i < 40; i++) v[i][threadIdx.x] = x[i * 128 + threadIdx.x];
    for (int i = 0; i < 40; i++) y[i * 128 + threadIdx.x] = v[order[i]][threadIdx.x];
}
__global__ void __launch_bounds__(128, 12) without_own_array(float* y, const float* x, const int* order) {
    float v[40];
    for (int i = 0; i < 40; i++) v[i] = x[i * 128 + threadIdx.x];
    for (int i = 0; i < 40; i++) y[i * 128 + threadIdx.x] = v[order[i]];
}
