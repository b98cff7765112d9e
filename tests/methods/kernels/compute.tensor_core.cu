// A 16x16 tile of a half-precision product: by fragments of a warp, by a warpgroup, by a tensor core that owns its accumulator; and by fused multiply-adds.
#include <mma.h>
#include "ptx.cuh"
using namespace nvcuda;

__global__ void with(const half* a, const half* b, float* c, int k) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
        wmma::load_matrix_sync(x, a + i, k);
        wmma::load_matrix_sync(y, b + i * 16, 16);
        wmma::mma_sync(sum, x, y, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

__global__ void with_integers(const signed char* a, const signed char* b, int* c) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> y;
    wmma::fill_fragment(sum, 0);
    wmma::load_matrix_sync(x, a, 16);
    wmma::load_matrix_sync(y, b, 16);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

#if __CUDA_ARCH__ >= 800
__global__ void with_doubles(const double* a, const double* b, double* c) {
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> y;
    wmma::fill_fragment(sum, 0.0);
    wmma::load_matrix_sync(x, a, 4);
    wmma::load_matrix_sync(y, b, 8);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}
#endif

#if __CUDA_ARCH__ >= 890
__global__ void with_eights(const unsigned* a, const unsigned* b, float* c) {
    const int t = threadIdx.x;
    float d[4] = {c[t], c[t + 32], c[t + 64], c[t + 96]};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[t]), "r"(a[t + 32]), "r"(a[t + 64]), "r"(a[t + 96]), "r"(b[t]), "r"(b[t + 32]));
    for (int i = 0; i < 4; i++) c[t + 32 * i] = d[i];
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__global__ void with_warpgroup(unsigned long long a, unsigned long long b, float* c) {
    float d[4] = {};
    group_fence();
    group_product(d, a, b);
    group_commit();
    group_wait<0>();
    for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];
}

__global__ void with_warpgroup_eights(unsigned long long a, unsigned long long b, float* c) {
    float d[4] = {};
    group_fence();
    group_product_e4m3(d, a, b, 0);
    group_commit();
    group_wait<0>();
    for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];
}

__global__ void with_warpgroup_integers(unsigned long long a, unsigned long long b, int* c) {
    int d[4] = {};
    group_fence();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0, %1, %2, %3}, %4, %5, 1;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "l"(a), "l"(b));
    group_commit();
    group_wait<0>();
    for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL) || defined(__CUDA_ARCH_FEAT_SM110_ALL)
__global__ void with_tensor_memory(unsigned long long a, unsigned long long b, unsigned d, unsigned form) {
    if (threadIdx.x == 0) {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
                     ::"r"(d), "l"(a), "l"(b), "r"(form) : "memory");
    }
}

__global__ void with_tensor_memory_eights(unsigned long long a, unsigned long long b, unsigned d, unsigned form) {
    if (threadIdx.x == 0) {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p; }"
                     ::"r"(d), "l"(a), "l"(b), "r"(form) : "memory");
    }
}
#endif

__global__ void without(const half* a, const half* b, float* c, int k) {
    const int row = threadIdx.x / 16, column = threadIdx.x % 16;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += __half2float(a[row * k + i]) * __half2float(b[i * 16 + column]);
    c[threadIdx.x] = sum;
}
