// A loop over memory and a loop over shared memory, each unrolled by eight or not at all.
template <int TIMES>
__device__ void scale(float* y, const float* x, float a, int n) {
#pragma unroll TIMES
    for (int i = threadIdx.x; i < n; i += 128) y[i] = a * x[i] + a;
}
template <int TIMES>
__device__ void product(double* y, const double* x) {
    __shared__ double part[64];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    double sum = 0;
#pragma unroll TIMES
    for (int i = 0; i < 64; i++) sum += part[i] * part[63 - i];
    y[threadIdx.x] = sum;
}

__global__ void with(float* y, const float* x, float a, int n) { scale<8>(y, x, a, n); }
__global__ void without(float* y, const float* x, float a, int n) { scale<1>(y, x, a, n); }
__global__ void with_shared(double* y, const double* x) { product<8>(y, x); }
__global__ void without_shared(double* y, const double* x) { product<1>(y, x); }
