// A product whose operands carry one scale for every 32 (or 16) values: the tensor core applies the scales, or it multiplies plain eight-bit values.
#if __CUDA_ARCH__ >= 1200
__global__ void with(const unsigned* a, const unsigned* b, const unsigned* scale, float* c) {
    const int t = threadIdx.x;
    float d[4] = {c[t], c[t + 32], c[t + 64], c[t + 96]};
    asm volatile(
        "{ .reg .b16 z; mov.b16 z, 0;\n"
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, %10, {z, z}, %11, {z, z}; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[t]), "r"(a[t + 32]), "r"(a[t + 64]), "r"(a[t + 96]), "r"(b[t]), "r"(b[t + 32]), "r"(scale[t]), "r"(scale[t + 32]));
    for (int i = 0; i < 4; i++) c[t + 32 * i] = d[i];
}

__global__ void with_fours(const unsigned* a, const unsigned* b, const unsigned* scale, float* c) {
    const int t = threadIdx.x;
    float d[4] = {c[t], c[t + 32], c[t + 64], c[t + 96]};
    asm volatile(
        "{ .reg .b16 z; mov.b16 z, 0;\n"
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, %10, {z, z}, %11, {z, z}; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[t]), "r"(a[t + 32]), "r"(a[t + 64]), "r"(a[t + 96]), "r"(b[t]), "r"(b[t + 32]), "r"(scale[t]), "r"(scale[t + 32]));
    for (int i = 0; i < 4; i++) c[t + 32 * i] = d[i];
}

__global__ void without(const unsigned* a, const unsigned* b, const unsigned* scale, float* c) {
    const int t = threadIdx.x;
    float d[4] = {c[t], c[t + 32], c[t + 64], c[t + 96]};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[t]), "r"(a[t + 32]), "r"(a[t + 64]), "r"(a[t + 96]), "r"(b[t]), "r"(b[t + 32]));
    for (int i = 0; i < 4; i++) c[t + 32 * i] = d[i];
}
#else
__global__ void with(unsigned long long a, unsigned long long b, unsigned d, unsigned form, unsigned sa, unsigned sb) {
    if (threadIdx.x == 0) {
        // Scales travel from shared memory to tensor memory; the product's own opcode is that of plain eight-bit values.
        asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(sa), "l"(a) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; "
                     "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%4], [%5], p; }"
                     ::"r"(d), "l"(a), "l"(b), "r"(form), "r"(sa), "r"(sb) : "memory");
    }
}

__global__ void with_fours(unsigned long long a, unsigned long long b, unsigned d, unsigned form, unsigned sa, unsigned sb) {
    if (threadIdx.x == 0) {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; "
                     "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], p; }"
                     ::"r"(d), "l"(a), "l"(b), "r"(form), "r"(sa), "r"(sb) : "memory");
    }
}

__global__ void without(unsigned long long a, unsigned long long b, unsigned d, unsigned form, unsigned sa, unsigned sb) {
    if (threadIdx.x == 0) {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p; }"
                     ::"r"(d), "l"(a), "l"(b), "r"(form) : "memory");
    }
}
#endif
