// One of two polynomials by the sign of the argument: its coefficients are selected and one loop runs, or two loops stand in two branches.
__global__ void with(float* y, const float* x, const float* w, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float v = x[i];
    const float* c = v > 0 ? w : w + n;
    float sum = 0;
#pragma unroll 1
    for (int j = 0; j < n; j++) sum = sum * v + c[j];
    y[i] = sum;
}

__global__ void without(float* y, const float* x, const float* w, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float v = x[i];
    float sum = 0;
    if (v > 0) {
#pragma unroll 1
        for (int j = 0; j < n; j++) sum = sum * v + w[j];
    } else {
#pragma unroll 1
        for (int j = 0; j < n; j++) sum = sum * v - w[n + j];
    }
    y[i] = sum;
}
