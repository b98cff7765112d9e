// An e4m3 product by a warpgroup: partial sums are added to sums in registers after every two steps, or the tensor core keeps the sum throughout.
#include "ptx.cuh"

__global__ void with(float* c, unsigned long long a, unsigned long long b, int k) {
    float sum[4] = {}, part[4] = {};
    for (int i = 0; i < k; i += 2) {
        group_fence();
        group_product_e4m3(part, a + i, b + i, 0);
        group_product_e4m3(part, a + i + 1, b + i + 1, 1);
        group_commit();
        group_wait<0>();
        for (int j = 0; j < 4; j++) sum[j] += part[j];
    }
    for (int j = 0; j < 4; j++) c[threadIdx.x * 4 + j] = sum[j];
}

__global__ void with_scales(float* c, unsigned long long a, unsigned long long b, const float* scale, int k) {
    float sum[4] = {}, part[4] = {};
    for (int i = 0; i < k; i += 2) {
        group_fence();
        group_product_e4m3(part, a + i, b + i, 0);
        group_product_e4m3(part, a + i + 1, b + i + 1, 1);
        group_commit();
        group_wait<0>();
        const float s = scale[i];
        for (int j = 0; j < 4; j++) sum[j] += s * part[j];
    }
    for (int j = 0; j < 4; j++) c[threadIdx.x * 4 + j] = sum[j];
}

__global__ void without(float* c, unsigned long long a, unsigned long long b, int k) {
    float sum[4] = {};
    for (int i = 0; i < k; i += 2) {
        group_fence();
        group_product_e4m3(sum, a + i, b + i, 1);
        group_product_e4m3(sum, a + i + 1, b + i + 1, 1);
        group_commit();
        group_wait<0>();
    }
    for (int j = 0; j < 4; j++) c[threadIdx.x * 4 + j] = sum[j];
}
