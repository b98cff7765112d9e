// The sum of each row, a block a row.
#pragma once

template <int BLOCK>
__global__ void row_sum(const float* x, float* y, int cols, float scale) {
    __shared__ float part[BLOCK / 32];
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += BLOCK) sum += x[blockIdx.x * (long)cols + i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < BLOCK / 32; i++) sum += part[i];
        y[blockIdx.x] = sum * scale;
    }
}
