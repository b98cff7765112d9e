// CUDA's packed integer intrinsics: two 16-bit or four 8-bit lanes in a word, dot products, and the three-way minima
// and maxima of the DPX set. Knows lanes only. Each operation is written once, on ints, and spelt for both widths.
#pragma once
#include "kf_vector_types.h"

// Into the range of an `L` (of 8 or 16 bits).
template <class L> KF_FN int kf_clamp_lane(int v) {
  constexpr bool is_signed = L(-1) < L(0);
  constexpr int top = (1 << (8 * static_cast<int>(sizeof(L)) - (is_signed ? 1 : 0))) - 1,
                least = is_signed ? -top - 1 : 0;
  return v < least ? least : v > top ? top : v;
}
// Lanes of width W read as `L`; `r` holds the word of results, `sum` their total.
#define KF_EACH(L, W, reads, result)                                                                                   \
  unsigned int r = 0;                                                                                                  \
  for (int i = 0; i < 32; i += W) {                                                                                    \
    reads;                                                                                                             \
    r |= (static_cast<unsigned int>(result) & ((1u << W) - 1)) << i;                                                   \
  }                                                                                                                    \
  return r;
#define KF_LANES1(name, L, W, result)                                                                                  \
  KF_BIG unsigned int name(unsigned int a) { KF_EACH(L, W, int x = static_cast<L>(a >> i), result) }
#define KF_LANES2(name, L, W, result)                                                                                  \
  KF_BIG unsigned int name(unsigned int a, unsigned int b) {                                                           \
    KF_EACH(L, W, int x = static_cast<L>(a >> i); int y = static_cast<L>(b >> i), result)                              \
  }
#define KF_TOTAL(name, L, W, result)                                                                                   \
  KF_BIG unsigned int name(unsigned int a, unsigned int b) {                                                           \
    unsigned int sum = 0;                                                                                              \
    for (int i = 0; i < 32; i += W) {                                                                                  \
      int x = static_cast<L>(a >> i), y = static_cast<L>(b >> i);                                                      \
      sum += static_cast<unsigned int>(result);                                                                        \
    }                                                                                                                  \
    return sum;                                                                                                        \
  }
// Comparisons: vcmp gives a lane of ones, vset gives 1.
#define KF_LANES_COMPARE(n, L, W, op)                                                                                  \
  KF_LANES2(__vcmp##n, L, W, x op y ? -1 : 0)                                                                          \
  KF_LANES2(__vset##n, L, W, x op y ? 1 : 0)
#define KF_SIMD(S, U, N, W)                                                                                            \
  KF_LANES1(__vabs##N, S, W, x < 0 ? -x : x)                                                                           \
  KF_LANES1(__vabsss##N, S, W, kf_clamp_lane<S>(x < 0 ? -x : x))                                                       \
  KF_LANES1(__vneg##N, S, W, -x)                                                                                       \
  KF_LANES1(__vnegss##N, S, W, kf_clamp_lane<S>(-x))                                                                   \
  KF_LANES2(__vadd##N, U, W, x + y)                                                                                    \
  KF_LANES2(__vaddss##N, S, W, kf_clamp_lane<S>(x + y))                                                                \
  KF_LANES2(__vaddus##N, U, W, kf_clamp_lane<U>(x + y))                                                                \
  KF_LANES2(__vsub##N, U, W, x - y)                                                                                    \
  KF_LANES2(__vsubss##N, S, W, kf_clamp_lane<S>(x - y))                                                                \
  KF_LANES2(__vsubus##N, U, W, kf_clamp_lane<U>(x - y))                                                                \
  KF_LANES2(__vabsdiffs##N, S, W, x < y ? y - x : x - y)                                                               \
  KF_LANES2(__vabsdiffu##N, U, W, x < y ? y - x : x - y)                                                               \
  KF_LANES2(__vavgs##N, S, W, (x + y + (x + y >= 0 ? 1 : 0)) >> 1)                                                     \
  KF_LANES2(__vavgu##N, U, W, (x + y + 1) >> 1)                                                                        \
  KF_LANES2(__vhaddu##N, U, W, (x + y) >> 1)                                                                           \
  KF_LANES2(__vmaxs##N, S, W, x < y ? y : x)                                                                           \
  KF_LANES2(__vmaxu##N, U, W, x < y ? y : x)                                                                           \
  KF_LANES2(__vmins##N, S, W, y < x ? y : x)                                                                           \
  KF_LANES2(__vminu##N, U, W, y < x ? y : x)                                                                           \
  KF_TOTAL(__vsads##N, S, W, x < y ? y - x : x - y)                                                                    \
  KF_TOTAL(__vsadu##N, U, W, x < y ? y - x : x - y)                                                                    \
  KF_LANES_COMPARE(eq##N, U, W, ==)                                                                                    \
  KF_LANES_COMPARE(ne##N, U, W, !=)                                                                                    \
  KF_LANES_COMPARE(gts##N, S, W, >)                                                                                    \
  KF_LANES_COMPARE(gtu##N, U, W, >)                                                                                    \
  KF_LANES_COMPARE(ges##N, S, W, >=)                                                                                   \
  KF_LANES_COMPARE(geu##N, U, W, >=)                                                                                   \
  KF_LANES_COMPARE(lts##N, S, W, <)                                                                                    \
  KF_LANES_COMPARE(ltu##N, U, W, <)                                                                                    \
  KF_LANES_COMPARE(les##N, S, W, <=)                                                                                   \
  KF_LANES_COMPARE(leu##N, U, W, <=)
KF_SIMD(short, unsigned short, 2, 16)
KF_SIMD(signed char, unsigned char, 4, 8)
#undef KF_SIMD
#undef KF_LANES_COMPARE
#undef KF_TOTAL

// Dot products accumulated in 32 bits, wrapping: of four bytes, or of two halfwords with two bytes of `b`.
KF_FN int __dp4a(char4 a, char4 b, int c) {
  return static_cast<int>(static_cast<unsigned int>(c) +
                          static_cast<unsigned int>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w));
}
KF_FN unsigned int __dp4a(uchar4 a, uchar4 b, unsigned int c) {
  return c + static_cast<unsigned int>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
KF_FN int __dp4a(int a, int b, int c) { return __dp4a(__builtin_bit_cast(char4, a), __builtin_bit_cast(char4, b), c); }
KF_FN unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int c) {
  return __dp4a(__builtin_bit_cast(uchar4, a), __builtin_bit_cast(uchar4, b), c);
}
#define KF_DP2A(name, p, q)                                                                                            \
  KF_FN int name(short2 a, char4 b, int c) {                                                                           \
    return static_cast<int>(static_cast<unsigned int>(c) + static_cast<unsigned int>(a.x * b.p + a.y * b.q));          \
  }                                                                                                                    \
  KF_FN unsigned int name(ushort2 a, uchar4 b, unsigned int c) {                                                       \
    return c + static_cast<unsigned int>(a.x * b.p + a.y * b.q);                                                       \
  }                                                                                                                    \
  KF_FN int name(int a, int b, int c) { return name(__builtin_bit_cast(short2, a), __builtin_bit_cast(char4, b), c); } \
  KF_FN unsigned int name(unsigned int a, unsigned int b, unsigned int c) {                                            \
    return name(__builtin_bit_cast(ushort2, a), __builtin_bit_cast(uchar4, b), c);                                     \
  }
KF_DP2A(__dp2a_lo, x, y)
KF_DP2A(__dp2a_hi, z, w)
#undef KF_DP2A

// DPX: max or min of three, of a sum (wrapping) and a value, and those with 0 as well (relu).
#define KF_GREATER(a, b) ((a) < (b) ? (b) : (a))
#define KF_LESS(a, b) ((b) < (a) ? (b) : (a))
#define KF_LANES3(name, L, W, result)                                                                                  \
  KF_BIG unsigned int name(unsigned int a, unsigned int b, unsigned int c) {                                           \
    KF_EACH(L, W, int x = static_cast<L>(a >> i); int y = static_cast<L>(b >> i); int z = static_cast<L>(c >> i),      \
            result)                                                                                                    \
  }
#define KF_DPX_WORD(I, s)                                                                                              \
  KF_FN I kf_sum_##s(I a, I b) { return static_cast<I>(static_cast<unsigned int>(a) + static_cast<unsigned int>(b)); } \
  KF_FN I __vimax3_##s(I a, I b, I c) { return KF_GREATER(KF_GREATER(a, b), c); }                                      \
  KF_FN I __vimin3_##s(I a, I b, I c) { return KF_LESS(KF_LESS(a, b), c); }                                            \
  KF_FN I __viaddmax_##s(I a, I b, I c) { return KF_GREATER(kf_sum_##s(a, b), c); }                                    \
  KF_FN I __viaddmin_##s(I a, I b, I c) { return KF_LESS(kf_sum_##s(a, b), c); }                                       \
  KF_FN I __vibmax_##s(I a, I b, bool* first) { return (*first = a >= b) ? a : b; }                                    \
  KF_FN I __vibmin_##s(I a, I b, bool* first) { return (*first = a <= b) ? a : b; }
KF_DPX_WORD(int, s32)
KF_DPX_WORD(unsigned int, u32)
#undef KF_DPX_WORD
KF_FN int kf_relu(int v) { return v < 0 ? 0 : v; }
KF_FN int __vimax_s32_relu(int a, int b) { return kf_relu(KF_GREATER(a, b)); }
KF_FN int __vimin_s32_relu(int a, int b) { return kf_relu(KF_LESS(a, b)); }
KF_FN int __vimax3_s32_relu(int a, int b, int c) { return kf_relu(__vimax3_s32(a, b, c)); }
KF_FN int __vimin3_s32_relu(int a, int b, int c) { return kf_relu(__vimin3_s32(a, b, c)); }
KF_FN int __viaddmax_s32_relu(int a, int b, int c) { return kf_relu(__viaddmax_s32(a, b, c)); }
KF_FN int __viaddmin_s32_relu(int a, int b, int c) { return kf_relu(__viaddmin_s32(a, b, c)); }
#define KF_DPX_PAIR(L, s)                                                                                              \
  KF_LANES3(__vimax3_##s, L, 16, KF_GREATER(KF_GREATER(x, y), z))                                                      \
  KF_LANES3(__vimin3_##s, L, 16, KF_LESS(KF_LESS(x, y), z))                                                            \
  KF_LANES3(__viaddmax_##s, L, 16, KF_GREATER(static_cast<L>(x + y), z))                                               \
  KF_LANES3(__viaddmin_##s, L, 16, KF_LESS(static_cast<L>(x + y), z))
KF_DPX_PAIR(short, s16x2)
KF_DPX_PAIR(unsigned short, u16x2)
#undef KF_DPX_PAIR
// Which operand each half took is told high half first.
#define KF_DPX_CHOICE(name, L, cmp)                                                                                    \
  KF_BIG unsigned int name(unsigned int a, unsigned int b, bool* high, bool* low) {                                    \
    *high = static_cast<L>(a >> 16) cmp static_cast<L>(b >> 16);                                                       \
    *low = static_cast<L>(a) cmp static_cast<L>(b);                                                                    \
    return ((*high ? a : b) & 0xffff0000u) | ((*low ? a : b) & 0xffffu);                                               \
  }
KF_DPX_CHOICE(__vibmax_s16x2, short, >=)
KF_DPX_CHOICE(__vibmax_u16x2, unsigned short, >=)
KF_DPX_CHOICE(__vibmin_s16x2, short, <=)
KF_DPX_CHOICE(__vibmin_u16x2, unsigned short, <=)
#undef KF_DPX_CHOICE
KF_LANES2(__vimax_s16x2_relu, short, 16, kf_relu(KF_GREATER(x, y)))
KF_LANES2(__vimin_s16x2_relu, short, 16, kf_relu(KF_LESS(x, y)))
KF_LANES3(__vimax3_s16x2_relu, short, 16, kf_relu(KF_GREATER(KF_GREATER(x, y), z)))
KF_LANES3(__vimin3_s16x2_relu, short, 16, kf_relu(KF_LESS(KF_LESS(x, y), z)))
KF_LANES3(__viaddmax_s16x2_relu, short, 16, kf_relu(KF_GREATER(static_cast<short>(x + y), z)))
KF_LANES3(__viaddmin_s16x2_relu, short, 16, kf_relu(KF_LESS(static_cast<short>(x + y), z)))
#undef KF_GREATER
#undef KF_LESS
#undef KF_LANES1
#undef KF_LANES2
#undef KF_LANES3
#undef KF_EACH
