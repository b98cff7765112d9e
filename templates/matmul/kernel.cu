template <int BLOCK>
__global__ void scale_shift_relu(const float *x, float *y, int n, float a, float b) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = fmaxf(a * x[i] + b, 0.0f);
}
