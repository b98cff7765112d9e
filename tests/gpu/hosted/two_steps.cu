// Eight partial sums of each row into the workspace, and their sum: two kernels, a workspace and a param, launched by the kernel's own code.
#include <cuda_runtime.h>

#include "kforge_host.h"

__global__ void parts(const float* x, float* parts, int cols) {
    __shared__ float part[BLOCK / 32];
    float sum = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < cols; i += 8 * BLOCK) sum += x[blockIdx.y * (long)cols + i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < BLOCK / 32; i++) sum += part[i];
        parts[blockIdx.y * 8 + blockIdx.x] = sum;
    }
}

__global__ void whole(const float* parts, float* y, int rows, float scale) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = 0; i < 8; i++) sum += parts[row * 8 + i];
    y[row] = sum * scale;
}

extern "C" int run(const kforge_call* call) {
    auto x = (const float*)kforge_data(call, "x");
    auto scratch = (float*)kforge_data(call, "parts");
    auto y = (float*)kforge_data(call, "y");
    int rows = kforge_dim_of(call, "rows"), cols = kforge_dim_of(call, "cols");
    float scale = kforge_param_of(call, "scale")->real;
    auto stream = (cudaStream_t)call->stream;
    parts<<<dim3(8, rows), BLOCK, 0, stream>>>(x, scratch, cols);
    whole<<<(rows + 127) / 128, 128, 0, stream>>>(scratch, y, rows, scale);
    return cudaGetLastError();
}
