// A row and a column of a flat index: by a multiplication with a constant made beforehand, by shifts, or by division; in 32 and in 64 bits.
__global__ void with(float* y, const float* x, unsigned magic, unsigned shift, unsigned columns, unsigned stride) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned row = __umulhi(i, magic) >> shift;
    y[i] = x[row * stride + (i - row * columns)];
}

__global__ void with_shifts(float* y, const float* x, unsigned bits, unsigned columns, unsigned stride) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[(i >> bits) * stride + (i & (columns - 1))];
}

__global__ void without(float* y, const float* x, unsigned columns, unsigned stride) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i / columns * stride + i % columns];
}

__global__ void with_long(float* y, const float* x, unsigned long long magic, unsigned shift, long long stride) {
    const unsigned long long i = blockIdx.x * 1ull * blockDim.x + threadIdx.x;
    y[i] = x[(__umul64hi(i, magic) >> shift) * stride];
}

__global__ void without_long(float* y, const float* x, long long columns, long long stride) {
    const long long i = blockIdx.x * 1ll * blockDim.x + threadIdx.x;
    y[i] = x[i / columns * stride];
}
