// An e4m3 product by a warpgroup: the tensor core keeps the sum throughout, or partial sums are added to sums in registers.
#include "ptx.cuh"

template <bool FAST>
__device__ void product(float* c, unsigned long long a, unsigned long long b, int k) {
    float sum[4] = {}, part[4] = {};
    for (int i = 0; i < k; i += 2) {
        group_fence();
        group_product_e4m3(FAST ? sum : part, a + i, b + i, FAST);
        group_product_e4m3(FAST ? sum : part, a + i + 1, b + i + 1, 1);
        group_commit();
        group_wait<0>();
        if (!FAST)
            for (int j = 0; j < 4; j++) sum[j] += part[j];
    }
    for (int j = 0; j < 4; j++) c[threadIdx.x * 4 + j] = sum[j];
}

__global__ void with(float* c, unsigned long long a, unsigned long long b, int k) { product<true>(c, a, b, k); }
__global__ void without(float* c, unsigned long long a, unsigned long long b, int k) { product<false>(c, a, b, k); }
