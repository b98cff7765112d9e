// y = x w, with pointers that are promised to be distinct, or not.
__global__ void with(float* __restrict__ y, const float* __restrict__ x, const float* __restrict__ w, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * w[i % 64];
}

__global__ void without(float* y, const float* x, const float* w, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * w[i % 64];
}
