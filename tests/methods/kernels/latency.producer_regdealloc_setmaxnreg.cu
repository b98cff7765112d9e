// Warps that only load give registers up, which warps that compute take; or all keep what they started with.
template <bool MOVE>
__device__ __forceinline__ void work(float* y, const float* x, int n) {
    __shared__ float tile[128];
    if (threadIdx.x < 128) {
        if (MOVE) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (int i = 0; i < n; i++) tile[threadIdx.x] = x[i * 128 + threadIdx.x];
    } else {
        if (MOVE) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        float sum = 0;
        for (int i = 0; i < n; i++) sum += tile[(threadIdx.x + i) % 128];
        y[threadIdx.x - 128] = sum;
    }
}
__global__ void __launch_bounds__(256, 1) with(float* y, const float* x, int n) { work<true>(y, x, n); }
__global__ void __launch_bounds__(256, 1) without(float* y, const float* x, int n) { work<false>(y, x, n); }
