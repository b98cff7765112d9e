// A copy of sixteen bytes (or eight, or thirty-two) a thread at a time, or of four.
__global__ void with(float4* y, const float4* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
__global__ void with_restrict(float4* __restrict__ y, const float4* __restrict__ x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
__global__ void with_loads(float* y, const float4* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 v = x[i];
    y[i] = v.x + v.y + v.z + v.w;
}
__global__ void with_stores(float4* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float v = x[i];
    y[i] = make_float4(v, v, v, v);
}
__global__ void with_eight(float2* y, const float2* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
#if __CUDA_ARCH__ >= 1000
__global__ void with_thirty_two(float* y, const float* x) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    asm volatile("{ .reg .b32 r<8>; ld.global.v8.b32 {r0, r1, r2, r3, r4, r5, r6, r7}, [%1];\n"
                 " st.global.v8.b32 [%0], {r0, r1, r2, r3, r4, r5, r6, r7}; }" ::"l"(y + i), "l"(x + i) : "memory");
}
#endif
__global__ void without(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
