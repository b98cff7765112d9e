// Two warpgroups that multiply in turn, so that one computes its epilogue while the other has the tensor cores; or both at once.
#include "ptx.cuh"

template <int GROUP, bool TURNS>
__device__ __forceinline__ void work(float* c, unsigned long long a, unsigned long long b, int tiles) {
    float d[4] = {};
    for (int i = 0; i < tiles; i++) {
        if (TURNS) named_sync<1 + GROUP, 256>();
        group_fence();
        group_product(d, a + i, b + i);
        group_commit();
        group_wait<0>();
        if (TURNS) named_arrive<2 - GROUP, 256>();
        for (int j = 0; j < 4; j++) c[(i * 128 + threadIdx.x % 128) * 4 + j] = d[j] * d[j];
    }
}

__global__ void with(float* c, unsigned long long a, unsigned long long b, int tiles) {
    if (threadIdx.x < 128) {
        work<0, true>(c, a, b, tiles);
    } else {
        named_arrive<1, 256>();
        work<1, true>(c, a, b, tiles);
    }
}

__global__ void with_barriers(float* c, unsigned long long a, unsigned long long b, int tiles) {
    __shared__ unsigned long long turn[2];
    if (threadIdx.x < 2) barrier_init(&turn[threadIdx.x], 128);
    __syncthreads();
    const int group = threadIdx.x / 128;
    float d[4] = {};
    for (int i = 0; i < tiles; i++) {
        if (i > 0 || group == 1) barrier_wait(&turn[group], (i - 1 + group) % 2);
        group_fence();
        group_product(d, a + i, b + i);
        group_commit();
        group_wait<0>();
        barrier_arrive(&turn[1 - group]);
        for (int j = 0; j < 4; j++) c[(i * 128 + threadIdx.x % 128) * 4 + j] = d[j] * d[j];
    }
}

__global__ void without(float* c, unsigned long long a, unsigned long long b, int tiles) {
    if (threadIdx.x < 128) work<0, false>(c, a, b, tiles); else work<1, false>(c, a, b, tiles);
}
