// A stream that is read and written once: with hints that it need not stay in a cache, or without.
__global__ void with(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __stcs(y + i, __ldcs(x + i));
}
__global__ void with_level_two(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __stcg(y + i, __ldcg(x + i));
}
__global__ void with_last_use(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __ldlu(x + i);
}
__global__ void with_no_allocation(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v;
    asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(v) : "l"(x + i));
    y[i] = v;
}
__global__ void with_evict_last(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v;
    asm volatile("ld.global.L1::evict_last.f32 %0, [%1];" : "=f"(v) : "l"(x + i));
    y[i] = v;
}
__global__ void without(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
