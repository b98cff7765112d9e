// Places in a compacted list: one lane takes them for the whole warp, or every lane takes its own.
__global__ void with(float* y, int* length, const float* x) {
    const float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    const unsigned chosen = __ballot_sync(~0u, v > 0);
    const int lane = threadIdx.x % 32, leader = __ffs(chosen) - 1;
    int place = 0;
    if (lane == leader) place = atomicAdd(length, __popc(chosen));
    place = __shfl_sync(~0u, place, leader) + __popc(chosen & ((1u << lane) - 1));
    if (v > 0) y[place] = v;
}

__global__ void with_matches(float* y, int* lengths, const float* x, const int* bin) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, b = bin[i], lane = threadIdx.x % 32;
    const unsigned same = __match_any_sync(~0u, b);
    const int leader = __ffs(same) - 1;
    int place = 0;
    if (lane == leader) place = atomicAdd(lengths + b, __popc(same));
    place = __shfl_sync(~0u, place, leader) + __popc(same & ((1u << lane) - 1));
    y[b * 1024 + place] = x[i];
}
__global__ void without_matches(float* y, int* lengths, const float* x, const int* bin) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, b = bin[i];
    y[b * 1024 + atomicAdd(lengths + b, 1)] = x[i];
}

__global__ void without(float* y, int* length, const float* x, int one) {
    const float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    // The amount is not known when this is compiled: of a constant the compiler would make one addition a warp by itself.
    if (v > 0) y[atomicAdd(length, one)] = v;
}
