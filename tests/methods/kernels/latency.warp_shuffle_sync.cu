// A sum over a block: lanes through shuffles and warps through one barrier, or halves through a barrier each.
__global__ void with(float* y, const float* x) {
    __shared__ float part[8];
    float sum = x[blockIdx.x * 256 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) sum += part[i];
        y[blockIdx.x] = sum;
    }
}

__global__ void without(float* y, const float* x) {
    __shared__ float part[256];
    part[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int d = 128; d > 0; d /= 2) {
        if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
