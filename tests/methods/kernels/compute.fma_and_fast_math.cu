// Multiplications fused with additions, and functions that the special function unit approximates; and each rounded as it is written.
__global__ void with(float* y, const float* x, float a, float b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = fmaf(fmaf(x[i], a, b), x[i], b);
}
__global__ void without(float* y, const float* x, float a, float b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __fadd_rn(__fmul_rn(__fadd_rn(__fmul_rn(x[i], a), b), x[i]), b);
}
__global__ void with_doubles(double* y, const double* x, double a, double b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = fma(x[i], a, b);
}
__global__ void without_doubles(double* y, const double* x, double a, double b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __dadd_rn(__dmul_rn(x[i], a), b);
}
__global__ void with_functions(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __sinf(x[i]) * __cosf(x[i]);
}
__global__ void without_functions(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = sinf(x[i]) * cosf(x[i]);
}
__global__ void with_tanh(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if __CUDA_ARCH__ >= 750
    asm("tanh.approx.f32 %0, %1;" : "=f"(y[i]) : "f"(x[i]));
#endif
}
__global__ void without_tanh(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = tanhf(x[i]);
}
__global__ void with_logarithm(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __logf(x[i]);
}
__global__ void without_logarithm(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = logf(x[i]);
}
