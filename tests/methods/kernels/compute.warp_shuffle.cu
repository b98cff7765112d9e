// Each lane's sum with its neighbours: through registers of the warp, or through shared memory.
__global__ void with(float* y, const float* x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int d = 1; d < 32; d *= 2) {
        const float u = __shfl_up_sync(~0u, v, d);
        if (threadIdx.x % 32 >= d) v += u;
    }
    y[i] = v;
}

__global__ void without(float* y, const float* x) {
    __shared__ volatile float part[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int d = 1; d < 32; d *= 2) {
        part[threadIdx.x] = v;
        __syncwarp();
        if (threadIdx.x % 32 >= d) v += part[threadIdx.x - d];
        __syncwarp();
    }
    y[i] = v;
}
