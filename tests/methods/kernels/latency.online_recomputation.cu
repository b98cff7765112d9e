// The denominator of a softmax: largest value and sum in one pass, the sum rescaled whenever the largest grows; or a pass for each.
__global__ void with(float* y, const float* x, int n) {
    float largest = -1e30f, sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        const float v = x[i * 128 + threadIdx.x], next = fmaxf(largest, v);
        sum = sum * __expf(largest - next) + __expf(v - next);
        largest = next;
    }
    y[threadIdx.x] = largest + __logf(sum);
}

__global__ void without(float* y, const float* x, int n) {
    float largest = -1e30f, sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) largest = fmaxf(largest, x[i * 128 + threadIdx.x]);
#pragma unroll 1
    for (int i = 0; i < n; i++) sum += __expf(x[i * 128 + threadIdx.x] - largest);
    y[threadIdx.x] = largest + __logf(sum);
}
