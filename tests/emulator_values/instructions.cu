// Every instruction of inline PTX that is emulated, on operands that are made here: edges of its type (zeros, subnormal numbers, infinities, NaN, extremes) among
// random ones. Runs on a GPU (`tests/gpu/run KFORGE --only ptx`) and on the emulator (`tests/emulator`); `instructions.txt` holds what a GPU gave.
//
// A kernel runs in blocks of 32 threads, and each thread gives one word of 64 bits. The macro in front of a kernel says how its words are compared: INT, F32, F64,
// F16, BF16, TILE, ATOMF and MMA to the bit; NEAR_* within a power of two, of the value or absolute; MMA_F* within what their place in `values.rs` says.
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

__device__ __noinline__ u64 mixed(u64 z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
enum kind { ints, floats, doubles, halves, bfloats };
__device__ __noinline__ u64 edge(kind k, u32 at) {
  const u64 integers[] = {0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0x8000000000000000, ~0ull, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa};
  const u32 single[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fffffff, 0x7fc00001, 0xffc00000, 0x3f000000, 0x3fc00000, 0x40200000, 0x4f000000, 0xcf000000, 0x5f000000, 0x3f7fffff, 0xff800001};
  const u64 twice[] = {0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x3fe0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0x41e0000000000000, 0xc1e0000000000000, 0x43e0000000000000, 0x36a0000000000000, 0x47efffffe0000000, 0x47effffff0000000, 0x3fefffffffffffff, 0xfff4123456789abc};
  const u16 half[] = {0, 0x8000, 0x3c00, 0xbc00, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7fff, 0x7e01, 0xfe00, 0x3800, 0x3e00, 0x4100, 0x7800, 0x3bff, 0x5bff, 0x3c01, 0xfd23};
  const u16 bfloat[] = {0, 0x8000, 0x3f80, 0xbf80, 1, 0x8001, 0x7f, 0x80, 0x8080, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fff, 0x7fc1, 0xffc0, 0x3f00, 0x3fc0, 0x4020, 0x4f00, 0xcf00, 0x5f00, 0x3f7f, 0xffa1};
  at %= 24;
  return k == ints ? integers[at] : k == floats ? single[at] : k == doubles ? twice[at] : k == halves ? half[at] : bfloat[at];
}
// Operand `which` of thread i. Floats are near one, anything, or an edge; pairs of 16 bits are made half by half.
__device__ __noinline__ u64 operand(kind k, u32 i, u32 which) {
  u64 r = mixed(i * 16ull + which), s = mixed(r);
  if (k == halves || k == bfloats) {
    u64 all = 0;
    for (int part = 0; part < 4; ++part) {
      u64 q = mixed(s + part), near = k == halves ? (q & 0x83ff) | 0x3800 | (q >> 20 & 0x400) : (q & 0x80ff) | 0x3f00;
      all |= ((q >> 40) % 4 == 0 ? edge(k, (u32)(q >> 48)) : (q >> 40) % 4 == 1 ? q & 0xffff : near) << (16 * part);
    }
    return all;
  }
  if (s % 4 == 0) return edge(k, (u32)(s >> 32));
  if (k == ints) return s & 4 ? r >> (s >> 32) % 64 : r;
  if (k == floats) return s & 4 ? r & 0xffffffff : s & 8 ? (r & 0x807fffff) | 0x3f000000 | (s >> 20 & 0x1800000) : (r & 0x80ffffff) | 0x3f000000;
  return s & 4 ? r : (r & 0x800fffffffffffff) | 0x3fe0000000000000 | (s & 0x0030000000000000);
}
__device__ __forceinline__ u64 pair(u32 lo, u32 hi) { return lo | (u64)hi << 32; }
__device__ __forceinline__ float as_float(u32 v) { float f; memcpy(&f, &v, 4); return f; }
__device__ __forceinline__ double as_double(u64 v) { double d; memcpy(&d, &v, 8); return d; }
__device__ __forceinline__ u64 raw(float v) { u32 u; memcpy(&u, &v, 4); return u; }
// What NaN a result of f64 is, or one whose sign changed, is not defined.
__device__ __forceinline__ u64 raw(double v) { u64 u; memcpy(&u, &v, 8); return v != v ? 0x7ff8000000000000ull : u; }
__device__ __forceinline__ u64 number(float v) { return v != v ? 0x7fffffffull : raw(v); }
__device__ __forceinline__ u64 numbers16(u32 v) { return (v & 0x7fff) > 0x7c00 ? 0x7fff : v & 0xffff; }
__device__ __forceinline__ u64 numbers16x2(u32 v) { return numbers16(v & 0xffff) | numbers16(v >> 16) << 16; }
__device__ __forceinline__ u64 numbersb16(u32 v) { return (v & 0x7fff) > 0x7f80 ? 0x7fff : v & 0xffff; }
__device__ __forceinline__ u64 numbersb16x2(u32 v) { return numbersb16(v & 0xffff) | numbersb16(v >> 16) << 16; }
__device__ __forceinline__ float turn(u32 i) { return (float)((int)(i * 97 % 4096) - 2048) * (3.14159265f / 1024); }
__device__ __forceinline__ u64 folded(const u32 *w) { return w[0] + 3ull * w[1] + 5ull * w[2] + 7ull * w[3]; }
__device__ __forceinline__ u64 folded(const u16 *w) { return w[0] + 3ull * w[1] + 5ull * w[2] + 7ull * w[3]; }
__device__ __forceinline__ u64 folded(const u64 *w) { return w[0] + 3ull * w[1]; }
__device__ __forceinline__ u64 folded(const float *w) { return raw(w[0]) + 3 * raw(w[1]) + 5 * raw(w[2]) + 7 * raw(w[3]); }
__device__ __forceinline__ u64 folded(const double *w) { return raw(w[0]) + 3 * raw(w[1]); }

#define OPERANDS(k)                                                                                                    \
  const u32 i = blockIdx.x * 32 + threadIdx.x;                                                                         \
  u64 aa = operand(k, i, 0), bb = operand(k, i, 1), cc = operand(k, i, 2), dd = 0;                                     \
  u32 a = (u32)aa, b = (u32)bb, c = (u32)cc, n = (u32)operand(ints, i, 3) % 80, m = (u32)(operand(ints, i, 4) % 80), d = 0, e = 0;                  \
  u16 ha = (u16)aa, hb = (u16)bb, hc = (u16)cc, hd = 0;                                                                \
  float fa = as_float(a), fb = as_float(b), fc = as_float(c), fd = 0;                                                  \
  double da = as_double(aa), db = as_double(bb), dc = as_double(cc), ddd = 0;                                          \
  (void)n, (void)m, (void)d, (void)e, (void)dd, (void)hc, (void)hd, (void)fb, (void)fc, (void)fd, (void)da, (void)db, (void)dc, (void)ddd, (void)ha, (void)hb;
#define GIVE(value) out[i] = (value)
#define KERNEL(name) extern "C" __global__ void name(u64 *out) {
#define END }
#define INT(name) KERNEL(name) OPERANDS(ints)
#define F32(name) KERNEL(name) OPERANDS(floats)
#define F64(name) KERNEL(name) OPERANDS(doubles)
#define F16(name) KERNEL(name) OPERANDS(halves)
#define BF16(name) KERNEL(name) OPERANDS(bfloats)
#define NEAR_REL(name, bits) F32(name)
#define NEAR_LOG(name, bits) F32(name)
#define NEAR_ABS(name, bits) F32(name)
#define NEAR_F16(name, bits) F16(name)
#define NEAR_BF16(name, bits) BF16(name)
__device__ __forceinline__ u64 wide16(u16 v) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v)); return raw(f); }
__device__ __forceinline__ u64 wideb16(u16 v) { return (u64)v << 16; }

// Memory: a row of sixteen bytes for each thread, in shared and in global memory.
__device__ __align__(128) uint4 rows[4096];
__device__ __forceinline__ u64 own(const u32 (*tile)[4]) {
  __syncwarp();
  return folded(tile[threadIdx.x]);
}
__device__ __forceinline__ u64 global_own(u64 row) {
  u32 w[4];
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(row) : "memory");
  return folded(w);
}
#define own_row(tile) own(tile)
#define ROWS(fill)                                                                                                     \
  __shared__ __align__(16) u32 tile[32][4];                                                                            \
  u32 w[4] = {}, v[4], lane = threadIdx.x;                                                                             \
  u16 hw[4] = {};                                                                                                      \
  u64 ww[2] = {};                                                                                                      \
  float fw[4] = {};                                                                                                    \
  double dw[2] = {};                                                                                                   \
  for (int k = 0; k < 4; ++k) tile[lane][k] = (fill), v[k] = (u32)mixed(i * 4ull + k + 77777);                         \
  rows[i] = make_uint4(tile[lane][0], tile[lane][1], tile[lane][2], tile[lane][3]);                                    \
  const u32 row = (u32)__cvta_generic_to_shared(tile[lane]);                                                           \
  const u64 global_row = (u64)(rows + i);                                                                              \
  const u32 same32 = i & 1 ? tile[lane][0] : a;                                                                        \
  const u64 same64 = i & 1 ? pair(tile[lane][0], tile[lane][1]) : aa;                                                  \
  const u16 same16 = i & 1 ? (u16)tile[lane][0] : ha;                                                                  \
  (void)w, (void)v, (void)hw, (void)ww, (void)fw, (void)dw, (void)row, (void)global_row, (void)same32, (void)same64, (void)same16;  \
  __syncwarp();
#define TILE(name) INT(name) ROWS((u32)mixed(i * 4ull + k))
#define ATOMF(name)                                                                                                    \
  INT(name)                                                                                                            \
  a = 0x3f803f80 | (a & 0x007f007f), fa = as_float(a), ha = (u16)a, aa = pair(b, a), da = as_double(aa);               \
  ROWS(0x3f803f80 | ((u32)mixed(i * 4ull + k) & 0x007f007f))

// Matrices: numbers of magnitudes from a half to one (of e4m3 to two), and integers among which sums overflow.
#define WORD(name, ...)                                                                                                \
  __device__ __noinline__ u32 name##_word(u32 i, u32 k) {                                                              \
    u32 r = (u32)mixed(i * 64ull + k + 5555);                                                                          \
    return __VA_ARGS__;                                                                                                \
  }
WORD(half, (r & 0x83ff83ff) | 0x38003800)
WORD(bfloat, (r & 0x807f807f) | 0x3f003f00)
WORD(tf32, (r & 0x807fffff) | 0x3f000000)
WORD(byte, r)
WORD(e4m3, (r & 0x87878787) | 0x38383838)
WORD(integer, r & 3 ? r : r & 4 ? 0x7fffffff - (r >> 20) : 0x80000000 + (r >> 20))
__device__ __forceinline__ float float_word(u32 i, u32 k) { return as_float(tf32_word(i, k)); }
__device__ __noinline__ double double_word(u32 i, u32 k) { return as_double((mixed(i * 64ull + k + 5555) & 0x800fffffffffffff) | 0x3fe0000000000000); }
template <int N> __device__ __forceinline__ u64 folded_mr(const u32 *w) {
  u64 all = 0;
  for (int k = 0; k < N; ++k) all = all * 31 + w[k];
  return all;
}
#define WORDS                                                                                                          \
  const u32 i = blockIdx.x * 32 + threadIdx.x;                                                                         \
  u32 mr[4] = {};                                                                                                      \
  float mf[4] = {};                                                                                                    \
  double md[4] = {};                                                                                                   \
  (void)mr, (void)mf, (void)md;
#define MMA(name) KERNEL(name) WORDS
#define MMA_F32(name, depth, count) KERNEL(name) WORDS const int many = count;
#define MMA_F16(name, depth, count) KERNEL(name) WORDS const int many = count;
#define MMA_F64(name, depth, count) KERNEL(name) WORDS const int many = count;
__device__ __forceinline__ u64 raw(u32 v) { return v; }
#define ALL(words) for (int k = 0; k < many; ++k) out[i * many + k] = raw(words[k])

INT(add_u16) asm volatile("add.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(sub_u16) asm volatile("sub.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(min_u16) asm volatile("min.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(max_u16) asm volatile("max.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(div_u16) hb = hb ? hb : 3; asm volatile("div.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(rem_u16) hb = hb ? hb : 3; asm volatile("rem.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(mul_lo_u16) asm volatile("mul.lo.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(mul_hi_u16) asm volatile("mul.hi.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(mad_lo_u16) asm volatile("mad.lo.u16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
INT(mad_hi_u16) asm volatile("mad.hi.u16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
INT(sad_u16) asm volatile("sad.u16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
INT(add_s16) asm volatile("add.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(sub_s16) asm volatile("sub.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(min_s16) asm volatile("min.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(max_s16) asm volatile("max.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(div_s16) hb = hb ? hb : 3; if (hb == 0xffff) hb = 5; asm volatile("div.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(rem_s16) hb = hb ? hb : 3; if (hb == 0xffff) hb = 5; asm volatile("rem.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(mul_lo_s16) asm volatile("mul.lo.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(mul_hi_s16) asm volatile("mul.hi.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(mad_lo_s16) asm volatile("mad.lo.s16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
INT(mad_hi_s16) asm volatile("mad.hi.s16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
INT(sad_s16) asm volatile("sad.s16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
INT(add_u32) asm volatile("add.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(sub_u32) asm volatile("sub.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(min_u32) asm volatile("min.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(max_u32) asm volatile("max.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(div_u32) b = b ? b : 3; asm volatile("div.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(rem_u32) b = b ? b : 3; asm volatile("rem.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mul_lo_u32) asm volatile("mul.lo.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mul_hi_u32) asm volatile("mul.hi.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mad_lo_u32) asm volatile("mad.lo.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(mad_hi_u32) asm volatile("mad.hi.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(sad_u32) asm volatile("sad.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(add_s32) asm volatile("add.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(sub_s32) asm volatile("sub.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(min_s32) asm volatile("min.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(max_s32) asm volatile("max.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(div_s32) b = b ? b : 3; if (b == ~0u) b = 5; asm volatile("div.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(rem_s32) b = b ? b : 3; if (b == ~0u) b = 5; asm volatile("rem.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mul_lo_s32) asm volatile("mul.lo.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mul_hi_s32) asm volatile("mul.hi.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mad_lo_s32) asm volatile("mad.lo.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(mad_hi_s32) asm volatile("mad.hi.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(sad_s32) asm volatile("sad.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(add_u64) asm volatile("add.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(sub_u64) asm volatile("sub.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(min_u64) asm volatile("min.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(max_u64) asm volatile("max.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(div_u64) bb = bb ? bb : 3; asm volatile("div.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(rem_u64) bb = bb ? bb : 3; asm volatile("rem.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(mul_lo_u64) asm volatile("mul.lo.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(mul_hi_u64) asm volatile("mul.hi.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(mad_lo_u64) asm volatile("mad.lo.u64 %0, %1, %2, %3;" : "=l"(dd) : "l"(aa), "l"(bb), "l"(cc)); GIVE(dd); END
INT(mad_hi_u64) asm volatile("mad.hi.u64 %0, %1, %2, %3;" : "=l"(dd) : "l"(aa), "l"(bb), "l"(cc)); GIVE(dd); END
INT(sad_u64) asm volatile("sad.u64 %0, %1, %2, %3;" : "=l"(dd) : "l"(aa), "l"(bb), "l"(cc)); GIVE(dd); END
INT(add_s64) asm volatile("add.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(sub_s64) asm volatile("sub.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(min_s64) asm volatile("min.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(max_s64) asm volatile("max.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(div_s64) bb = bb ? bb : 3; if (bb == ~0ull) bb = 5; asm volatile("div.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(rem_s64) bb = bb ? bb : 3; if (bb == ~0ull) bb = 5; asm volatile("rem.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(mul_lo_s64) asm volatile("mul.lo.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(mul_hi_s64) asm volatile("mul.hi.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(mad_lo_s64) asm volatile("mad.lo.s64 %0, %1, %2, %3;" : "=l"(dd) : "l"(aa), "l"(bb), "l"(cc)); GIVE(dd); END
INT(mad_hi_s64) asm volatile("mad.hi.s64 %0, %1, %2, %3;" : "=l"(dd) : "l"(aa), "l"(bb), "l"(cc)); GIVE(dd); END
INT(sad_s64) asm volatile("sad.s64 %0, %1, %2, %3;" : "=l"(dd) : "l"(aa), "l"(bb), "l"(cc)); GIVE(dd); END
INT(mul_wide_u16) asm volatile("mul.wide.u16 %0, %1, %2;" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(mad_wide_u16) asm volatile("mad.wide.u16 %0, %1, %2, %3;" : "=r"(d) : "h"(ha), "h"(hb), "r"(c)); GIVE(d); END
INT(mul_wide_s16) asm volatile("mul.wide.s16 %0, %1, %2;" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(mad_wide_s16) asm volatile("mad.wide.s16 %0, %1, %2, %3;" : "=r"(d) : "h"(ha), "h"(hb), "r"(c)); GIVE(d); END
INT(mul_wide_u32) asm volatile("mul.wide.u32 %0, %1, %2;" : "=l"(dd) : "r"(a), "r"(b)); GIVE(dd); END
INT(mad_wide_u32) asm volatile("mad.wide.u32 %0, %1, %2, %3;" : "=l"(dd) : "r"(a), "r"(b), "l"(cc)); GIVE(dd); END
INT(mul_wide_s32) asm volatile("mul.wide.s32 %0, %1, %2;" : "=l"(dd) : "r"(a), "r"(b)); GIVE(dd); END
INT(mad_wide_s32) asm volatile("mad.wide.s32 %0, %1, %2, %3;" : "=l"(dd) : "r"(a), "r"(b), "l"(cc)); GIVE(dd); END
INT(abs_s16) asm volatile("abs.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(neg_s16) asm volatile("neg.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(abs_s32) asm volatile("abs.s32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(neg_s32) asm volatile("neg.s32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(abs_s64) asm volatile("abs.s64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(neg_s64) asm volatile("neg.s64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(add_sat_s32) asm volatile("add.sat.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(sub_sat_s32) asm volatile("sub.sat.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mad_hi_sat_s32) asm volatile("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(mul24_lo_u32) asm volatile("mul24.lo.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mad24_lo_u32) asm volatile("mad24.lo.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(mul24_lo_s32) asm volatile("mul24.lo.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mad24_lo_s32) asm volatile("mad24.lo.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(mul24_hi_u32) asm volatile("mul24.hi.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mad24_hi_u32) asm volatile("mad24.hi.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(mul24_hi_s32) asm volatile("mul24.hi.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(mad24_hi_s32) asm volatile("mad24.hi.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(and_b16) asm volatile("and.b16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(and_b32) asm volatile("and.b32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(and_b64) asm volatile("and.b64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(or_b16) asm volatile("or.b16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(or_b32) asm volatile("or.b32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(or_b64) asm volatile("or.b64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(xor_b16) asm volatile("xor.b16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
INT(xor_b32) asm volatile("xor.b32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(xor_b64) asm volatile("xor.b64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "l"(bb)); GIVE(dd); END
INT(not_b16) asm volatile("not.b16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cnot_b16) asm volatile("cnot.b16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(shl_b16) asm volatile("shl.b16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "r"(n)); GIVE(hd); END
INT(shr_b16) asm volatile("shr.b16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "r"(n)); GIVE(hd); END
INT(shr_u16) asm volatile("shr.u16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "r"(n)); GIVE(hd); END
INT(shr_s16) asm volatile("shr.s16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "r"(n)); GIVE(hd); END
INT(not_b32) asm volatile("not.b32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(cnot_b32) asm volatile("cnot.b32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(shl_b32) asm volatile("shl.b32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(n)); GIVE(d); END
INT(shr_b32) asm volatile("shr.b32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(n)); GIVE(d); END
INT(shr_u32) asm volatile("shr.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(n)); GIVE(d); END
INT(shr_s32) asm volatile("shr.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(n)); GIVE(d); END
INT(not_b64) asm volatile("not.b64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(cnot_b64) asm volatile("cnot.b64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(shl_b64) asm volatile("shl.b64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "r"(n)); GIVE(dd); END
INT(shr_b64) asm volatile("shr.b64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "r"(n)); GIVE(dd); END
INT(shr_u64) asm volatile("shr.u64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "r"(n)); GIVE(dd); END
INT(shr_s64) asm volatile("shr.s64 %0, %1, %2;" : "=l"(dd) : "l"(aa), "r"(n)); GIVE(dd); END
INT(shf_l_wrap_b32) asm volatile("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(n)); GIVE(d); END
INT(shf_l_clamp_b32) asm volatile("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(n)); GIVE(d); END
INT(shf_r_wrap_b32) asm volatile("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(n)); GIVE(d); END
INT(shf_r_clamp_b32) asm volatile("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(n)); GIVE(d); END
INT(lop3_b32_0x96) asm volatile("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(lop3_b32_0xe8) asm volatile("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(lop3_b32_0xca) asm volatile("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(lop3_b32_0x1b) asm volatile("lop3.b32 %0, %1, %2, %3, 0x1b;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(lop3_b32_0xff) asm volatile("lop3.b32 %0, %1, %2, %3, 0xff;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(lop3_b32_0x40) asm volatile("lop3.b32 %0, %1, %2, %3, 0x40;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(prmt_b32) asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(prmt_b32_f4e) asm volatile("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(prmt_b32_b4e) asm volatile("prmt.b32.b4e %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(prmt_b32_rc8) asm volatile("prmt.b32.rc8 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(prmt_b32_ecl) asm volatile("prmt.b32.ecl %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(prmt_b32_ecr) asm volatile("prmt.b32.ecr %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(prmt_b32_rc16) asm volatile("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(bfe_u32) asm volatile("bfe.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(n), "r"(m)); GIVE(d); END
INT(bfind_u32) asm volatile("bfind.u32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(bfind_shiftamt_u32) asm volatile("bfind.shiftamt.u32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(bfe_s32) asm volatile("bfe.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(n), "r"(m)); GIVE(d); END
INT(bfind_s32) asm volatile("bfind.s32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(bfind_shiftamt_s32) asm volatile("bfind.shiftamt.s32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(bfe_u64) asm volatile("bfe.u64 %0, %1, %2, %3;" : "=l"(dd) : "l"(aa), "r"(n), "r"(m)); GIVE(dd); END
INT(bfind_u64) asm volatile("bfind.u64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(bfind_shiftamt_u64) asm volatile("bfind.shiftamt.u64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(bfe_s64) asm volatile("bfe.s64 %0, %1, %2, %3;" : "=l"(dd) : "l"(aa), "r"(n), "r"(m)); GIVE(dd); END
INT(bfind_s64) asm volatile("bfind.s64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(bfind_shiftamt_s64) asm volatile("bfind.shiftamt.s64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(bfi_b32) asm volatile("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(n), "r"(m)); GIVE(d); END
INT(bmsk_clamp_b32) asm volatile("bmsk.clamp.b32 %0, %1, %2;" : "=r"(d) : "r"(n), "r"(m)); GIVE(d); END
INT(bmsk_wrap_b32) asm volatile("bmsk.wrap.b32 %0, %1, %2;" : "=r"(d) : "r"(n), "r"(m)); GIVE(d); END
INT(brev_b32) asm volatile("brev.b32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(clz_b32) asm volatile("clz.b32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(popc_b32) asm volatile("popc.b32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(bfi_b64) asm volatile("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(dd) : "l"(aa), "l"(bb), "r"(n), "r"(m)); GIVE(dd); END
INT(brev_b64) asm volatile("brev.b64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(clz_b64) asm volatile("clz.b64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(popc_b64) asm volatile("popc.b64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(fns_b32) asm volatile("fns.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(n % 32), "r"((m % 16) - 8)); GIVE(d); END
INT(dp4a_u32_u32) asm volatile("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp2a_lo_u32_u32) asm volatile("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp2a_hi_u32_u32) asm volatile("dp2a.hi.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp4a_u32_s32) asm volatile("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp2a_lo_u32_s32) asm volatile("dp2a.lo.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp2a_hi_u32_s32) asm volatile("dp2a.hi.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp4a_s32_u32) asm volatile("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp2a_lo_s32_u32) asm volatile("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp2a_hi_s32_u32) asm volatile("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp4a_s32_s32) asm volatile("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp2a_lo_s32_s32) asm volatile("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(dp2a_hi_s32_s32) asm volatile("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(carry_add) asm volatile("add.cc.u32 %0, %2, %4; addc.cc.u32 %1, %3, %5; addc.u32 %0, %0, 0;" : "=&r"(d), "=&r"(e) : "r"(a), "r"(b), "r"(c), "r"(n)); GIVE(pair(d, e)); END
INT(carry_sub) asm volatile("sub.cc.u32 %0, %2, %4; subc.cc.u32 %1, %3, %5; subc.u32 %0, %0, 0;" : "=&r"(d), "=&r"(e) : "r"(a), "r"(b), "r"(c), "r"(n)); GIVE(pair(d, e)); END
INT(carry_mad) asm volatile("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.cc.u32 %1, %2, %3, %5; madc.lo.u32 %0, %0, %0, 0;" : "=&r"(d), "=&r"(e) : "r"(a), "r"(b), "r"(c), "r"(n)); GIVE(pair(d, e)); END
INT(carry_wide) asm volatile("add.cc.u64 %0, %1, %2; addc.u64 %0, %0, %3;" : "=&l"(dd) : "l"(aa), "l"(bb), "l"(cc)); GIVE(dd); END
INT(slct_s32_s32) asm volatile("slct.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
F32(slct_f32_f32) asm volatile("slct.f32.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
INT(pack_b32) asm volatile("{ .reg .b16 x, y; mov.b32 {x, y}, %1; mov.b32 %0, {y, x}; }" : "=r"(d) : "r"(a)); GIVE(d); END
INT(pack_b64) asm volatile("{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %1; add.u32 lo, lo, 1; mov.b64 %0, {hi, lo}; }" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(pack_b64_four) asm volatile("{ .reg .b16 r<4>; mov.b64 {r0, r1, r2, r3}, %1; mov.b64 %0, {r3, r2, r1, r0}; }" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(setp_eq_s32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.eq.s32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_eq_u32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_eq_s64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.eq.s64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_eq_u64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.eq.u64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_eq_s16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.eq.s16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_eq_u16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.eq.u16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_ne_s32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_ne_u32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_ne_s64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ne.s64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_ne_u64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ne.u64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_ne_s16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ne.s16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_ne_u16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ne.u16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_lt_s32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_lt_u32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_lt_s64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.lt.s64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_lt_u64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.lt.u64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_lt_s16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.lt.s16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_lt_u16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.lt.u16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_le_s32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.le.s32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_le_u32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.le.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_le_s64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.le.s64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_le_u64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.le.u64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_le_s16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.le.s16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_le_u16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.le.u16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_gt_s32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_gt_u32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_gt_s64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.gt.s64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_gt_u64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.gt.u64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_gt_s16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.gt.s16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_gt_u16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.gt.u16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_ge_s32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ge.s32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_ge_u32) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ge.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_ge_s64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ge.s64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_ge_u64) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ge.u64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "l"(aa), "l"(bb)); GIVE(d); END
INT(setp_ge_s16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ge.s16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_ge_u16) b = n & 1 ? a : b; bb = n & 1 ? aa : bb; hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ge.u16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
INT(setp_lo_u32) asm volatile("{ .reg .pred p; setp.lo.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_ls_u32) asm volatile("{ .reg .pred p; setp.ls.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_hi_u32) asm volatile("{ .reg .pred p; setp.hi.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_hs_u32) asm volatile("{ .reg .pred p; setp.hs.u32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F32(setp_eq_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.eq.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_eq_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.eq.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_eq_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.eq.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_ne_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.ne.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_ne_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.ne.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_ne_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ne.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_lt_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_lt_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.lt.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_lt_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.lt.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_le_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.le.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_le_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.le.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_le_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.le.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_gt_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.gt.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_gt_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.gt.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_gt_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.gt.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_ge_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.ge.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_ge_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.ge.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_ge_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ge.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_equ_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.equ.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_equ_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.equ.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_equ_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.equ.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_neu_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.neu.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_neu_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.neu.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_neu_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.neu.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_ltu_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.ltu.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_ltu_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.ltu.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_ltu_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.ltu.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_leu_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.leu.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_leu_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.leu.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_leu_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.leu.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_gtu_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.gtu.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_gtu_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.gtu.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_gtu_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.gtu.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_geu_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.geu.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_geu_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.geu.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_geu_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.geu.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_num_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.num.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_num_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.num.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_num_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.num.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_nan_f32) fb = n & 1 ? fa : fb; asm volatile("{ .reg .pred p; setp.nan.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F64(setp_nan_f64) db = n & 1 ? da : db; asm volatile("{ .reg .pred p; setp.nan.f64 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da), "d"(db)); GIVE(d); END
F16(setp_nan_f16) hb = n & 1 ? ha : hb; asm volatile("{ .reg .pred p; setp.nan.f16 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "h"(ha), "h"(hb)); GIVE(d); END
F32(setp_lt_ftz_f32) asm volatile("{ .reg .pred p; setp.lt.ftz.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(setp_eq_ftz_f32) asm volatile("{ .reg .pred p; setp.eq.ftz.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F16(setp_gt_f16x2) asm volatile("{ .reg .pred p, q; setp.gt.f16x2 p|q, %1, %2; selp.b32 %0, 1, 0, p; @q or.b32 %0, %0, 2; }" : "=&r"(d) : "r"(a), "r"(b)); GIVE(d); END
BF16(setp_gt_bf16x2) asm volatile("{ .reg .pred p, q; setp.gt.bf16x2 p|q, %1, %2; selp.b32 %0, 1, 0, p; @q or.b32 %0, %0, 2; }" : "=&r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(setp_and_or) asm volatile("{ .reg .pred p, q, r; setp.lt.s32 p, %1, %2; setp.lt.and.s32 q|r, %2, %3, p; selp.b32 %0, 1, 0, q; @r or.b32 %0, %0, 2; setp.ge.or.u32 q, %1, %3, !p; @!q or.b32 %0, %0, 4; xor.pred q, q, r; @q or.b32 %0, %0, 8; not.pred q, p; @q or.b32 %0, %0, 16; }" : "=&r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(set_lt_u32_s32) asm volatile("set.lt.u32.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F32(set_gtu_u32_f32) asm volatile("set.gtu.u32.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
INT(set_lt_s32_s32) asm volatile("set.lt.s32.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F32(set_gtu_s32_f32) asm volatile("set.gtu.s32.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
INT(set_lt_f32_s32) asm volatile("set.lt.f32.s32 %0, %1, %2;" : "=f"(fd) : "r"(a), "r"(b)); GIVE(raw(fd)); END
F32(set_gtu_f32_f32) asm volatile("set.gtu.f32.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rn_f32) asm volatile("add.rn.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rn_ftz_f32) asm volatile("add.rn.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rn_sat_f32) asm volatile("add.rn.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rn_ftz_sat_f32) asm volatile("add.rn.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(add_rn_f64) asm volatile("add.rn.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(add_rz_f32) asm volatile("add.rz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rz_ftz_f32) asm volatile("add.rz.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rz_sat_f32) asm volatile("add.rz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rz_ftz_sat_f32) asm volatile("add.rz.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(add_rz_f64) asm volatile("add.rz.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(add_rm_f32) asm volatile("add.rm.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rm_ftz_f32) asm volatile("add.rm.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rm_sat_f32) asm volatile("add.rm.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rm_ftz_sat_f32) asm volatile("add.rm.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(add_rm_f64) asm volatile("add.rm.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(add_rp_f32) asm volatile("add.rp.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rp_ftz_f32) asm volatile("add.rp.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rp_sat_f32) asm volatile("add.rp.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(add_rp_ftz_sat_f32) asm volatile("add.rp.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(add_rp_f64) asm volatile("add.rp.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(sub_rn_f32) asm volatile("sub.rn.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rn_ftz_f32) asm volatile("sub.rn.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rn_sat_f32) asm volatile("sub.rn.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rn_ftz_sat_f32) asm volatile("sub.rn.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(sub_rn_f64) asm volatile("sub.rn.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(sub_rz_f32) asm volatile("sub.rz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rz_ftz_f32) asm volatile("sub.rz.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rz_sat_f32) asm volatile("sub.rz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rz_ftz_sat_f32) asm volatile("sub.rz.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(sub_rz_f64) asm volatile("sub.rz.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(sub_rm_f32) asm volatile("sub.rm.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rm_ftz_f32) asm volatile("sub.rm.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rm_sat_f32) asm volatile("sub.rm.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rm_ftz_sat_f32) asm volatile("sub.rm.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(sub_rm_f64) asm volatile("sub.rm.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(sub_rp_f32) asm volatile("sub.rp.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rp_ftz_f32) asm volatile("sub.rp.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rp_sat_f32) asm volatile("sub.rp.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(sub_rp_ftz_sat_f32) asm volatile("sub.rp.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(sub_rp_f64) asm volatile("sub.rp.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(mul_rn_f32) asm volatile("mul.rn.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rn_ftz_f32) asm volatile("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rn_sat_f32) asm volatile("mul.rn.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rn_ftz_sat_f32) asm volatile("mul.rn.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(mul_rn_f64) asm volatile("mul.rn.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(mul_rz_f32) asm volatile("mul.rz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rz_ftz_f32) asm volatile("mul.rz.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rz_sat_f32) asm volatile("mul.rz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rz_ftz_sat_f32) asm volatile("mul.rz.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(mul_rz_f64) asm volatile("mul.rz.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(mul_rm_f32) asm volatile("mul.rm.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rm_ftz_f32) asm volatile("mul.rm.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rm_sat_f32) asm volatile("mul.rm.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rm_ftz_sat_f32) asm volatile("mul.rm.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(mul_rm_f64) asm volatile("mul.rm.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(mul_rp_f32) asm volatile("mul.rp.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rp_ftz_f32) asm volatile("mul.rp.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rp_sat_f32) asm volatile("mul.rp.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(mul_rp_ftz_sat_f32) asm volatile("mul.rp.ftz.sat.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(mul_rp_f64) asm volatile("mul.rp.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(fma_rn_f32) asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rn_ftz_f32) asm volatile("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rn_sat_f32) asm volatile("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rn_ftz_sat_f32) asm volatile("fma.rn.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F64(fma_rn_f64) asm volatile("fma.rn.f64 %0, %1, %2, %3;" : "=d"(ddd) : "d"(da), "d"(db), "d"(dc)); GIVE(raw(ddd)); END
F32(div_rn_f32) asm volatile("div.rn.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(rcp_rn_f32) asm volatile("rcp.rn.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(sqrt_rn_f32) asm volatile("sqrt.rn.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(div_rn_ftz_f32) asm volatile("div.rn.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(rcp_rn_ftz_f32) asm volatile("rcp.rn.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(sqrt_rn_ftz_f32) asm volatile("sqrt.rn.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F64(div_rn_f64) asm volatile("div.rn.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F64(rcp_rn_f64) asm volatile("rcp.rn.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F64(sqrt_rn_f64) asm volatile("sqrt.rn.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F32(fma_rz_f32) asm volatile("fma.rz.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rz_ftz_f32) asm volatile("fma.rz.ftz.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rz_sat_f32) asm volatile("fma.rz.sat.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rz_ftz_sat_f32) asm volatile("fma.rz.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F64(fma_rz_f64) asm volatile("fma.rz.f64 %0, %1, %2, %3;" : "=d"(ddd) : "d"(da), "d"(db), "d"(dc)); GIVE(raw(ddd)); END
F32(div_rz_f32) asm volatile("div.rz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(rcp_rz_f32) asm volatile("rcp.rz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(sqrt_rz_f32) asm volatile("sqrt.rz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(div_rz_ftz_f32) asm volatile("div.rz.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(rcp_rz_ftz_f32) asm volatile("rcp.rz.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(sqrt_rz_ftz_f32) asm volatile("sqrt.rz.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F64(div_rz_f64) asm volatile("div.rz.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F64(rcp_rz_f64) asm volatile("rcp.rz.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F64(sqrt_rz_f64) asm volatile("sqrt.rz.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F32(fma_rm_f32) asm volatile("fma.rm.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rm_ftz_f32) asm volatile("fma.rm.ftz.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rm_sat_f32) asm volatile("fma.rm.sat.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rm_ftz_sat_f32) asm volatile("fma.rm.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F64(fma_rm_f64) asm volatile("fma.rm.f64 %0, %1, %2, %3;" : "=d"(ddd) : "d"(da), "d"(db), "d"(dc)); GIVE(raw(ddd)); END
F32(div_rm_f32) asm volatile("div.rm.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(rcp_rm_f32) asm volatile("rcp.rm.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(sqrt_rm_f32) asm volatile("sqrt.rm.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(div_rm_ftz_f32) asm volatile("div.rm.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(rcp_rm_ftz_f32) asm volatile("rcp.rm.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(sqrt_rm_ftz_f32) asm volatile("sqrt.rm.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F64(div_rm_f64) asm volatile("div.rm.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F64(rcp_rm_f64) asm volatile("rcp.rm.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F64(sqrt_rm_f64) asm volatile("sqrt.rm.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F32(fma_rp_f32) asm volatile("fma.rp.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rp_ftz_f32) asm volatile("fma.rp.ftz.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rp_sat_f32) asm volatile("fma.rp.sat.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(fma_rp_ftz_sat_f32) asm volatile("fma.rp.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F64(fma_rp_f64) asm volatile("fma.rp.f64 %0, %1, %2, %3;" : "=d"(ddd) : "d"(da), "d"(db), "d"(dc)); GIVE(raw(ddd)); END
F32(div_rp_f32) asm volatile("div.rp.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(rcp_rp_f32) asm volatile("rcp.rp.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(sqrt_rp_f32) asm volatile("sqrt.rp.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(div_rp_ftz_f32) asm volatile("div.rp.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(rcp_rp_ftz_f32) asm volatile("rcp.rp.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(sqrt_rp_ftz_f32) asm volatile("sqrt.rp.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F64(div_rp_f64) asm volatile("div.rp.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F64(rcp_rp_f64) asm volatile("rcp.rp.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F64(sqrt_rp_f64) asm volatile("sqrt.rp.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F32(mad_rn_f32) asm volatile("mad.rn.f32 %0, %1, %2, %3;" : "=f"(fd) : "f"(fa), "f"(fb), "f"(fc)); GIVE(raw(fd)); END
F32(min_f32) asm volatile("min.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(min_ftz_f32) asm volatile("min.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(min_NaN_f32) asm volatile("min.NaN.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(min_ftz_NaN_f32) asm volatile("min.ftz.NaN.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(min_f64) asm volatile("min.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(max_f32) asm volatile("max.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(max_ftz_f32) asm volatile("max.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(max_NaN_f32) asm volatile("max.NaN.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F32(max_ftz_NaN_f32) asm volatile("max.ftz.NaN.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(max_f64) asm volatile("max.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(abs_f32) asm volatile("abs.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(number(fd)); END
F32(neg_f32) asm volatile("neg.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(number(fd)); END
F32(abs_ftz_f32) asm volatile("abs.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(number(fd)); END
F32(neg_ftz_f32) asm volatile("neg.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(number(fd)); END
F64(abs_f64) asm volatile("abs.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F64(neg_f64) asm volatile("neg.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F32(copysign_f32) asm volatile("copysign.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
F64(copysign_f64) asm volatile("copysign.f64 %0, %1, %2;" : "=d"(ddd) : "d"(da), "d"(db)); GIVE(raw(ddd)); END
F32(testp_finite_f32) asm volatile("{ .reg .pred p; testp.finite.f32 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa)); GIVE(d); END
F64(testp_finite_f64) asm volatile("{ .reg .pred p; testp.finite.f64 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da)); GIVE(d); END
F32(testp_infinite_f32) asm volatile("{ .reg .pred p; testp.infinite.f32 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa)); GIVE(d); END
F64(testp_infinite_f64) asm volatile("{ .reg .pred p; testp.infinite.f64 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da)); GIVE(d); END
F32(testp_number_f32) asm volatile("{ .reg .pred p; testp.number.f32 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa)); GIVE(d); END
F64(testp_number_f64) asm volatile("{ .reg .pred p; testp.number.f64 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da)); GIVE(d); END
F32(testp_notanumber_f32) asm volatile("{ .reg .pred p; testp.notanumber.f32 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa)); GIVE(d); END
F64(testp_notanumber_f64) asm volatile("{ .reg .pred p; testp.notanumber.f64 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da)); GIVE(d); END
F32(testp_normal_f32) asm volatile("{ .reg .pred p; testp.normal.f32 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa)); GIVE(d); END
F64(testp_normal_f64) asm volatile("{ .reg .pred p; testp.normal.f64 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da)); GIVE(d); END
F32(testp_subnormal_f32) asm volatile("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "f"(fa)); GIVE(d); END
F64(testp_subnormal_f64) asm volatile("{ .reg .pred p; testp.subnormal.f64 p, %1; selp.b32 %0, 1, 0, p; }" : "=r"(d) : "d"(da)); GIVE(d); END
F16(add_rn_f16) asm volatile("add.rn.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(add_rn_ftz_f16) asm volatile("add.rn.ftz.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(add_rn_sat_f16) asm volatile("add.rn.sat.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(add_rn_ftz_sat_f16) asm volatile("add.rn.ftz.sat.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(sub_rn_f16) asm volatile("sub.rn.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(sub_rn_ftz_f16) asm volatile("sub.rn.ftz.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(sub_rn_sat_f16) asm volatile("sub.rn.sat.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(sub_rn_ftz_sat_f16) asm volatile("sub.rn.ftz.sat.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(mul_rn_f16) asm volatile("mul.rn.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(mul_rn_ftz_f16) asm volatile("mul.rn.ftz.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(mul_rn_sat_f16) asm volatile("mul.rn.sat.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(mul_rn_ftz_sat_f16) asm volatile("mul.rn.ftz.sat.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(fma_rn_f16) asm volatile("fma.rn.f16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
F16(fma_rn_relu_f16) asm volatile("fma.rn.relu.f16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
F16(fma_rn_ftz_f16) asm volatile("fma.rn.ftz.f16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
F16(fma_rn_sat_f16) asm volatile("fma.rn.sat.f16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
F16(fma_rn_ftz_sat_f16) asm volatile("fma.rn.ftz.sat.f16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
F16(fma_rn_ftz_relu_f16) asm volatile("fma.rn.ftz.relu.f16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
F16(min_f16) asm volatile("min.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(min_NaN_f16) asm volatile("min.NaN.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(min_ftz_f16) asm volatile("min.ftz.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(max_f16) asm volatile("max.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(max_NaN_f16) asm volatile("max.NaN.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(max_ftz_f16) asm volatile("max.ftz.f16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
F16(abs_f16) asm volatile("abs.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(numbers16(hd)); END
F16(neg_f16) asm volatile("neg.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(numbers16(hd)); END
F16(add_rn_f16x2) asm volatile("add.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(add_rn_ftz_f16x2) asm volatile("add.rn.ftz.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(add_rn_sat_f16x2) asm volatile("add.rn.sat.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(add_rn_ftz_sat_f16x2) asm volatile("add.rn.ftz.sat.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(sub_rn_f16x2) asm volatile("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(sub_rn_ftz_f16x2) asm volatile("sub.rn.ftz.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(sub_rn_sat_f16x2) asm volatile("sub.rn.sat.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(sub_rn_ftz_sat_f16x2) asm volatile("sub.rn.ftz.sat.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(mul_rn_f16x2) asm volatile("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(mul_rn_ftz_f16x2) asm volatile("mul.rn.ftz.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(mul_rn_sat_f16x2) asm volatile("mul.rn.sat.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(mul_rn_ftz_sat_f16x2) asm volatile("mul.rn.ftz.sat.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(fma_rn_f16x2) asm volatile("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
F16(fma_rn_relu_f16x2) asm volatile("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
F16(fma_rn_ftz_f16x2) asm volatile("fma.rn.ftz.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
F16(fma_rn_sat_f16x2) asm volatile("fma.rn.sat.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
F16(fma_rn_ftz_sat_f16x2) asm volatile("fma.rn.ftz.sat.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
F16(fma_rn_ftz_relu_f16x2) asm volatile("fma.rn.ftz.relu.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
F16(min_f16x2) asm volatile("min.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(min_NaN_f16x2) asm volatile("min.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(min_ftz_f16x2) asm volatile("min.ftz.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(max_f16x2) asm volatile("max.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(max_NaN_f16x2) asm volatile("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(max_ftz_f16x2) asm volatile("max.ftz.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
F16(abs_f16x2) asm volatile("abs.f16x2 %0, %1;" : "=r"(d) : "r"(a)); GIVE(numbers16x2(d)); END
F16(neg_f16x2) asm volatile("neg.f16x2 %0, %1;" : "=r"(d) : "r"(a)); GIVE(numbers16x2(d)); END
BF16(add_rn_bf16) asm volatile("add.rn.bf16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
BF16(sub_rn_bf16) asm volatile("sub.rn.bf16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
BF16(mul_rn_bf16) asm volatile("mul.rn.bf16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
BF16(fma_rn_bf16) asm volatile("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
BF16(fma_rn_relu_bf16) asm volatile("fma.rn.relu.bf16 %0, %1, %2, %3;" : "=h"(hd) : "h"(ha), "h"(hb), "h"(hc)); GIVE(hd); END
BF16(min_bf16) asm volatile("min.bf16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
BF16(min_NaN_bf16) asm volatile("min.NaN.bf16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
BF16(max_bf16) asm volatile("max.bf16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
BF16(max_NaN_bf16) asm volatile("max.NaN.bf16 %0, %1, %2;" : "=h"(hd) : "h"(ha), "h"(hb)); GIVE(hd); END
BF16(abs_bf16) asm volatile("abs.bf16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(numbersb16(hd)); END
BF16(neg_bf16) asm volatile("neg.bf16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(numbersb16(hd)); END
BF16(add_rn_bf16x2) asm volatile("add.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
BF16(sub_rn_bf16x2) asm volatile("sub.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
BF16(mul_rn_bf16x2) asm volatile("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
BF16(fma_rn_bf16x2) asm volatile("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
BF16(fma_rn_relu_bf16x2) asm volatile("fma.rn.relu.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
BF16(min_bf16x2) asm volatile("min.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
BF16(min_NaN_bf16x2) asm volatile("min.NaN.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
BF16(max_bf16x2) asm volatile("max.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
BF16(max_NaN_bf16x2) asm volatile("max.NaN.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
BF16(abs_bf16x2) asm volatile("abs.bf16x2 %0, %1;" : "=r"(d) : "r"(a)); GIVE(numbersb16x2(d)); END
BF16(neg_bf16x2) asm volatile("neg.bf16x2 %0, %1;" : "=r"(d) : "r"(a)); GIVE(numbersb16x2(d)); END
INT(cvt_s8_u8) asm volatile("cvt.s8.u8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_s8_u8) asm volatile("cvt.sat.s8.u8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_s8_s16) asm volatile("cvt.s8.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_s8_s16) asm volatile("cvt.sat.s8.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_s8_u16) asm volatile("cvt.s8.u16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_s8_u16) asm volatile("cvt.sat.s8.u16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_s8_s32) asm volatile("cvt.s8.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_sat_s8_s32) asm volatile("cvt.sat.s8.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_s8_u32) asm volatile("cvt.s8.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_sat_s8_u32) asm volatile("cvt.sat.s8.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_s8_s64) asm volatile("cvt.s8.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_sat_s8_s64) asm volatile("cvt.sat.s8.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_s8_u64) asm volatile("cvt.s8.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_sat_s8_u64) asm volatile("cvt.sat.s8.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
F16(cvt_rni_s8_f16) asm volatile("cvt.rni.s8.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rzi_s8_f16) asm volatile("cvt.rzi.s8.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rmi_s8_f16) asm volatile("cvt.rmi.s8.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rpi_s8_f16) asm volatile("cvt.rpi.s8.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_rn_f16_s8) asm volatile("cvt.rn.f16.s8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_rz_f16_s8) asm volatile("cvt.rz.f16.s8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F32(cvt_rni_s8_f32) asm volatile("cvt.rni.s8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rzi_s8_f32) asm volatile("cvt.rzi.s8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rmi_s8_f32) asm volatile("cvt.rmi.s8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rpi_s8_f32) asm volatile("cvt.rpi.s8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
INT(cvt_rn_f32_s8) asm volatile("cvt.rn.f32.s8 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rz_f32_s8) asm volatile("cvt.rz.f32.s8 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rm_f32_s8) asm volatile("cvt.rm.f32.s8 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rp_f32_s8) asm volatile("cvt.rp.f32.s8 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
F64(cvt_rni_s8_f64) asm volatile("cvt.rni.s8.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rzi_s8_f64) asm volatile("cvt.rzi.s8.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rmi_s8_f64) asm volatile("cvt.rmi.s8.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rpi_s8_f64) asm volatile("cvt.rpi.s8.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
INT(cvt_rn_f64_s8) asm volatile("cvt.rn.f64.s8 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rz_f64_s8) asm volatile("cvt.rz.f64.s8 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rm_f64_s8) asm volatile("cvt.rm.f64.s8 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rp_f64_s8) asm volatile("cvt.rp.f64.s8 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
F32(cvt_rzi_ftz_s8_f32) asm volatile("cvt.rzi.ftz.s8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
INT(cvt_u8_s8) asm volatile("cvt.u8.s8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_u8_s8) asm volatile("cvt.sat.u8.s8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_u8_s16) asm volatile("cvt.u8.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_u8_s16) asm volatile("cvt.sat.u8.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_u8_u16) asm volatile("cvt.u8.u16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_u8_u16) asm volatile("cvt.sat.u8.u16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_u8_s32) asm volatile("cvt.u8.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_sat_u8_s32) asm volatile("cvt.sat.u8.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_u8_u32) asm volatile("cvt.u8.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_sat_u8_u32) asm volatile("cvt.sat.u8.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_u8_s64) asm volatile("cvt.u8.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_sat_u8_s64) asm volatile("cvt.sat.u8.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_u8_u64) asm volatile("cvt.u8.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_sat_u8_u64) asm volatile("cvt.sat.u8.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
F16(cvt_rni_u8_f16) asm volatile("cvt.rni.u8.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rzi_u8_f16) asm volatile("cvt.rzi.u8.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rmi_u8_f16) asm volatile("cvt.rmi.u8.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rpi_u8_f16) asm volatile("cvt.rpi.u8.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_rn_f16_u8) asm volatile("cvt.rn.f16.u8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_rz_f16_u8) asm volatile("cvt.rz.f16.u8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F32(cvt_rni_u8_f32) asm volatile("cvt.rni.u8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rzi_u8_f32) asm volatile("cvt.rzi.u8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rmi_u8_f32) asm volatile("cvt.rmi.u8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rpi_u8_f32) asm volatile("cvt.rpi.u8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
INT(cvt_rn_f32_u8) asm volatile("cvt.rn.f32.u8 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rz_f32_u8) asm volatile("cvt.rz.f32.u8 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rm_f32_u8) asm volatile("cvt.rm.f32.u8 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rp_f32_u8) asm volatile("cvt.rp.f32.u8 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
F64(cvt_rni_u8_f64) asm volatile("cvt.rni.u8.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rzi_u8_f64) asm volatile("cvt.rzi.u8.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rmi_u8_f64) asm volatile("cvt.rmi.u8.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rpi_u8_f64) asm volatile("cvt.rpi.u8.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
INT(cvt_rn_f64_u8) asm volatile("cvt.rn.f64.u8 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rz_f64_u8) asm volatile("cvt.rz.f64.u8 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rm_f64_u8) asm volatile("cvt.rm.f64.u8 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rp_f64_u8) asm volatile("cvt.rp.f64.u8 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
F32(cvt_rzi_ftz_u8_f32) asm volatile("cvt.rzi.ftz.u8.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
INT(cvt_s16_s8) asm volatile("cvt.s16.s8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_s16_u8) asm volatile("cvt.s16.u8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_s16_u16) asm volatile("cvt.s16.u16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_s16_u16) asm volatile("cvt.sat.s16.u16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_s16_s32) asm volatile("cvt.s16.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_sat_s16_s32) asm volatile("cvt.sat.s16.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_s16_u32) asm volatile("cvt.s16.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_sat_s16_u32) asm volatile("cvt.sat.s16.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_s16_s64) asm volatile("cvt.s16.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_sat_s16_s64) asm volatile("cvt.sat.s16.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_s16_u64) asm volatile("cvt.s16.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_sat_s16_u64) asm volatile("cvt.sat.s16.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
F16(cvt_rni_s16_f16) asm volatile("cvt.rni.s16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rzi_s16_f16) asm volatile("cvt.rzi.s16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rmi_s16_f16) asm volatile("cvt.rmi.s16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rpi_s16_f16) asm volatile("cvt.rpi.s16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_rn_f16_s16) asm volatile("cvt.rn.f16.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_rz_f16_s16) asm volatile("cvt.rz.f16.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F32(cvt_rni_s16_f32) asm volatile("cvt.rni.s16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rzi_s16_f32) asm volatile("cvt.rzi.s16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rmi_s16_f32) asm volatile("cvt.rmi.s16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rpi_s16_f32) asm volatile("cvt.rpi.s16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
INT(cvt_rn_f32_s16) asm volatile("cvt.rn.f32.s16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rz_f32_s16) asm volatile("cvt.rz.f32.s16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rm_f32_s16) asm volatile("cvt.rm.f32.s16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rp_f32_s16) asm volatile("cvt.rp.f32.s16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
F64(cvt_rni_s16_f64) asm volatile("cvt.rni.s16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rzi_s16_f64) asm volatile("cvt.rzi.s16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rmi_s16_f64) asm volatile("cvt.rmi.s16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rpi_s16_f64) asm volatile("cvt.rpi.s16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
INT(cvt_rn_f64_s16) asm volatile("cvt.rn.f64.s16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rz_f64_s16) asm volatile("cvt.rz.f64.s16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rm_f64_s16) asm volatile("cvt.rm.f64.s16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rp_f64_s16) asm volatile("cvt.rp.f64.s16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
F32(cvt_rzi_ftz_s16_f32) asm volatile("cvt.rzi.ftz.s16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
INT(cvt_u16_s8) asm volatile("cvt.u16.s8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_u16_s8) asm volatile("cvt.sat.u16.s8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_u16_u8) asm volatile("cvt.u16.u8 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_u16_s16) asm volatile("cvt.u16.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_sat_u16_s16) asm volatile("cvt.sat.u16.s16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_u16_s32) asm volatile("cvt.u16.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_sat_u16_s32) asm volatile("cvt.sat.u16.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_u16_u32) asm volatile("cvt.u16.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_sat_u16_u32) asm volatile("cvt.sat.u16.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_u16_s64) asm volatile("cvt.u16.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_sat_u16_s64) asm volatile("cvt.sat.u16.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_u16_u64) asm volatile("cvt.u16.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_sat_u16_u64) asm volatile("cvt.sat.u16.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
F16(cvt_rni_u16_f16) asm volatile("cvt.rni.u16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rzi_u16_f16) asm volatile("cvt.rzi.u16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rmi_u16_f16) asm volatile("cvt.rmi.u16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F16(cvt_rpi_u16_f16) asm volatile("cvt.rpi.u16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_rn_f16_u16) asm volatile("cvt.rn.f16.u16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
INT(cvt_rz_f16_u16) asm volatile("cvt.rz.f16.u16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F32(cvt_rni_u16_f32) asm volatile("cvt.rni.u16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rzi_u16_f32) asm volatile("cvt.rzi.u16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rmi_u16_f32) asm volatile("cvt.rmi.u16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rpi_u16_f32) asm volatile("cvt.rpi.u16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
INT(cvt_rn_f32_u16) asm volatile("cvt.rn.f32.u16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rz_f32_u16) asm volatile("cvt.rz.f32.u16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rm_f32_u16) asm volatile("cvt.rm.f32.u16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
INT(cvt_rp_f32_u16) asm volatile("cvt.rp.f32.u16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
F64(cvt_rni_u16_f64) asm volatile("cvt.rni.u16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rzi_u16_f64) asm volatile("cvt.rzi.u16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rmi_u16_f64) asm volatile("cvt.rmi.u16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F64(cvt_rpi_u16_f64) asm volatile("cvt.rpi.u16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
INT(cvt_rn_f64_u16) asm volatile("cvt.rn.f64.u16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rz_f64_u16) asm volatile("cvt.rz.f64.u16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rm_f64_u16) asm volatile("cvt.rm.f64.u16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
INT(cvt_rp_f64_u16) asm volatile("cvt.rp.f64.u16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
F32(cvt_rzi_ftz_u16_f32) asm volatile("cvt.rzi.ftz.u16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
INT(cvt_s32_s8) asm volatile("cvt.s32.s8 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_s32_u8) asm volatile("cvt.s32.u8 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_s32_s16) asm volatile("cvt.s32.s16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_s32_u16) asm volatile("cvt.s32.u16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_s32_u32) asm volatile("cvt.s32.u32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(cvt_sat_s32_u32) asm volatile("cvt.sat.s32.u32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(cvt_s32_s64) asm volatile("cvt.s32.s64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(cvt_sat_s32_s64) asm volatile("cvt.sat.s32.s64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(cvt_s32_u64) asm volatile("cvt.s32.u64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(cvt_sat_s32_u64) asm volatile("cvt.sat.s32.u64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
F16(cvt_rni_s32_f16) asm volatile("cvt.rni.s32.f16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F16(cvt_rzi_s32_f16) asm volatile("cvt.rzi.s32.f16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F16(cvt_rmi_s32_f16) asm volatile("cvt.rmi.s32.f16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F16(cvt_rpi_s32_f16) asm volatile("cvt.rpi.s32.f16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_rn_f16_s32) asm volatile("cvt.rn.f16.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_rz_f16_s32) asm volatile("cvt.rz.f16.s32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
F32(cvt_rni_s32_f32) asm volatile("cvt.rni.s32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rzi_s32_f32) asm volatile("cvt.rzi.s32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rmi_s32_f32) asm volatile("cvt.rmi.s32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rpi_s32_f32) asm volatile("cvt.rpi.s32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
INT(cvt_rn_f32_s32) asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(fd) : "r"(a)); GIVE(raw(fd)); END
INT(cvt_rz_f32_s32) asm volatile("cvt.rz.f32.s32 %0, %1;" : "=f"(fd) : "r"(a)); GIVE(raw(fd)); END
INT(cvt_rm_f32_s32) asm volatile("cvt.rm.f32.s32 %0, %1;" : "=f"(fd) : "r"(a)); GIVE(raw(fd)); END
INT(cvt_rp_f32_s32) asm volatile("cvt.rp.f32.s32 %0, %1;" : "=f"(fd) : "r"(a)); GIVE(raw(fd)); END
F64(cvt_rni_s32_f64) asm volatile("cvt.rni.s32.f64 %0, %1;" : "=r"(d) : "d"(da)); GIVE(d); END
F64(cvt_rzi_s32_f64) asm volatile("cvt.rzi.s32.f64 %0, %1;" : "=r"(d) : "d"(da)); GIVE(d); END
F64(cvt_rmi_s32_f64) asm volatile("cvt.rmi.s32.f64 %0, %1;" : "=r"(d) : "d"(da)); GIVE(d); END
F64(cvt_rpi_s32_f64) asm volatile("cvt.rpi.s32.f64 %0, %1;" : "=r"(d) : "d"(da)); GIVE(d); END
INT(cvt_rn_f64_s32) asm volatile("cvt.rn.f64.s32 %0, %1;" : "=d"(ddd) : "r"(a)); GIVE(raw(ddd)); END
INT(cvt_rz_f64_s32) asm volatile("cvt.rz.f64.s32 %0, %1;" : "=d"(ddd) : "r"(a)); GIVE(raw(ddd)); END
INT(cvt_rm_f64_s32) asm volatile("cvt.rm.f64.s32 %0, %1;" : "=d"(ddd) : "r"(a)); GIVE(raw(ddd)); END
INT(cvt_rp_f64_s32) asm volatile("cvt.rp.f64.s32 %0, %1;" : "=d"(ddd) : "r"(a)); GIVE(raw(ddd)); END
F32(cvt_rzi_ftz_s32_f32) asm volatile("cvt.rzi.ftz.s32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
INT(cvt_u32_s8) asm volatile("cvt.u32.s8 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_sat_u32_s8) asm volatile("cvt.sat.u32.s8 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_u32_u8) asm volatile("cvt.u32.u8 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_u32_s16) asm volatile("cvt.u32.s16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_sat_u32_s16) asm volatile("cvt.sat.u32.s16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_u32_u16) asm volatile("cvt.u32.u16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_u32_s32) asm volatile("cvt.u32.s32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(cvt_sat_u32_s32) asm volatile("cvt.sat.u32.s32 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(cvt_u32_s64) asm volatile("cvt.u32.s64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(cvt_sat_u32_s64) asm volatile("cvt.sat.u32.s64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(cvt_u32_u64) asm volatile("cvt.u32.u64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
INT(cvt_sat_u32_u64) asm volatile("cvt.sat.u32.u64 %0, %1;" : "=r"(d) : "l"(aa)); GIVE(d); END
F16(cvt_rni_u32_f16) asm volatile("cvt.rni.u32.f16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F16(cvt_rzi_u32_f16) asm volatile("cvt.rzi.u32.f16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F16(cvt_rmi_u32_f16) asm volatile("cvt.rmi.u32.f16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F16(cvt_rpi_u32_f16) asm volatile("cvt.rpi.u32.f16 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_rn_f16_u32) asm volatile("cvt.rn.f16.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
INT(cvt_rz_f16_u32) asm volatile("cvt.rz.f16.u32 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
F32(cvt_rni_u32_f32) asm volatile("cvt.rni.u32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rzi_u32_f32) asm volatile("cvt.rzi.u32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rmi_u32_f32) asm volatile("cvt.rmi.u32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rpi_u32_f32) asm volatile("cvt.rpi.u32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
INT(cvt_rn_f32_u32) asm volatile("cvt.rn.f32.u32 %0, %1;" : "=f"(fd) : "r"(a)); GIVE(raw(fd)); END
INT(cvt_rz_f32_u32) asm volatile("cvt.rz.f32.u32 %0, %1;" : "=f"(fd) : "r"(a)); GIVE(raw(fd)); END
INT(cvt_rm_f32_u32) asm volatile("cvt.rm.f32.u32 %0, %1;" : "=f"(fd) : "r"(a)); GIVE(raw(fd)); END
INT(cvt_rp_f32_u32) asm volatile("cvt.rp.f32.u32 %0, %1;" : "=f"(fd) : "r"(a)); GIVE(raw(fd)); END
F64(cvt_rni_u32_f64) asm volatile("cvt.rni.u32.f64 %0, %1;" : "=r"(d) : "d"(da)); GIVE(d); END
F64(cvt_rzi_u32_f64) asm volatile("cvt.rzi.u32.f64 %0, %1;" : "=r"(d) : "d"(da)); GIVE(d); END
F64(cvt_rmi_u32_f64) asm volatile("cvt.rmi.u32.f64 %0, %1;" : "=r"(d) : "d"(da)); GIVE(d); END
F64(cvt_rpi_u32_f64) asm volatile("cvt.rpi.u32.f64 %0, %1;" : "=r"(d) : "d"(da)); GIVE(d); END
INT(cvt_rn_f64_u32) asm volatile("cvt.rn.f64.u32 %0, %1;" : "=d"(ddd) : "r"(a)); GIVE(raw(ddd)); END
INT(cvt_rz_f64_u32) asm volatile("cvt.rz.f64.u32 %0, %1;" : "=d"(ddd) : "r"(a)); GIVE(raw(ddd)); END
INT(cvt_rm_f64_u32) asm volatile("cvt.rm.f64.u32 %0, %1;" : "=d"(ddd) : "r"(a)); GIVE(raw(ddd)); END
INT(cvt_rp_f64_u32) asm volatile("cvt.rp.f64.u32 %0, %1;" : "=d"(ddd) : "r"(a)); GIVE(raw(ddd)); END
F32(cvt_rzi_ftz_u32_f32) asm volatile("cvt.rzi.ftz.u32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
INT(cvt_s64_s8) asm volatile("cvt.s64.s8 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_s64_u8) asm volatile("cvt.s64.u8 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_s64_s16) asm volatile("cvt.s64.s16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_s64_u16) asm volatile("cvt.s64.u16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_s64_s32) asm volatile("cvt.s64.s32 %0, %1;" : "=l"(dd) : "r"(a)); GIVE(dd); END
INT(cvt_s64_u32) asm volatile("cvt.s64.u32 %0, %1;" : "=l"(dd) : "r"(a)); GIVE(dd); END
INT(cvt_s64_u64) asm volatile("cvt.s64.u64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(cvt_sat_s64_u64) asm volatile("cvt.sat.s64.u64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
F16(cvt_rni_s64_f16) asm volatile("cvt.rni.s64.f16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
F16(cvt_rzi_s64_f16) asm volatile("cvt.rzi.s64.f16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
F16(cvt_rmi_s64_f16) asm volatile("cvt.rmi.s64.f16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
F16(cvt_rpi_s64_f16) asm volatile("cvt.rpi.s64.f16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_rn_f16_s64) asm volatile("cvt.rn.f16.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_rz_f16_s64) asm volatile("cvt.rz.f16.s64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
F32(cvt_rni_s64_f32) asm volatile("cvt.rni.s64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
F32(cvt_rzi_s64_f32) asm volatile("cvt.rzi.s64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
F32(cvt_rmi_s64_f32) asm volatile("cvt.rmi.s64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
F32(cvt_rpi_s64_f32) asm volatile("cvt.rpi.s64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
INT(cvt_rn_f32_s64) asm volatile("cvt.rn.f32.s64 %0, %1;" : "=f"(fd) : "l"(aa)); GIVE(raw(fd)); END
INT(cvt_rz_f32_s64) asm volatile("cvt.rz.f32.s64 %0, %1;" : "=f"(fd) : "l"(aa)); GIVE(raw(fd)); END
INT(cvt_rm_f32_s64) asm volatile("cvt.rm.f32.s64 %0, %1;" : "=f"(fd) : "l"(aa)); GIVE(raw(fd)); END
INT(cvt_rp_f32_s64) asm volatile("cvt.rp.f32.s64 %0, %1;" : "=f"(fd) : "l"(aa)); GIVE(raw(fd)); END
F64(cvt_rni_s64_f64) asm volatile("cvt.rni.s64.f64 %0, %1;" : "=l"(dd) : "d"(da)); GIVE(dd); END
F64(cvt_rzi_s64_f64) asm volatile("cvt.rzi.s64.f64 %0, %1;" : "=l"(dd) : "d"(da)); GIVE(dd); END
F64(cvt_rmi_s64_f64) asm volatile("cvt.rmi.s64.f64 %0, %1;" : "=l"(dd) : "d"(da)); GIVE(dd); END
F64(cvt_rpi_s64_f64) asm volatile("cvt.rpi.s64.f64 %0, %1;" : "=l"(dd) : "d"(da)); GIVE(dd); END
INT(cvt_rn_f64_s64) asm volatile("cvt.rn.f64.s64 %0, %1;" : "=d"(ddd) : "l"(aa)); GIVE(raw(ddd)); END
INT(cvt_rz_f64_s64) asm volatile("cvt.rz.f64.s64 %0, %1;" : "=d"(ddd) : "l"(aa)); GIVE(raw(ddd)); END
INT(cvt_rm_f64_s64) asm volatile("cvt.rm.f64.s64 %0, %1;" : "=d"(ddd) : "l"(aa)); GIVE(raw(ddd)); END
INT(cvt_rp_f64_s64) asm volatile("cvt.rp.f64.s64 %0, %1;" : "=d"(ddd) : "l"(aa)); GIVE(raw(ddd)); END
F32(cvt_rzi_ftz_s64_f32) asm volatile("cvt.rzi.ftz.s64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
INT(cvt_u64_s8) asm volatile("cvt.u64.s8 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_sat_u64_s8) asm volatile("cvt.sat.u64.s8 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_u64_u8) asm volatile("cvt.u64.u8 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_u64_s16) asm volatile("cvt.u64.s16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_sat_u64_s16) asm volatile("cvt.sat.u64.s16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_u64_u16) asm volatile("cvt.u64.u16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_u64_s32) asm volatile("cvt.u64.s32 %0, %1;" : "=l"(dd) : "r"(a)); GIVE(dd); END
INT(cvt_sat_u64_s32) asm volatile("cvt.sat.u64.s32 %0, %1;" : "=l"(dd) : "r"(a)); GIVE(dd); END
INT(cvt_u64_u32) asm volatile("cvt.u64.u32 %0, %1;" : "=l"(dd) : "r"(a)); GIVE(dd); END
INT(cvt_u64_s64) asm volatile("cvt.u64.s64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
INT(cvt_sat_u64_s64) asm volatile("cvt.sat.u64.s64 %0, %1;" : "=l"(dd) : "l"(aa)); GIVE(dd); END
F16(cvt_rni_u64_f16) asm volatile("cvt.rni.u64.f16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
F16(cvt_rzi_u64_f16) asm volatile("cvt.rzi.u64.f16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
F16(cvt_rmi_u64_f16) asm volatile("cvt.rmi.u64.f16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
F16(cvt_rpi_u64_f16) asm volatile("cvt.rpi.u64.f16 %0, %1;" : "=l"(dd) : "h"(ha)); GIVE(dd); END
INT(cvt_rn_f16_u64) asm volatile("cvt.rn.f16.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
INT(cvt_rz_f16_u64) asm volatile("cvt.rz.f16.u64 %0, %1;" : "=h"(hd) : "l"(aa)); GIVE(hd); END
F32(cvt_rni_u64_f32) asm volatile("cvt.rni.u64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
F32(cvt_rzi_u64_f32) asm volatile("cvt.rzi.u64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
F32(cvt_rmi_u64_f32) asm volatile("cvt.rmi.u64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
F32(cvt_rpi_u64_f32) asm volatile("cvt.rpi.u64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
INT(cvt_rn_f32_u64) asm volatile("cvt.rn.f32.u64 %0, %1;" : "=f"(fd) : "l"(aa)); GIVE(raw(fd)); END
INT(cvt_rz_f32_u64) asm volatile("cvt.rz.f32.u64 %0, %1;" : "=f"(fd) : "l"(aa)); GIVE(raw(fd)); END
INT(cvt_rm_f32_u64) asm volatile("cvt.rm.f32.u64 %0, %1;" : "=f"(fd) : "l"(aa)); GIVE(raw(fd)); END
INT(cvt_rp_f32_u64) asm volatile("cvt.rp.f32.u64 %0, %1;" : "=f"(fd) : "l"(aa)); GIVE(raw(fd)); END
F64(cvt_rni_u64_f64) asm volatile("cvt.rni.u64.f64 %0, %1;" : "=l"(dd) : "d"(da)); GIVE(dd); END
F64(cvt_rzi_u64_f64) asm volatile("cvt.rzi.u64.f64 %0, %1;" : "=l"(dd) : "d"(da)); GIVE(dd); END
F64(cvt_rmi_u64_f64) asm volatile("cvt.rmi.u64.f64 %0, %1;" : "=l"(dd) : "d"(da)); GIVE(dd); END
F64(cvt_rpi_u64_f64) asm volatile("cvt.rpi.u64.f64 %0, %1;" : "=l"(dd) : "d"(da)); GIVE(dd); END
INT(cvt_rn_f64_u64) asm volatile("cvt.rn.f64.u64 %0, %1;" : "=d"(ddd) : "l"(aa)); GIVE(raw(ddd)); END
INT(cvt_rz_f64_u64) asm volatile("cvt.rz.f64.u64 %0, %1;" : "=d"(ddd) : "l"(aa)); GIVE(raw(ddd)); END
INT(cvt_rm_f64_u64) asm volatile("cvt.rm.f64.u64 %0, %1;" : "=d"(ddd) : "l"(aa)); GIVE(raw(ddd)); END
INT(cvt_rp_f64_u64) asm volatile("cvt.rp.f64.u64 %0, %1;" : "=d"(ddd) : "l"(aa)); GIVE(raw(ddd)); END
F32(cvt_rzi_ftz_u64_f32) asm volatile("cvt.rzi.ftz.u64.f32 %0, %1;" : "=l"(dd) : "f"(fa)); GIVE(dd); END
F64(cvt_rn_f32_f64) asm volatile("cvt.rn.f32.f64 %0, %1;" : "=f"(fd) : "d"(da)); GIVE(raw(fd)); END
F32(cvt_rn_f16_f32) asm volatile("cvt.rn.f16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F64(cvt_rn_f16_f64) asm volatile("cvt.rn.f16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F32(cvt_rn_bf16_f32) asm volatile("cvt.rn.bf16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F64(cvt_rz_f32_f64) asm volatile("cvt.rz.f32.f64 %0, %1;" : "=f"(fd) : "d"(da)); GIVE(raw(fd)); END
F32(cvt_rz_f16_f32) asm volatile("cvt.rz.f16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F64(cvt_rz_f16_f64) asm volatile("cvt.rz.f16.f64 %0, %1;" : "=h"(hd) : "d"(da)); GIVE(hd); END
F32(cvt_rz_bf16_f32) asm volatile("cvt.rz.bf16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F64(cvt_rm_f32_f64) asm volatile("cvt.rm.f32.f64 %0, %1;" : "=f"(fd) : "d"(da)); GIVE(raw(fd)); END
F64(cvt_rp_f32_f64) asm volatile("cvt.rp.f32.f64 %0, %1;" : "=f"(fd) : "d"(da)); GIVE(raw(fd)); END
F64(cvt_rn_sat_f32_f64) asm volatile("cvt.rn.sat.f32.f64 %0, %1;" : "=f"(fd) : "d"(da)); GIVE(raw(fd)); END
F64(cvt_rn_ftz_f32_f64) asm volatile("cvt.rn.ftz.f32.f64 %0, %1;" : "=f"(fd) : "d"(da)); GIVE(raw(fd)); END
F32(cvt_rn_ftz_f16_f32) asm volatile("cvt.rn.ftz.f16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rn_sat_f16_f32) asm volatile("cvt.rn.sat.f16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rn_relu_f16_f32) asm volatile("cvt.rn.relu.f16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F32(cvt_rn_relu_bf16_f32) asm volatile("cvt.rn.relu.bf16.f32 %0, %1;" : "=h"(hd) : "f"(fa)); GIVE(hd); END
F16(cvt_f32_f16) asm volatile("cvt.f32.f16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
F16(cvt_f64_f16) asm volatile("cvt.f64.f16 %0, %1;" : "=d"(ddd) : "h"(ha)); GIVE(raw(ddd)); END
F32(cvt_f64_f32) asm volatile("cvt.f64.f32 %0, %1;" : "=d"(ddd) : "f"(fa)); GIVE(raw(ddd)); END
F32(cvt_ftz_f64_f32) asm volatile("cvt.ftz.f64.f32 %0, %1;" : "=d"(ddd) : "f"(fa)); GIVE(raw(ddd)); END
F16(cvt_sat_f32_f16) asm volatile("cvt.sat.f32.f16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
BF16(cvt_f32_bf16) asm volatile("cvt.f32.bf16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
F16(cvt_ftz_f32_f16) asm volatile("cvt.ftz.f32.f16 %0, %1;" : "=f"(fd) : "h"(ha)); GIVE(raw(fd)); END
F32(cvt_rni_f32_f32) asm volatile("cvt.rni.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F64(cvt_rni_f64_f64) asm volatile("cvt.rni.f64.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F16(cvt_rni_f16_f16) asm volatile("cvt.rni.f16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F32(cvt_rni_ftz_f32_f32) asm volatile("cvt.rni.ftz.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(cvt_rzi_f32_f32) asm volatile("cvt.rzi.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F64(cvt_rzi_f64_f64) asm volatile("cvt.rzi.f64.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F16(cvt_rzi_f16_f16) asm volatile("cvt.rzi.f16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F32(cvt_rzi_ftz_f32_f32) asm volatile("cvt.rzi.ftz.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(cvt_rmi_f32_f32) asm volatile("cvt.rmi.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F64(cvt_rmi_f64_f64) asm volatile("cvt.rmi.f64.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F16(cvt_rmi_f16_f16) asm volatile("cvt.rmi.f16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F32(cvt_rmi_ftz_f32_f32) asm volatile("cvt.rmi.ftz.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(cvt_rpi_f32_f32) asm volatile("cvt.rpi.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F64(cvt_rpi_f64_f64) asm volatile("cvt.rpi.f64.f64 %0, %1;" : "=d"(ddd) : "d"(da)); GIVE(raw(ddd)); END
F16(cvt_rpi_f16_f16) asm volatile("cvt.rpi.f16.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(hd); END
F32(cvt_rpi_ftz_f32_f32) asm volatile("cvt.rpi.ftz.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(cvt_rni_sat_f32_f32) asm volatile("cvt.rni.sat.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(cvt_sat_f32_f32) asm volatile("cvt.sat.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(cvt_ftz_sat_f32_f32) asm volatile("cvt.ftz.sat.f32.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
F32(cvt_rn_f16x2_f32) asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(cvt_rz_f16x2_f32) asm volatile("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(cvt_rn_relu_f16x2_f32) asm volatile("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(cvt_rz_relu_f16x2_f32) asm volatile("cvt.rz.relu.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(cvt_rn_bf16x2_f32) asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(cvt_rz_bf16x2_f32) asm volatile("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(cvt_rn_relu_bf16x2_f32) asm volatile("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(cvt_rz_relu_bf16x2_f32) asm volatile("cvt.rz.relu.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(fa), "f"(fb)); GIVE(d); END
F32(cvt_rna_tf32_f32) asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rn_tf32_f32) asm volatile("cvt.rn.tf32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rz_tf32_f32) asm volatile("cvt.rz.tf32.f32 %0, %1;" : "=r"(d) : "f"(fa)); GIVE(d); END
F32(cvt_rn_satfinite_e4m3x2_f32) asm volatile("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(hd) : "f"(fa), "f"(fb)); GIVE(hd); END
F16(cvt_rn_satfinite_e4m3x2_f16x2) asm volatile("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
F16(cvt_rn_f16x2_e4m3x2) asm volatile("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F32(cvt_rn_satfinite_relu_e4m3x2_f32) asm volatile("cvt.rn.satfinite.relu.e4m3x2.f32 %0, %1, %2;" : "=h"(hd) : "f"(fa), "f"(fb)); GIVE(hd); END
F16(cvt_rn_satfinite_relu_e4m3x2_f16x2) asm volatile("cvt.rn.satfinite.relu.e4m3x2.f16x2 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
F16(cvt_rn_relu_f16x2_e4m3x2) asm volatile("cvt.rn.relu.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F32(cvt_rn_satfinite_e5m2x2_f32) asm volatile("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(hd) : "f"(fa), "f"(fb)); GIVE(hd); END
F16(cvt_rn_satfinite_e5m2x2_f16x2) asm volatile("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
F16(cvt_rn_f16x2_e5m2x2) asm volatile("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
F32(cvt_rn_satfinite_relu_e5m2x2_f32) asm volatile("cvt.rn.satfinite.relu.e5m2x2.f32 %0, %1, %2;" : "=h"(hd) : "f"(fa), "f"(fb)); GIVE(hd); END
F16(cvt_rn_satfinite_relu_e5m2x2_f16x2) asm volatile("cvt.rn.satfinite.relu.e5m2x2.f16x2 %0, %1;" : "=h"(hd) : "r"(a)); GIVE(hd); END
F16(cvt_rn_relu_f16x2_e5m2x2) asm volatile("cvt.rn.relu.f16x2.e5m2x2 %0, %1;" : "=r"(d) : "h"(ha)); GIVE(d); END
INT(cvt_pack_sat_u8_s32_b32) asm volatile("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(cvt_pack_sat_s8_s32_b32) asm volatile("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); GIVE(d); END
INT(cvt_pack_sat_u16_s32) asm volatile("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(cvt_pack_sat_s16_s32) asm volatile("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(add_u16x2) asm volatile("add.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(add_s16x2) asm volatile("add.s16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(min_u16x2) asm volatile("min.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(min_s16x2) asm volatile("min.s16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(max_u16x2) asm volatile("max.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(max_s16x2) asm volatile("max.s16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); GIVE(d); END
INT(vote) asm volatile("{ .reg .pred p, q; setp.lt.s32 p, %1, 0; vote.sync.all.pred q, p, 0xffffffff; selp.b32 %0, 1, 0, q; vote.sync.any.pred q, !p, 0xffffffff; @q or.b32 %0, %0, 2; vote.sync.uni.pred q, p, 0xffffffff; @q or.b32 %0, %0, 4; }" : "=&r"(d) : "r"(i & 64 ? i & 32 ? ~0u : 1u : a)); GIVE(d); END
INT(ballot) asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(d) : "r"(a)); GIVE(d); END
INT(shfl_up_32) asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, %3, 0, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_up_8) asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, %3, 0x1800, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_up_odd) asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, %3, %4, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_down_32) asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, %3, 31, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_down_8) asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, %3, 0x1807, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_down_odd) asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, %3, %4, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_bfly_32) asm volatile("{ .reg .pred p; shfl.sync.bfly.b32 %0|p, %2, %3, 31, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_bfly_8) asm volatile("{ .reg .pred p; shfl.sync.bfly.b32 %0|p, %2, %3, 0x1807, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_bfly_odd) asm volatile("{ .reg .pred p; shfl.sync.bfly.b32 %0|p, %2, %3, %4, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_idx_32) asm volatile("{ .reg .pred p; shfl.sync.idx.b32 %0|p, %2, %3, 31, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_idx_8) asm volatile("{ .reg .pred p; shfl.sync.idx.b32 %0|p, %2, %3, 0x1807, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(shfl_idx_odd) asm volatile("{ .reg .pred p; shfl.sync.idx.b32 %0|p, %2, %3, %4, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(a), "r"(m & 0x1f1f), "r"(i / 32 % 32)); GIVE(pair(d, e)); END
INT(match_any) asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a % 3)); GIVE(d); END
INT(match_any_b64) asm volatile("match.any.sync.b64 %0, %1, 0xffffffff;" : "=r"(d) : "l"(aa % 3)); GIVE(d); END
INT(match_all) asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %2, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : "r"(i & 32 ? i / 32 : a)); GIVE(pair(d, e)); END
INT(activemask) asm volatile("activemask.b32 %0;" : "=r"(d) : ); GIVE(d); END
INT(redux_add_u32) asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(redux_add_s32) asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(redux_min_u32) asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(redux_min_s32) asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(redux_max_u32) asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(redux_max_s32) asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(redux_and_b32) asm volatile("redux.sync.and.b32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(redux_or_b32) asm volatile("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(redux_xor_b32) asm volatile("redux.sync.xor.b32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(a)); GIVE(d); END
INT(elect) asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(d), "=r"(e) : ); GIVE(pair(d, e)); END
INT(special_laneid) asm volatile("mov.u32 %0, %%laneid;" : "=r"(d) : ); GIVE(d); END
INT(special_lanemask_eq) asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(d) : ); GIVE(d); END
INT(special_lanemask_lt) asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(d) : ); GIVE(d); END
INT(special_lanemask_le) asm volatile("mov.u32 %0, %%lanemask_le;" : "=r"(d) : ); GIVE(d); END
INT(special_lanemask_gt) asm volatile("mov.u32 %0, %%lanemask_gt;" : "=r"(d) : ); GIVE(d); END
INT(special_lanemask_ge) asm volatile("mov.u32 %0, %%lanemask_ge;" : "=r"(d) : ); GIVE(d); END
INT(special_tid_x) asm volatile("mov.u32 %0, %%tid.x;" : "=r"(d) : ); GIVE(d); END
INT(special_ntid_x) asm volatile("mov.u32 %0, %%ntid.x;" : "=r"(d) : ); GIVE(d); END
INT(special_ctaid_x) asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(d) : ); GIVE(d); END
INT(special_nctaid_x) asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(d) : ); GIVE(d); END
INT(special_tid_y) asm volatile("mov.u32 %0, %%tid.y;" : "=r"(d) : ); GIVE(d); END
INT(special_ntid_z) asm volatile("mov.u32 %0, %%ntid.z;" : "=r"(d) : ); GIVE(d); END
F16(movmatrix) asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a)); GIVE(d); END
TILE(ldmatrix_x1) asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(w[0]) : "r"(row)); GIVE(folded(w)); END
TILE(stmatrix_x1) asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :  : "r"(row), "r"(v[0])); GIVE(own_row(tile)); END
TILE(ldmatrix_x1_trans) asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(w[0]) : "r"(row)); GIVE(folded(w)); END
TILE(stmatrix_x1_trans) asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" :  : "r"(row), "r"(v[0])); GIVE(own_row(tile)); END
TILE(ldmatrix_x2) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "r"(row)); GIVE(folded(w)); END
TILE(stmatrix_x2) asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" :  : "r"(row), "r"(v[0]), "r"(v[1])); GIVE(own_row(tile)); END
TILE(ldmatrix_x2_trans) asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "r"(row)); GIVE(folded(w)); END
TILE(stmatrix_x2_trans) asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" :  : "r"(row), "r"(v[0]), "r"(v[1])); GIVE(own_row(tile)); END
TILE(ldmatrix_x4) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(row)); GIVE(folded(w)); END
TILE(stmatrix_x4) asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :  : "r"(row), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])); GIVE(own_row(tile)); END
TILE(ldmatrix_x4_trans) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(row)); GIVE(folded(w)); END
TILE(stmatrix_x4_trans) asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" :  : "r"(row), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])); GIVE(own_row(tile)); END
TILE(cp_async_ca_4) asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group; cp.async.wait_group 0;" :  : "r"(row), "l"(global_row)); GIVE(own_row(tile)); END
TILE(cp_async_ca_4_zfill) asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2; cp.async.wait_all;" :  : "r"(row), "l"(global_row), "r"(a % 5)); GIVE(own_row(tile)); END
TILE(cp_async_ca_8) asm volatile("cp.async.ca.shared.global [%0], [%1], 8; cp.async.commit_group; cp.async.wait_group 0;" :  : "r"(row), "l"(global_row)); GIVE(own_row(tile)); END
TILE(cp_async_ca_8_zfill) asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2; cp.async.wait_all;" :  : "r"(row), "l"(global_row), "r"(a % 9)); GIVE(own_row(tile)); END
TILE(cp_async_ca_16) asm volatile("cp.async.ca.shared.global [%0], [%1], 16; cp.async.commit_group; cp.async.wait_group 0;" :  : "r"(row), "l"(global_row)); GIVE(own_row(tile)); END
TILE(cp_async_ca_16_zfill) asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16, %2; cp.async.wait_all;" :  : "r"(row), "l"(global_row), "r"(a % 17)); GIVE(own_row(tile)); END
TILE(cp_async_cg_16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16; cp.async.commit_group; cp.async.wait_group 0;" :  : "r"(row), "l"(global_row)); GIVE(own_row(tile)); END
TILE(cp_async_cg_16_zfill) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2; cp.async.wait_all;" :  : "r"(row), "l"(global_row), "r"(a % 17)); GIVE(own_row(tile)); END
TILE(ld_global_u8) asm volatile("ld.global.u8 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_u8) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u8 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_cg_u8) asm volatile("ld.global.cg.u8 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_volatile_global_u8) asm volatile("ld.volatile.global.u8 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_s8) asm volatile("ld.global.s8 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_s8) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.s8 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_cg_s8) asm volatile("ld.global.cg.s8 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_volatile_global_s8) asm volatile("ld.volatile.global.s8 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_u16) asm volatile("ld.global.u16 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_u16) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u16 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_cg_u16) asm volatile("ld.global.cg.u16 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_volatile_global_u16) asm volatile("ld.volatile.global.u16 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_s16) asm volatile("ld.global.s16 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_s16) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.s16 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_cg_s16) asm volatile("ld.global.cg.s16 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_volatile_global_s16) asm volatile("ld.volatile.global.s16 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_u32) asm volatile("ld.global.u32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_u32) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_cg_u32) asm volatile("ld.global.cg.u32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_volatile_global_u32) asm volatile("ld.volatile.global.u32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_s32) asm volatile("ld.global.s32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_s32) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.s32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_cg_s32) asm volatile("ld.global.cg.s32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_volatile_global_s32) asm volatile("ld.volatile.global.s32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_b32) asm volatile("ld.global.b32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_b32) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.b32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_cg_b32) asm volatile("ld.global.cg.b32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_volatile_global_b32) asm volatile("ld.volatile.global.b32 %0, [%1+8];" : "=r"(d) : "l"(global_row)); GIVE(d); END
TILE(ld_global_u64) asm volatile("ld.global.u64 %0, [%1+8];" : "=l"(dd) : "l"(global_row)); GIVE(dd); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_u64) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u64 %0, [%1+8];" : "=l"(dd) : "l"(global_row)); GIVE(dd); END
TILE(ld_global_cg_u64) asm volatile("ld.global.cg.u64 %0, [%1+8];" : "=l"(dd) : "l"(global_row)); GIVE(dd); END
TILE(ld_volatile_global_u64) asm volatile("ld.volatile.global.u64 %0, [%1+8];" : "=l"(dd) : "l"(global_row)); GIVE(dd); END
TILE(ld_global_f32) asm volatile("ld.global.f32 %0, [%1+8];" : "=f"(fd) : "l"(global_row)); GIVE(raw(fd)); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_f32) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.f32 %0, [%1+8];" : "=f"(fd) : "l"(global_row)); GIVE(raw(fd)); END
TILE(ld_global_cg_f32) asm volatile("ld.global.cg.f32 %0, [%1+8];" : "=f"(fd) : "l"(global_row)); GIVE(raw(fd)); END
TILE(ld_volatile_global_f32) asm volatile("ld.volatile.global.f32 %0, [%1+8];" : "=f"(fd) : "l"(global_row)); GIVE(raw(fd)); END
TILE(ld_global_f64) asm volatile("ld.global.f64 %0, [%1+8];" : "=d"(ddd) : "l"(global_row)); GIVE(raw(ddd)); END
TILE(ld_global_nc_L1_no_allocate_L2_128B_f64) asm volatile("ld.global.nc.L1::no_allocate.L2::128B.f64 %0, [%1+8];" : "=d"(ddd) : "l"(global_row)); GIVE(raw(ddd)); END
TILE(ld_global_cg_f64) asm volatile("ld.global.cg.f64 %0, [%1+8];" : "=d"(ddd) : "l"(global_row)); GIVE(raw(ddd)); END
TILE(ld_volatile_global_f64) asm volatile("ld.volatile.global.f64 %0, [%1+8];" : "=d"(ddd) : "l"(global_row)); GIVE(raw(ddd)); END
TILE(ld_global_v2_u32) asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(global_row)); GIVE(folded(w)); END
TILE(ld_global_v4_u32) asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(global_row)); GIVE(folded(w)); END
TILE(ld_global_v2_u64) asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(ww[0]), "=l"(ww[1]) : "l"(global_row)); GIVE(folded(ww)); END
TILE(ld_global_v4_u16) asm volatile("ld.global.v4.u16 {%0, %1, %2, %3}, [%4];" : "=h"(hw[0]), "=h"(hw[1]), "=h"(hw[2]), "=h"(hw[3]) : "l"(global_row)); GIVE(folded(hw)); END
TILE(ld_global_v4_f32) asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(fw[0]), "=f"(fw[1]), "=f"(fw[2]), "=f"(fw[3]) : "l"(global_row)); GIVE(folded(fw)); END
TILE(ld_global_v2_f64) asm volatile("ld.global.v2.f64 {%0, %1}, [%2];" : "=d"(dw[0]), "=d"(dw[1]) : "l"(global_row)); GIVE(folded(dw)); END
TILE(ld_global_v4_u8) asm volatile("ld.global.v4.u8 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(global_row)); GIVE(folded(w)); END
TILE(ld_shared_u8) asm volatile("ld.shared.u8 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_volatile_shared_u8) asm volatile("ld.volatile.shared.u8 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_shared_s8) asm volatile("ld.shared.s8 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_volatile_shared_s8) asm volatile("ld.volatile.shared.s8 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_shared_u16) asm volatile("ld.shared.u16 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_volatile_shared_u16) asm volatile("ld.volatile.shared.u16 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_shared_s16) asm volatile("ld.shared.s16 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_volatile_shared_s16) asm volatile("ld.volatile.shared.s16 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_shared_u32) asm volatile("ld.shared.u32 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_volatile_shared_u32) asm volatile("ld.volatile.shared.u32 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_shared_s32) asm volatile("ld.shared.s32 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_volatile_shared_s32) asm volatile("ld.volatile.shared.s32 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_shared_b32) asm volatile("ld.shared.b32 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_volatile_shared_b32) asm volatile("ld.volatile.shared.b32 %0, [%1+8];" : "=r"(d) : "r"(row)); GIVE(d); END
TILE(ld_shared_u64) asm volatile("ld.shared.u64 %0, [%1+8];" : "=l"(dd) : "r"(row)); GIVE(dd); END
TILE(ld_volatile_shared_u64) asm volatile("ld.volatile.shared.u64 %0, [%1+8];" : "=l"(dd) : "r"(row)); GIVE(dd); END
TILE(ld_shared_f32) asm volatile("ld.shared.f32 %0, [%1+8];" : "=f"(fd) : "r"(row)); GIVE(raw(fd)); END
TILE(ld_volatile_shared_f32) asm volatile("ld.volatile.shared.f32 %0, [%1+8];" : "=f"(fd) : "r"(row)); GIVE(raw(fd)); END
TILE(ld_shared_f64) asm volatile("ld.shared.f64 %0, [%1+8];" : "=d"(ddd) : "r"(row)); GIVE(raw(ddd)); END
TILE(ld_volatile_shared_f64) asm volatile("ld.volatile.shared.f64 %0, [%1+8];" : "=d"(ddd) : "r"(row)); GIVE(raw(ddd)); END
TILE(ld_shared_v2_u32) asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "r"(row)); GIVE(folded(w)); END
TILE(ld_shared_v4_u32) asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(row)); GIVE(folded(w)); END
TILE(ld_shared_v2_u64) asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];" : "=l"(ww[0]), "=l"(ww[1]) : "r"(row)); GIVE(folded(ww)); END
TILE(ld_shared_v4_u16) asm volatile("ld.shared.v4.u16 {%0, %1, %2, %3}, [%4];" : "=h"(hw[0]), "=h"(hw[1]), "=h"(hw[2]), "=h"(hw[3]) : "r"(row)); GIVE(folded(hw)); END
TILE(ld_shared_v4_f32) asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(fw[0]), "=f"(fw[1]), "=f"(fw[2]), "=f"(fw[3]) : "r"(row)); GIVE(folded(fw)); END
TILE(ld_shared_v2_f64) asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(dw[0]), "=d"(dw[1]) : "r"(row)); GIVE(folded(dw)); END
TILE(ld_shared_v4_u8) asm volatile("ld.shared.v4.u8 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(row)); GIVE(folded(w)); END
TILE(st_shared_u8) asm volatile("st.shared.u8 [%0+8], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(st_shared_u16) asm volatile("st.shared.u16 [%0+8], %1;" :  : "r"(row), "h"(ha)); GIVE(own_row(tile)); END
TILE(st_shared_b32) asm volatile("st.shared.b32 [%0+8], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(st_shared_u64) asm volatile("st.shared.u64 [%0+8], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(st_shared_f32) asm volatile("st.shared.f32 [%0+8], %1;" :  : "r"(row), "f"(fa)); GIVE(own_row(tile)); END
TILE(st_shared_f64) asm volatile("st.shared.f64 [%0+8], %1;" :  : "r"(row), "d"(da)); GIVE(own_row(tile)); END
TILE(st_shared_v2_u32) asm volatile("st.shared.v2.u32 [%0], {%1, %2};" :  : "r"(row), "r"(a), "r"(b)); GIVE(own_row(tile)); END
TILE(st_shared_v4_u32) asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" :  : "r"(row), "r"(a), "r"(b), "r"(c), "r"(n)); GIVE(own_row(tile)); END
TILE(st_shared_v2_u64) asm volatile("st.shared.v2.u64 [%0], {%1, %2};" :  : "r"(row), "l"(aa), "l"(bb)); GIVE(own_row(tile)); END
TILE(st_shared_v4_f32) asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" :  : "r"(row), "f"(fa), "f"(fb), "f"(fc), "f"(fa)); GIVE(own_row(tile)); END
TILE(atom_shared_add_u32) asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_add_u32) asm volatile("red.shared.add.u32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_add_u32) asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_add_u32) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_add_s32) asm volatile("atom.shared.add.s32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_add_s32) asm volatile("red.shared.add.s32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_add_s32) asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_add_s32) asm volatile("red.release.gpu.global.add.s32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_add_u64) asm volatile("atom.shared.add.u64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(red_shared_add_u64) asm volatile("red.shared.add.u64 [%0], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(atom_global_add_u64) asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(red_global_add_u64) asm volatile("red.release.gpu.global.add.u64 [%0], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
ATOMF(atom_shared_add_f32) asm volatile("atom.shared.add.f32 %0, [%1], %2;" : "=f"(fd) : "r"(row), "f"(fa)); GIVE(raw(fd) * 3 + own_row(tile)); END
ATOMF(red_shared_add_f32) asm volatile("red.shared.add.f32 [%0], %1;" :  : "r"(row), "f"(fa)); GIVE(own_row(tile)); END
ATOMF(atom_global_add_f32) asm volatile("atom.acq_rel.gpu.global.add.f32 %0, [%1], %2;" : "=f"(fd) : "l"(global_row), "f"(fa)); GIVE(raw(fd) * 3 + global_own(global_row)); END
ATOMF(red_global_add_f32) asm volatile("red.release.gpu.global.add.f32 [%0], %1;" :  : "l"(global_row), "f"(fa)); GIVE(global_own(global_row)); END
ATOMF(atom_shared_add_f64) asm volatile("atom.shared.add.f64 %0, [%1], %2;" : "=d"(ddd) : "r"(row), "d"(da)); GIVE(raw(ddd) * 3 + own_row(tile)); END
ATOMF(red_shared_add_f64) asm volatile("red.shared.add.f64 [%0], %1;" :  : "r"(row), "d"(da)); GIVE(own_row(tile)); END
ATOMF(atom_global_add_f64) asm volatile("atom.acq_rel.gpu.global.add.f64 %0, [%1], %2;" : "=d"(ddd) : "l"(global_row), "d"(da)); GIVE(raw(ddd) * 3 + global_own(global_row)); END
ATOMF(red_global_add_f64) asm volatile("red.release.gpu.global.add.f64 [%0], %1;" :  : "l"(global_row), "d"(da)); GIVE(global_own(global_row)); END
ATOMF(atom_shared_add_noftz_f16x2) asm volatile("atom.shared.add.noftz.f16x2 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
ATOMF(red_shared_add_noftz_f16x2) asm volatile("red.shared.add.noftz.f16x2 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
ATOMF(atom_global_add_noftz_f16x2) asm volatile("atom.acq_rel.gpu.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
ATOMF(red_global_add_noftz_f16x2) asm volatile("red.release.gpu.global.add.noftz.f16x2 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
ATOMF(atom_shared_add_noftz_bf16x2) asm volatile("atom.shared.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
ATOMF(red_shared_add_noftz_bf16x2) asm volatile("red.shared.add.noftz.bf16x2 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
ATOMF(atom_global_add_noftz_bf16x2) asm volatile("atom.acq_rel.gpu.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
ATOMF(red_global_add_noftz_bf16x2) asm volatile("red.release.gpu.global.add.noftz.bf16x2 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
ATOMF(atom_shared_add_noftz_f16) asm volatile("atom.shared.add.noftz.f16 %0, [%1], %2;" : "=h"(hd) : "r"(row), "h"(ha)); GIVE(hd * 3 + own_row(tile)); END
ATOMF(red_shared_add_noftz_f16) asm volatile("red.shared.add.noftz.f16 [%0], %1;" :  : "r"(row), "h"(ha)); GIVE(own_row(tile)); END
ATOMF(atom_global_add_noftz_f16) asm volatile("atom.acq_rel.gpu.global.add.noftz.f16 %0, [%1], %2;" : "=h"(hd) : "l"(global_row), "h"(ha)); GIVE(hd * 3 + global_own(global_row)); END
ATOMF(red_global_add_noftz_f16) asm volatile("red.release.gpu.global.add.noftz.f16 [%0], %1;" :  : "l"(global_row), "h"(ha)); GIVE(global_own(global_row)); END
TILE(atom_shared_min_u32) asm volatile("atom.shared.min.u32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_min_u32) asm volatile("red.shared.min.u32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_min_u32) asm volatile("atom.acq_rel.gpu.global.min.u32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_min_u32) asm volatile("red.release.gpu.global.min.u32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_min_s32) asm volatile("atom.shared.min.s32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_min_s32) asm volatile("red.shared.min.s32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_min_s32) asm volatile("atom.acq_rel.gpu.global.min.s32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_min_s32) asm volatile("red.release.gpu.global.min.s32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_min_u64) asm volatile("atom.shared.min.u64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(red_shared_min_u64) asm volatile("red.shared.min.u64 [%0], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(atom_global_min_u64) asm volatile("atom.acq_rel.gpu.global.min.u64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(red_global_min_u64) asm volatile("red.release.gpu.global.min.u64 [%0], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(atom_shared_min_s64) asm volatile("atom.shared.min.s64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(red_shared_min_s64) asm volatile("red.shared.min.s64 [%0], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(atom_global_min_s64) asm volatile("atom.acq_rel.gpu.global.min.s64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(red_global_min_s64) asm volatile("red.release.gpu.global.min.s64 [%0], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(atom_shared_max_u32) asm volatile("atom.shared.max.u32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_max_u32) asm volatile("red.shared.max.u32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_max_u32) asm volatile("atom.acq_rel.gpu.global.max.u32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_max_u32) asm volatile("red.release.gpu.global.max.u32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_max_s32) asm volatile("atom.shared.max.s32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_max_s32) asm volatile("red.shared.max.s32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_max_s32) asm volatile("atom.acq_rel.gpu.global.max.s32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_max_s32) asm volatile("red.release.gpu.global.max.s32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_max_u64) asm volatile("atom.shared.max.u64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(red_shared_max_u64) asm volatile("red.shared.max.u64 [%0], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(atom_global_max_u64) asm volatile("atom.acq_rel.gpu.global.max.u64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(red_global_max_u64) asm volatile("red.release.gpu.global.max.u64 [%0], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(atom_shared_max_s64) asm volatile("atom.shared.max.s64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(red_shared_max_s64) asm volatile("red.shared.max.s64 [%0], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(atom_global_max_s64) asm volatile("atom.acq_rel.gpu.global.max.s64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(red_global_max_s64) asm volatile("red.release.gpu.global.max.s64 [%0], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(atom_shared_inc_u32) asm volatile("atom.shared.inc.u32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_inc_u32) asm volatile("red.shared.inc.u32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_inc_u32) asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_inc_u32) asm volatile("red.release.gpu.global.inc.u32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_dec_u32) asm volatile("atom.shared.dec.u32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_dec_u32) asm volatile("red.shared.dec.u32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_dec_u32) asm volatile("atom.acq_rel.gpu.global.dec.u32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_dec_u32) asm volatile("red.release.gpu.global.dec.u32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_and_b32) asm volatile("atom.shared.and.b32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_and_b32) asm volatile("red.shared.and.b32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_and_b32) asm volatile("atom.acq_rel.gpu.global.and.b32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_and_b32) asm volatile("red.release.gpu.global.and.b32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_and_b64) asm volatile("atom.shared.and.b64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(red_shared_and_b64) asm volatile("red.shared.and.b64 [%0], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(atom_global_and_b64) asm volatile("atom.acq_rel.gpu.global.and.b64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(red_global_and_b64) asm volatile("red.release.gpu.global.and.b64 [%0], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(atom_shared_or_b32) asm volatile("atom.shared.or.b32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_or_b32) asm volatile("red.shared.or.b32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_or_b32) asm volatile("atom.acq_rel.gpu.global.or.b32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_or_b32) asm volatile("red.release.gpu.global.or.b32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_or_b64) asm volatile("atom.shared.or.b64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(red_shared_or_b64) asm volatile("red.shared.or.b64 [%0], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(atom_global_or_b64) asm volatile("atom.acq_rel.gpu.global.or.b64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(red_global_or_b64) asm volatile("red.release.gpu.global.or.b64 [%0], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(atom_shared_xor_b32) asm volatile("atom.shared.xor.b32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(red_shared_xor_b32) asm volatile("red.shared.xor.b32 [%0], %1;" :  : "r"(row), "r"(a)); GIVE(own_row(tile)); END
TILE(atom_global_xor_b32) asm volatile("atom.acq_rel.gpu.global.xor.b32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(red_global_xor_b32) asm volatile("red.release.gpu.global.xor.b32 [%0], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(atom_shared_xor_b64) asm volatile("atom.shared.xor.b64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(red_shared_xor_b64) asm volatile("red.shared.xor.b64 [%0], %1;" :  : "r"(row), "l"(aa)); GIVE(own_row(tile)); END
TILE(atom_global_xor_b64) asm volatile("atom.acq_rel.gpu.global.xor.b64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(red_global_xor_b64) asm volatile("red.release.gpu.global.xor.b64 [%0], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(atom_shared_exch_b32) asm volatile("atom.shared.exch.b32 %0, [%1], %2;" : "=r"(d) : "r"(row), "r"(a)); GIVE(d * 3 + own_row(tile)); END
TILE(atom_global_exch_b32) asm volatile("atom.acq_rel.gpu.global.exch.b32 %0, [%1], %2;" : "=r"(d) : "l"(global_row), "r"(a)); GIVE(d * 3 + global_own(global_row)); END
TILE(atom_shared_exch_b64) asm volatile("atom.shared.exch.b64 %0, [%1], %2;" : "=l"(dd) : "r"(row), "l"(aa)); GIVE(dd * 3 + own_row(tile)); END
TILE(atom_global_exch_b64) asm volatile("atom.acq_rel.gpu.global.exch.b64 %0, [%1], %2;" : "=l"(dd) : "l"(global_row), "l"(aa)); GIVE(dd * 3 + global_own(global_row)); END
TILE(st_global_u8) asm volatile("st.global.u8 [%0+8], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(st_global_L1_no_allocate_u8) asm volatile("st.global.L1::no_allocate.u8 [%0+8], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(st_global_cs_u8) asm volatile("st.global.cs.u8 [%0+8], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(st_global_u16) asm volatile("st.global.u16 [%0+8], %1;" :  : "l"(global_row), "h"(ha)); GIVE(global_own(global_row)); END
TILE(st_global_L1_no_allocate_u16) asm volatile("st.global.L1::no_allocate.u16 [%0+8], %1;" :  : "l"(global_row), "h"(ha)); GIVE(global_own(global_row)); END
TILE(st_global_cs_u16) asm volatile("st.global.cs.u16 [%0+8], %1;" :  : "l"(global_row), "h"(ha)); GIVE(global_own(global_row)); END
TILE(st_global_b32) asm volatile("st.global.b32 [%0+8], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(st_global_L1_no_allocate_b32) asm volatile("st.global.L1::no_allocate.b32 [%0+8], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(st_global_cs_b32) asm volatile("st.global.cs.b32 [%0+8], %1;" :  : "l"(global_row), "r"(a)); GIVE(global_own(global_row)); END
TILE(st_global_u64) asm volatile("st.global.u64 [%0+8], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(st_global_L1_no_allocate_u64) asm volatile("st.global.L1::no_allocate.u64 [%0+8], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(st_global_cs_u64) asm volatile("st.global.cs.u64 [%0+8], %1;" :  : "l"(global_row), "l"(aa)); GIVE(global_own(global_row)); END
TILE(st_global_f32) asm volatile("st.global.f32 [%0+8], %1;" :  : "l"(global_row), "f"(fa)); GIVE(global_own(global_row)); END
TILE(st_global_L1_no_allocate_f32) asm volatile("st.global.L1::no_allocate.f32 [%0+8], %1;" :  : "l"(global_row), "f"(fa)); GIVE(global_own(global_row)); END
TILE(st_global_cs_f32) asm volatile("st.global.cs.f32 [%0+8], %1;" :  : "l"(global_row), "f"(fa)); GIVE(global_own(global_row)); END
TILE(st_global_f64) asm volatile("st.global.f64 [%0+8], %1;" :  : "l"(global_row), "d"(da)); GIVE(global_own(global_row)); END
TILE(st_global_L1_no_allocate_f64) asm volatile("st.global.L1::no_allocate.f64 [%0+8], %1;" :  : "l"(global_row), "d"(da)); GIVE(global_own(global_row)); END
TILE(st_global_cs_f64) asm volatile("st.global.cs.f64 [%0+8], %1;" :  : "l"(global_row), "d"(da)); GIVE(global_own(global_row)); END
TILE(st_global_v2_u32) asm volatile("st.global.wt.v2.u32 [%0], {%1, %2};" :  : "l"(global_row), "r"(a), "r"(b)); GIVE(global_own(global_row)); END
TILE(st_global_v4_u32) asm volatile("st.global.wt.v4.u32 [%0], {%1, %2, %3, %4};" :  : "l"(global_row), "r"(a), "r"(b), "r"(c), "r"(n)); GIVE(global_own(global_row)); END
TILE(st_global_v2_u64) asm volatile("st.global.wt.v2.u64 [%0], {%1, %2};" :  : "l"(global_row), "l"(aa), "l"(bb)); GIVE(global_own(global_row)); END
TILE(st_global_v4_f32) asm volatile("st.global.wt.v4.f32 [%0], {%1, %2, %3, %4};" :  : "l"(global_row), "f"(fa), "f"(fb), "f"(fc), "f"(fa)); GIVE(global_own(global_row)); END
TILE(hints) asm volatile("{ .reg .b64 p; createpolicy.fractional.L2::evict_last.b64 p, 0.5; ld.global.L2::cache_hint.u32 %0, [%1], p; .reg .u32 x; ld.global.L1::evict_last.L2::256B.u32 x, [%1+4]; add.u32 %0, %0, x; prefetch.global.L2 [%1]; prefetch.global.L2::evict_last [%1]; applypriority.global.L2::evict_normal [%1], 128; griddepcontrol.wait; griddepcontrol.launch_dependents; }" : "=&r"(d) : "l"(global_row & ~127ull)); GIVE(d); END
TILE(atom_shared_cas_b32) asm volatile("atom.shared.cas.b32 %0, [%1], %2, %3;" : "=r"(d) : "r"(row), "r"(same32), "r"(b)); GIVE(d * 3 + own_row(tile)); END
TILE(atom_shared_cas_b64) asm volatile("atom.shared.cas.b64 %0, [%1], %2, %3;" : "=l"(dd) : "r"(row), "l"(same64), "l"(bb)); GIVE(dd * 3 + own_row(tile)); END
TILE(atom_shared_cas_b16) asm volatile("atom.shared.cas.b16 %0, [%1], %2, %3;" : "=h"(hd) : "r"(row), "h"(same16), "h"(hb)); GIVE(hd * 3 + own_row(tile)); END
TILE(cvta) asm volatile("{ .reg .u64 g, s; cvta.shared.u64 g, %1; ld.u32 %0, [g+4]; cvta.to.shared.u64 s, g; .reg .u32 t; cvt.u32.u64 t, s; .reg .u32 x; ld.shared.u32 x, [t+8]; add.u32 %0, %0, x; .reg .pred p; isspacep.shared p, g; @!p trap; isspacep.global p, g; @p trap; }" : "=&r"(d) : "l"((unsigned long long)row)); GIVE(d); END
TILE(strong) asm volatile("{ .reg .u32 x; st.relaxed.cta.shared.u32 [%1], %2; fence.acq_rel.cta; ld.relaxed.cta.shared.u32 x, [%1]; st.release.gpu.shared.u32 [%1+4], x; ld.acquire.gpu.shared.u32 %0, [%1+4]; membar.cta; bar.warp.sync 0xffffffff; nanosleep.u32 10; }" : "=&r"(d) : "r"(row), "r"(a)); GIVE(d); END
TILE(barriers) asm volatile("{ .reg .pred p, q; setp.lt.u32 p, %1, 16; bar.sync 0; barrier.sync 1; bar.red.popc.u32 %0, 0, p; bar.red.and.pred q, 0, p; @q add.u32 %0, %0, 100; bar.red.or.pred q, 0, !p; @q add.u32 %0, %0, 1000; bar.sync 0, 32; }" : "=&r"(d) : "r"(i % 32)); GIVE(d); END
INT(bra) asm volatile("{ .reg .pred p, q; .reg .u32 t, s; and.b32 t, %1, 255; mov.u32 %0, 1; NEXT: setp.eq.u32 p, t, 0; @p bra DONE; and.b32 s, t, 1; setp.eq.u32 q, s, 0; @q bra EVEN; mad.lo.u32 %0, %0, 3, t; EVEN: xor.b32 %0, %0, t; shr.u32 t, t, 1; bra NEXT; DONE: }" : "=&r"(d) : "r"(a)); GIVE(d); END
TILE(mbarrier_counts) __shared__ u64 bars[32]; const u32 bar = (u32)__cvta_generic_to_shared(bars + lane); asm volatile("{ .reg .b64 s; .reg .u32 c; .reg .pred p; mbarrier.init.shared::cta.b64 [%1], %2; mbarrier.arrive.shared::cta.b64 s, [%1]; mbarrier.pending_count.b64 %0, s; mbarrier.arrive.noComplete.shared::cta.b64 s, [%1], 2; mbarrier.pending_count.b64 c, s; mad.lo.u32 %0, %0, 100, c; mbarrier.test_wait.shared::cta.b64 p, [%1], s; @p add.u32 %0, %0, 10000; mbarrier.arrive_drop.shared::cta.b64 s, [%1]; mbarrier.test_wait.shared::cta.b64 p, [%1], s; @p add.u32 %0, %0, 20000; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; @p add.u32 %0, %0, 40000; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 1, 20; @p add.u32 %0, %0, 80000; mbarrier.arrive.release.cta.shared::cta.b64 s, [%1]; mbarrier.pending_count.b64 c, s; mad.lo.u32 %0, c, 1000000, %0; mbarrier.inval.shared::cta.b64 [%1]; }" : "=&r"(d) : "r"(bar), "r"(n % 7 + 4)); GIVE(d); END
TILE(mbarrier_transactions) __shared__ u64 bars[32]; const u32 bar = (u32)__cvta_generic_to_shared(bars + lane); asm volatile("{ .reg .b64 s; .reg .pred p; mov.u32 %0, 0; mbarrier.init.shared::cta.b64 [%1], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%1], %2; mbarrier.arrive.shared::cta.b64 s, [%1]; mbarrier.test_wait.shared::cta.b64 p, [%1], s; @p add.u32 %0, %0, 1; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%1], %2; mbarrier.test_wait.shared::cta.b64 p, [%1], s; @p add.u32 %0, %0, 2; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%1], 4; mbarrier.test_wait.acquire.cta.shared::cta.b64 p, [%1], s; @p add.u32 %0, %0, 4; mbarrier.inval.shared::cta.b64 [%1]; }" : "=&r"(d) : "r"(bar), "r"(n + 1)); GIVE(d); END
TILE(cp_async_bulk_shared) __shared__ u64 bars[32]; const u32 bar = (u32)__cvta_generic_to_shared(bars + lane); tile[lane][i % 4] = a; asm volatile("{ .reg .pred p; mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster; fence.proxy.async; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], 16, [%0]; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra DONE; bra WAIT; DONE: }" : : "r"(bar), "r"(row), "l"(global_row) : "memory"); GIVE(own(tile)); END
TILE(cp_async_bulk_global) tile[lane][i % 4] = a; asm volatile("{ fence.proxy.async.shared::cta; cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0; }" : : "l"(global_row), "r"(row) : "memory"); GIVE(global_own(global_row)); END
TILE(cp_async_mbarrier_arrive) __shared__ u64 bars[32]; const u32 bar = (u32)__cvta_generic_to_shared(bars + lane); tile[lane][i % 4] = a; asm volatile("{ .reg .pred p; mbarrier.init.shared::cta.b64 [%0], 1; cp.async.cg.shared.global [%1], [%2], 16; cp.async.mbarrier.arrive.shared::cta.b64 [%0]; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0]; WAIT: mbarrier.test_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra WAIT; }" : : "r"(bar), "r"(row), "l"(global_row) : "memory"); GIVE(own(tile)); END
NEAR_REL(ex2_approx_f32, 22) asm volatile("ex2.approx.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_LOG(lg2_approx_f32, 22) asm volatile("lg2.approx.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_REL(rcp_approx_f32, 23) asm volatile("rcp.approx.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_REL(rsqrt_approx_f32, 22) asm volatile("rsqrt.approx.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_REL(sqrt_approx_f32, 22) asm volatile("sqrt.approx.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_ABS(sin_approx_f32, 20) fa = turn(i); asm volatile("sin.approx.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_ABS(cos_approx_f32, 20) fa = turn(i); asm volatile("cos.approx.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_REL(div_approx_f32, 22) asm volatile("div.approx.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
NEAR_REL(div_full_f32, 22) asm volatile("div.full.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
NEAR_REL(ex2_approx_ftz_f32, 22) asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_LOG(lg2_approx_ftz_f32, 22) asm volatile("lg2.approx.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_REL(rcp_approx_ftz_f32, 23) asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_REL(rsqrt_approx_ftz_f32, 22) asm volatile("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_REL(sqrt_approx_ftz_f32, 22) asm volatile("sqrt.approx.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_ABS(sin_approx_ftz_f32, 20) fa = turn(i); asm volatile("sin.approx.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_ABS(cos_approx_ftz_f32, 20) fa = turn(i); asm volatile("cos.approx.ftz.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_REL(div_approx_ftz_f32, 22) asm volatile("div.approx.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
NEAR_REL(div_full_ftz_f32, 22) asm volatile("div.full.ftz.f32 %0, %1, %2;" : "=f"(fd) : "f"(fa), "f"(fb)); GIVE(raw(fd)); END
NEAR_REL(tanh_approx_f32, 11) asm volatile("tanh.approx.f32 %0, %1;" : "=f"(fd) : "f"(fa)); GIVE(raw(fd)); END
NEAR_F16(ex2_approx_f16, 9) asm volatile("ex2.approx.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(wide16(hd)); END
NEAR_F16(tanh_approx_f16, 9) asm volatile("tanh.approx.f16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(wide16(hd)); END
NEAR_BF16(ex2_approx_ftz_bf16, 7) asm volatile("ex2.approx.ftz.bf16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(wideb16(hd)); END
NEAR_BF16(tanh_approx_bf16, 7) asm volatile("tanh.approx.bf16 %0, %1;" : "=h"(hd) : "h"(ha)); GIVE(wideb16(hd)); END
MMA_F32(mma_m16n8k8_f32_f16_f16, 8, 4) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=f"(mf[0]), "=f"(mf[1]), "=f"(mf[2]), "=f"(mf[3]) : "r"(half_word(i, 0)), "r"(half_word(i, 1)), "r"(half_word(i, 10)), "f"(float_word(i, 20)), "f"(float_word(i, 21)), "f"(float_word(i, 22)), "f"(float_word(i, 23))); ALL(mf); END
MMA_F16(mma_m16n8k8_f16_f16_f16, 8, 2) asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %6};" : "=r"(mr[0]), "=r"(mr[1]) : "r"(half_word(i, 0)), "r"(half_word(i, 1)), "r"(half_word(i, 10)), "r"(half_word(i, 20)), "r"(half_word(i, 21))); ALL(mr); END
MMA_F32(mma_m16n8k8_f32_bf16_bf16, 8, 4) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=f"(mf[0]), "=f"(mf[1]), "=f"(mf[2]), "=f"(mf[3]) : "r"(bfloat_word(i, 0)), "r"(bfloat_word(i, 1)), "r"(bfloat_word(i, 10)), "f"(float_word(i, 20)), "f"(float_word(i, 21)), "f"(float_word(i, 22)), "f"(float_word(i, 23))); ALL(mf); END
MMA_F32(mma_m16n8k16_f32_f16_f16, 16, 4) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(mf[0]), "=f"(mf[1]), "=f"(mf[2]), "=f"(mf[3]) : "r"(half_word(i, 0)), "r"(half_word(i, 1)), "r"(half_word(i, 2)), "r"(half_word(i, 3)), "r"(half_word(i, 10)), "r"(half_word(i, 11)), "f"(float_word(i, 20)), "f"(float_word(i, 21)), "f"(float_word(i, 22)), "f"(float_word(i, 23))); ALL(mf); END
MMA_F16(mma_m16n8k16_f16_f16_f16, 16, 2) asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};" : "=r"(mr[0]), "=r"(mr[1]) : "r"(half_word(i, 0)), "r"(half_word(i, 1)), "r"(half_word(i, 2)), "r"(half_word(i, 3)), "r"(half_word(i, 10)), "r"(half_word(i, 11)), "r"(half_word(i, 20)), "r"(half_word(i, 21))); ALL(mr); END
MMA_F32(mma_m16n8k16_f32_bf16_bf16, 16, 4) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(mf[0]), "=f"(mf[1]), "=f"(mf[2]), "=f"(mf[3]) : "r"(bfloat_word(i, 0)), "r"(bfloat_word(i, 1)), "r"(bfloat_word(i, 2)), "r"(bfloat_word(i, 3)), "r"(bfloat_word(i, 10)), "r"(bfloat_word(i, 11)), "f"(float_word(i, 20)), "f"(float_word(i, 21)), "f"(float_word(i, 22)), "f"(float_word(i, 23))); ALL(mf); END
MMA_F32(mma_m16n8k4_f32_tf32_tf32, 4, 4) asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=f"(mf[0]), "=f"(mf[1]), "=f"(mf[2]), "=f"(mf[3]) : "r"(tf32_word(i, 0)), "r"(tf32_word(i, 1)), "r"(tf32_word(i, 10)), "f"(float_word(i, 20)), "f"(float_word(i, 21)), "f"(float_word(i, 22)), "f"(float_word(i, 23))); ALL(mf); END
MMA_F32(mma_m16n8k8_f32_tf32_tf32, 8, 4) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(mf[0]), "=f"(mf[1]), "=f"(mf[2]), "=f"(mf[3]) : "r"(tf32_word(i, 0)), "r"(tf32_word(i, 1)), "r"(tf32_word(i, 2)), "r"(tf32_word(i, 3)), "r"(tf32_word(i, 10)), "r"(tf32_word(i, 11)), "f"(float_word(i, 20)), "f"(float_word(i, 21)), "f"(float_word(i, 22)), "f"(float_word(i, 23))); ALL(mf); END
MMA(mma_m16n8k16_s32_s8_s8) asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k32_s32_s8_s8) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 2)), "r"(byte_word(i, 3)), "r"(byte_word(i, 10)), "r"(byte_word(i, 11)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k16_s32_s8_s8_satfinite) asm volatile("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k32_s32_s8_s8_satfinite) asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 2)), "r"(byte_word(i, 3)), "r"(byte_word(i, 10)), "r"(byte_word(i, 11)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k16_s32_s8_u8) asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k32_s32_s8_u8) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 2)), "r"(byte_word(i, 3)), "r"(byte_word(i, 10)), "r"(byte_word(i, 11)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k16_s32_s8_u8_satfinite) asm volatile("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k32_s32_s8_u8_satfinite) asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 2)), "r"(byte_word(i, 3)), "r"(byte_word(i, 10)), "r"(byte_word(i, 11)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k16_s32_u8_s8) asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k32_s32_u8_s8) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 2)), "r"(byte_word(i, 3)), "r"(byte_word(i, 10)), "r"(byte_word(i, 11)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k16_s32_u8_s8_satfinite) asm volatile("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k32_s32_u8_s8_satfinite) asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 2)), "r"(byte_word(i, 3)), "r"(byte_word(i, 10)), "r"(byte_word(i, 11)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k16_s32_u8_u8) asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k32_s32_u8_u8) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 2)), "r"(byte_word(i, 3)), "r"(byte_word(i, 10)), "r"(byte_word(i, 11)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k16_s32_u8_u8_satfinite) asm volatile("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m16n8k32_s32_u8_u8_satfinite) asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=r"(mr[0]), "=r"(mr[1]), "=r"(mr[2]), "=r"(mr[3]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 1)), "r"(byte_word(i, 2)), "r"(byte_word(i, 3)), "r"(byte_word(i, 10)), "r"(byte_word(i, 11)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21)), "r"(integer_word(i, 22)), "r"(integer_word(i, 23))); GIVE(folded_mr<4>(mr)); END
MMA(mma_m8n8k16_s32_s8_u8) asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};" : "=r"(mr[0]), "=r"(mr[1]) : "r"(byte_word(i, 0)), "r"(byte_word(i, 10)), "r"(integer_word(i, 20)), "r"(integer_word(i, 21))); GIVE(folded_mr<2>(mr)); END
MMA_F64(mma_m8n8k4_f64_f64_f64, 4, 2) asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};" : "=d"(md[0]), "=d"(md[1]) : "d"(double_word(i, 0)), "d"(double_word(i, 10)), "d"(double_word(i, 20)), "d"(double_word(i, 21))); ALL(md); END
MMA_F64(mma_m16n8k4_f64_f64_f64, 4, 4) asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" : "=d"(md[0]), "=d"(md[1]), "=d"(md[2]), "=d"(md[3]) : "d"(double_word(i, 0)), "d"(double_word(i, 1)), "d"(double_word(i, 10)), "d"(double_word(i, 20)), "d"(double_word(i, 21)), "d"(double_word(i, 22)), "d"(double_word(i, 23))); ALL(md); END
MMA_F64(mma_m16n8k8_f64_f64_f64, 8, 4) asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=d"(md[0]), "=d"(md[1]), "=d"(md[2]), "=d"(md[3]) : "d"(double_word(i, 0)), "d"(double_word(i, 1)), "d"(double_word(i, 2)), "d"(double_word(i, 3)), "d"(double_word(i, 10)), "d"(double_word(i, 11)), "d"(double_word(i, 20)), "d"(double_word(i, 21)), "d"(double_word(i, 22)), "d"(double_word(i, 23))); ALL(md); END
MMA_F64(mma_m16n8k16_f64_f64_f64, 16, 4) asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%16, %17, %18, %19};" : "=d"(md[0]), "=d"(md[1]), "=d"(md[2]), "=d"(md[3]) : "d"(double_word(i, 0)), "d"(double_word(i, 1)), "d"(double_word(i, 2)), "d"(double_word(i, 3)), "d"(double_word(i, 4)), "d"(double_word(i, 5)), "d"(double_word(i, 6)), "d"(double_word(i, 7)), "d"(double_word(i, 10)), "d"(double_word(i, 11)), "d"(double_word(i, 12)), "d"(double_word(i, 13)), "d"(double_word(i, 20)), "d"(double_word(i, 21)), "d"(double_word(i, 22)), "d"(double_word(i, 23))); ALL(md); END
MMA_F32(mma_m16n8k32_f32_e4m3_e4m3, 32, 4) asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(mf[0]), "=f"(mf[1]), "=f"(mf[2]), "=f"(mf[3]) : "r"(e4m3_word(i, 0)), "r"(e4m3_word(i, 1)), "r"(e4m3_word(i, 2)), "r"(e4m3_word(i, 3)), "r"(e4m3_word(i, 10)), "r"(e4m3_word(i, 11)), "f"(float_word(i, 20)), "f"(float_word(i, 21)), "f"(float_word(i, 22)), "f"(float_word(i, 23))); ALL(mf); END
MMA_F32(mma_m16n8k32_f32_e5m2_e4m3, 32, 4) asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(mf[0]), "=f"(mf[1]), "=f"(mf[2]), "=f"(mf[3]) : "r"(e4m3_word(i, 0)), "r"(e4m3_word(i, 1)), "r"(e4m3_word(i, 2)), "r"(e4m3_word(i, 3)), "r"(e4m3_word(i, 10)), "r"(e4m3_word(i, 11)), "f"(float_word(i, 20)), "f"(float_word(i, 21)), "f"(float_word(i, 22)), "f"(float_word(i, 23))); ALL(mf); END
