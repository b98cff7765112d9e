// kforge's own kernels on a device: what holds a stream until everything is queued, what empties the L2 cache, what makes inputs and sums bytes. They know nothing
// of candidates. `kernels.ptx` is made of this file by NVRTC with `--gpu-architecture=compute_75 -std=c++17
// --fmad=false`, what stands before `.version` left out and that line lowered to 6.3; the host's counterparts are in `own.rs` and `reference::philox`.

typedef unsigned int u32;
typedef unsigned long long u64;

// Holds its stream until `word` is not zero, or `limit_ns` have passed: a host that died must not leave a kernel that never ends. Says in `word[1]` which it was.
extern "C" __global__ void kforge_gate(volatile u32* word, u64 limit_ns) {
    u64 start;
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    while (word[0] == 0) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now - start > limit_ns) {
            word[1] = 1;
            return;
        }
    }
}

// Reads and writes every word of an area, by which other lines leave the L2 cache.
extern "C" __global__ void kforge_flush(u32* area, u64 words, u32 value) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride) area[i] = area[i] ^ value;
}

static __device__ __forceinline__ u64 mixed(u64 word, u64 place, u64 salt) {
    u64 z = word + (place + 1) * 0x9e3779b97f4a7c15ull + salt;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// Adds to `sum` what each word of four bytes and its place come to, the bytes behind the last whole one as a word of their own: equal contents give equal sums in
// whatever order threads come. `area` is aligned to a word. Who does not know the salt cannot make other contents of the same sum.
extern "C" __global__ void kforge_checksum(const unsigned char* area, u64 bytes, u64 salt, u64* sum) {
    u64 words = bytes / 4;
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 own = 0;
    for (u64 i = first; i < words; i += stride) own += mixed(((const u32*)area)[i], i, salt);
    if (first == 0 && bytes % 4 != 0) {
        u64 last = 0;
        for (u64 i = words * 4; i < bytes; ++i) last |= (u64)area[i] << 8 * (i % 4);
        own += mixed(last, words, salt);
    }
    atomicAdd(sum, own);
}

// Counts bytes that are not `byte`.
extern "C" __global__ void kforge_unlike(const unsigned char* area, u64 bytes, u32 byte, u64* count) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 own = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += stride) own += area[i] != byte;
    if (own != 0) atomicAdd(count, own);
}

// Philox 4x32-10 as in `reference::philox`.
static __device__ __forceinline__ void philox(u32* c, u32 k0, u32 k1) {
    for (int round = 0; round < 10; ++round) {
        u64 p0 = 0xD2511F53ull * c[0];
        u64 p1 = 0xCD9E8D57ull * c[2];
        u32 c1 = c[1];
        u32 c3 = c[3];
        c[0] = (u32)(p1 >> 32) ^ c1 ^ k0;
        c[1] = (u32)p1;
        c[2] = (u32)(p0 >> 32) ^ c3 ^ k1;
        c[3] = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

static __device__ __forceinline__ void block_of(u64 seed, u32 ordinal, u64 index, u32 draw, u32* c) {
    c[0] = (u32)index;
    c[1] = (u32)(index >> 32);
    c[2] = ordinal;
    c[3] = draw;
    philox(c, (u32)seed, (u32)(seed >> 32));
}

// Elements of a contiguous float tensor as `reference::generate` draws them: rule 0 uniform, 1 normal, 2 positive, 3 large. Every step but the last rounding to
// float is exact in double precision, so the host's bits come out.
extern "C" __global__ void kforge_fill(float* out, u64 count, u64 seed, u32 ordinal, u32 rule) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        u32 c[4];
        block_of(seed, ordinal, i, 0, c);
        double x;
        if (rule == 1) {
            long long sum = (long long)c[0] + c[1] + c[2] + c[3];
            block_of(seed, ordinal, i, 1, c);
            sum += (long long)c[0] + c[1] + c[2] + c[3];
            // 4 * (2^32 - 1); the factor is sqrt(12 / 8) / 2^32 as the host rounds it.
            x = (double)(sum - 17179869180ll) * (1.224744871391589 * 0x1p-32);
        } else {
            double unit = (double)(((u64)c[0] | (u64)c[1] << 32) >> 11) * 0x1p-53;
            x = rule == 2 ? 1.0 - unit : 2.0 * unit - 1.0;
            if (rule == 3) x *= 128.0;
        }
        out[i] = (float)x;
    }
}
