// A table that no thread writes: read through the read-only path, or as memory that may change.
__global__ void with(float* y, const float* x, const float* table) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * __ldg(table + i % 64);
}
__global__ void with_qualifiers(float* __restrict__ y, const float* __restrict__ x, const float* __restrict__ table) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * table[i % 64];
}
__global__ void without(float* y, const float* x, const float* table) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * table[i % 64];
}
