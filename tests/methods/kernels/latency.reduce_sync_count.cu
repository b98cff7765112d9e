// A sum over a block: two buffers in turn need one barrier a step, one buffer needs two.
__global__ void with(float* y, const float* x, int steps) {
    __shared__ float part[2][256];
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        part[i % 2][threadIdx.x] = x[i * 256 + threadIdx.x];
        __syncthreads();
        sum += part[i % 2][255 - threadIdx.x];
    }
    y[threadIdx.x] = sum;
}

__global__ void without(float* y, const float* x, int steps) {
    __shared__ float part[256];
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        part[threadIdx.x] = x[i * 256 + threadIdx.x];
        __syncthreads();
        sum += part[255 - threadIdx.x];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
