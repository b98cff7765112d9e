// A histogram: counted in shared memory and added up once a block, or counted in global memory; and a sum whose earlier value is not asked for, or is.
__global__ void with(int* counts, const int* x, int n) {
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(own + x[i], 1);
    __syncthreads();
    atomicAdd(counts + threadIdx.x, own[threadIdx.x]);
}
__global__ void without(int* counts, const int* x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(counts + x[i], 1);
}

__global__ void with_no_answer(float* sum, const float* x) {
    atomicAdd(sum + threadIdx.x, x[blockIdx.x * blockDim.x + threadIdx.x]);
}
__global__ void without_no_answer(float* sum, const float* x) {
    float* to = sum + threadIdx.x;
    const float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int seen = __float_as_int(*to), was; ; seen = was) {
        was = atomicCAS(reinterpret_cast<int*>(to), seen, __float_as_int(__int_as_float(seen) + v));
        if (was == seen) break;
    }
}
