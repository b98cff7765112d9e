// kforge's own kernels on a device: what holds a stream until everything is queued, what empties the L2 cache, what looks at buffers. They know nothing
// of candidates. `kernels.ptx` is made of this file by NVRTC, as `tests/toolchain_network/own_kernels.rs` says: after an edit, by
// `SNAPSHOTS=overwrite cargo test --test acquire own_kernels`. The host's counterparts are in `own_kernels.rs`.

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

// Reads every word of an area, and writes it where `value` is not zero, by which other lines leave the L2 cache.
extern "C" __global__ void kforge_flush(u32* area, u64 words, u32 value) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    u32 seen = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride) {
        u32 word = area[i];
        seen ^= word;
        if (value != 0) area[i] = word ^ value;
    }
    // Words that nothing hangs on would not be read. What the area holds does not matter.
    if (value == 0 && seen == 0x9e3779b9u) area[0] = seen;
}

static __device__ __forceinline__ u64 mixed(u64 word, u64 place, u64 salt) {
    u64 z = word + (place + 1) * 0x9e3779b97f4a7c15ull + salt;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// The sum over a warp, in its first lane.
static __device__ __forceinline__ u64 of_warp(u64 own) {
    for (int lanes = 16; lanes > 0; lanes /= 2) own += __shfl_down_sync(0xffffffffu, own, lanes);
    return own;
}

// What each word of four bytes and its place come to, over the words that this thread takes, the bytes behind the last whole one as a word of their own: equal contents
// give equal sums in whatever order threads come. `area` is aligned to a word. Who does not know the salt cannot make other contents of the same sum.
static __device__ __forceinline__ u64 checksum(const unsigned char* area, u64 bytes, u64 salt, u64 first, u64 stride) {
    const u32* word = (const u32*)area;
    u64 words = bytes / 4;
    u64 own = 0;
    // Four words at a time where they lie in one line of sixteen bytes: a thread that asks for one waits for memory four times as often.
    u64 before = (16 - (u64)area % 16) % 16 / 4;
    if (before > words) before = words;
    u64 fours = (words - before) / 4;
    for (u64 i = first; i < fours; i += stride) {
        u64 place = before + 4 * i;
        uint4 four = *(const uint4*)(word + place);
        own += mixed(four.x, place, salt) + mixed(four.y, place + 1, salt);
        own += mixed(four.z, place + 2, salt) + mixed(four.w, place + 3, salt);
    }
    for (u64 i = first; i < before; i += stride) own += mixed(word[i], i, salt);
    for (u64 i = before + 4 * fours + first; i < words; i += stride) own += mixed(word[i], i, salt);
    if (first == 0 && bytes % 4 != 0) {
        u64 last = 0;
        for (u64 i = words * 4; i < bytes; ++i) last |= (u64)area[i] << 8 * (i % 4);
        own += mixed(last, words, salt);
    }
    return own;
}

// How many bytes of a word are not zero.
static __device__ __forceinline__ u32 nonzero(u32 word) {
    return ((word & 0xffu) != 0) + ((word & 0xff00u) != 0) + ((word & 0xff0000u) != 0) + ((word & 0xff000000u) != 0);
}

// How many bytes are not `byte`, of those that this thread takes.
static __device__ __forceinline__ u64 unlike(const unsigned char* area, u64 bytes, u32 byte, u64 first, u64 stride) {
    u32 same = byte * 0x01010101u;
    u64 own = 0;
    u64 before = (16 - (u64)area % 16) % 16;
    if (before > bytes) before = bytes;
    u64 fours = (bytes - before) / 16;
    for (u64 i = first; i < fours; i += stride) {
        uint4 four = *(const uint4*)(area + before + 16 * i);
        own += nonzero(four.x ^ same) + nonzero(four.y ^ same) + nonzero(four.z ^ same) + nonzero(four.w ^ same);
    }
    for (u64 i = first; i < before; i += stride) own += area[i] != byte;
    for (u64 i = before + 16 * fours + first; i < bytes; i += stride) own += area[i] != byte;
    return own;
}

// What a buffer of `bytes` shows, of which `own` from `offset` on are a kernel's: adds the checksum of these to `found[0]`, and to `found[1]` how many bytes around them
// are not `canary`. `whole + offset` is aligned to a word, blocks are of whole warps.
extern "C" __global__ void kforge_show(const unsigned char* whole, u64 bytes, u64 offset, u64 own, u32 canary, u64 salt, u64* found) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 sum = checksum(whole + offset, own, salt, first, stride);
    u64 end = offset + own;
    u64 spoilt = unlike(whole, offset, canary, first, stride) + unlike(whole + end, bytes - end, canary, first, stride);
    // One addition a warp: those of all threads to one word would take longer than the reading. Not one a block: what lies in shared memory the next kernel may find.
    sum = of_warp(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(&found[0], sum);
    if (spoilt != 0) atomicAdd(&found[1], spoilt);
}
