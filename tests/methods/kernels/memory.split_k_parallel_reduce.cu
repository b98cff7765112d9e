// A product with a long inner dimension: blocks share it and add their parts to the result, or one block walks all of it.
__global__ void with(float* c, const float* a, const float* b, int n, int k, int split) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, length = k / split;
    float sum = 0;
    for (int i = blockIdx.z * length; i < (blockIdx.z + 1) * length; i++) sum += a[blockIdx.y * k + i] * b[i * n + column];
    atomicAdd(c + blockIdx.y * n + column, sum);
}

__global__ void with_last_block(float* c, float* part, unsigned* arrived, const float* a, const float* b, int n, int k, int split) {
    __shared__ bool last;
    const int column = blockIdx.x * blockDim.x + threadIdx.x, length = k / split;
    float sum = 0;
    for (int i = blockIdx.z * length; i < (blockIdx.z + 1) * length; i++) sum += a[blockIdx.y * k + i] * b[i * n + column];
    part[(blockIdx.z * gridDim.y + blockIdx.y) * n + column] = sum;
    __threadfence();
    if (threadIdx.x == 0) last = atomicAdd(arrived + blockIdx.y, 1u) == split - 1u;
    __syncthreads();
    if (!last) return;
    sum = 0;
    for (int z = 0; z < split; z++) sum += __ldcg(part + (z * gridDim.y + blockIdx.y) * n + column);
    c[blockIdx.y * n + column] = sum;
}

__global__ void without(float* c, const float* a, const float* b, int n, int k, int split) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[blockIdx.y * k + i] * b[i * n + column];
    c[blockIdx.y * n + column] = sum;
}
