// A single-precision product of 16x8x8: by three products of values cut to tf32, by products of values cut to bfloat16, and by fused multiply-adds.
#include "ptx.cuh"

__device__ __forceinline__ unsigned cut(float x) {
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ void step(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void with(float* c, const float* x, const float* y) {
    float d[4] = {};
    unsigned a[4], b[2], small_a[4], small_b[2];
    for (int i = 0; i < 4; i++) {
        const float v = x[threadIdx.x * 4 + i];
        a[i] = cut(v);
        small_a[i] = cut(v - __uint_as_float(a[i]));
    }
    for (int i = 0; i < 2; i++) {
        const float v = y[threadIdx.x * 2 + i];
        b[i] = cut(v);
        small_b[i] = cut(v - __uint_as_float(b[i]));
    }
    step(d, small_a, b);
    step(d, a, small_b);
    step(d, a, b);
    for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];
}

__device__ __forceinline__ unsigned pair(float x, float y) {
    unsigned z;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(z) : "f"(y), "f"(x));
    return z;
}
__global__ void with_bfloat16(float* c, const float* x, const float* y) {
    float d[4] = {};
    const float* p = x + threadIdx.x * 8;
    const float* q = y + threadIdx.x * 4;
    const unsigned b0 = pair(q[0], q[1]), b1 = pair(q[2], q[3]);
    for (int part = 0; part < 6; part++) {
        const float s = 1 << (part * 8 % 24);
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(pair(p[0] * s, p[1] * s)), "r"(pair(p[2] * s, p[3] * s)), "r"(pair(p[4] * s, p[5] * s)),
                       "r"(pair(p[6] * s, p[7] * s)), "r"(b0), "r"(b1));
    }
    for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__global__ void with_warpgroup(float* c, const unsigned long long* a, const unsigned long long* b) {
    float d[4] = {};
    group_fence();
#pragma unroll
    for (int i = 0; i < 3; i++)
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0, %1, %2, %3}, %4, %5, 1, 1, 1;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a[i == 0]), "l"(b[i == 1]));
    group_commit();
    group_wait<0>();
    for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];
}
#endif

__global__ void without(float* c, const float* x, const float* y) {
    const int row = threadIdx.x / 8, column = threadIdx.x % 8;
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += x[row * 8 + k] * y[k * 8 + column];
    c[threadIdx.x] = sum;
}
