// CUDA's scalar intrinsics: approximate functions, arithmetic with a stated rounding, conversions, bit casts, integers.
// Knows values only; the packed ones are in kf_simd.h; warps and memory are elsewhere.
//
// The C library owns some of these names (`__expf`), so they are renamed after its headers have been read. Approximate
// functions give the library's accurate value, with the hardware's results where it is not near it.
#pragma once
#include "kf_math.h"
#include "kf_narrow.h"

#define __expf kf_fast_expf
#define __exp10f kf_fast_exp10f
#define __logf kf_fast_logf
#define __log2f kf_fast_log2f
#define __log10f kf_fast_log10f
#define __powf kf_fast_powf
#define __sinf kf_fast_sinf
#define __cosf kf_fast_cosf
#define __tanf kf_fast_tanf
#define __tanhf kf_fast_tanhf
#define __sincosf kf_fast_sincosf
KF_FN float __expf(float x) { return expf(x); }
KF_FN float __exp10f(float x) { return exp10f(x); }
KF_FN float __logf(float x) { return logf(x); }
KF_FN float __log2f(float x) { return log2f(x); }
KF_FN float __log10f(float x) { return log10f(x); }
KF_FN float __powf(float x, float y) { return exp2f(y * log2f(x)); } // of a negative x NaN, as in hardware
KF_FN float __sinf(float x) { return sinf(x); }
KF_FN float __cosf(float x) { return cosf(x); }
KF_FN float __tanf(float x) { return tanf(x); }
KF_FN float __tanhf(float x) { return tanhf(x); }
KF_FN void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
KF_FN float __sin2pif(float x) { return sinpif(2.0f * x); } // the argument in turns
KF_FN float __cos2pif(float x) { return cospif(2.0f * x); }
KF_FN void __sincos2pif(float x, float* s, float* c) { sincospif(2.0f * x, s, c); }
// The hardware multiplies by an approximate reciprocal, which is 0 for divisors beyond 2^126.
KF_FN float __fdividef(float x, float y) {
  return __builtin_fabsf(y) > 0x1p126f ? x * __builtin_copysignf(0.0f, y) : x / y;
}
KF_FN float __saturatef(float x) { return x >= 1.0f ? 1.0f : x > 0.0f ? x : 0.0f; } // NaN gives 0

// Arithmetic in a stated rounding mode. The empty assembly hides the operands and the result from the optimiser:
// nothing moves out from between the changes of mode, and _rn products are never fused into sums, as CUDA promises.
KF_FN unsigned int kf_set_rounding(kf_round mode) {
  const unsigned int old = __builtin_ia32_stmxcsr();
  const unsigned int field = mode == kf_rn ? 0 : mode == kf_rd ? 0x2000 : mode == kf_ru ? 0x4000 : 0x6000;
  __builtin_ia32_ldmxcsr((old & ~0x6000u) | field);
  return old;
}
#define KF_HIDE(v) __asm__ __volatile__("" : "+x"(v))
#define KF_ROUNDED1(T, R, name, M, expression)                                                                         \
  KF_BIG R name##_##M(T a) {                                                                                           \
    const unsigned int mode = kf_set_rounding(kf_##M);                                                                 \
    KF_HIDE(a);                                                                                                        \
    R r = expression;                                                                                                  \
    KF_HIDE(r);                                                                                                        \
    __builtin_ia32_ldmxcsr(mode);                                                                                      \
    return r;                                                                                                          \
  }
#define KF_ROUNDED2(T, name, M, expression)                                                                            \
  KF_BIG T name##_##M(T a, T b) {                                                                                      \
    const unsigned int mode = kf_set_rounding(kf_##M);                                                                 \
    KF_HIDE(a);                                                                                                        \
    KF_HIDE(b);                                                                                                        \
    T r = expression;                                                                                                  \
    KF_HIDE(r);                                                                                                        \
    __builtin_ia32_ldmxcsr(mode);                                                                                      \
    return r;                                                                                                          \
  }
#define KF_ROUNDED3(T, name, M, expression)                                                                            \
  KF_BIG T name##_##M(T a, T b, T c) {                                                                                 \
    const unsigned int mode = kf_set_rounding(kf_##M);                                                                 \
    KF_HIDE(a);                                                                                                        \
    KF_HIDE(b);                                                                                                        \
    KF_HIDE(c);                                                                                                        \
    T r = expression;                                                                                                  \
    KF_HIDE(r);                                                                                                        \
    __builtin_ia32_ldmxcsr(mode);                                                                                      \
    return r;                                                                                                          \
  }
// To nearest is the mode threads run in: no change of mode, only the hiding.
#define KF_NEAREST2(T, name, expression)                                                                               \
  KF_FN T name##_rn(T a, T b) {                                                                                        \
    T r = expression;                                                                                                  \
    KF_HIDE(r);                                                                                                        \
    return r;                                                                                                          \
  }
#define KF_ALL1(T, name, expression)                                                                                   \
  KF_FN T name##_rn(T a) { return expression; }                                                                        \
  KF_ROUNDED1(T, T, name, rz, expression)                                                                              \
  KF_ROUNDED1(T, T, name, ru, expression) KF_ROUNDED1(T, T, name, rd, expression)
#define KF_ALL2(T, name, expression)                                                                                   \
  KF_NEAREST2(T, name, expression)                                                                                     \
  KF_ROUNDED2(T, name, rz, expression) KF_ROUNDED2(T, name, ru, expression) KF_ROUNDED2(T, name, rd, expression)
#define KF_ALL3(T, name, expression)                                                                                   \
  KF_FN T name##_rn(T a, T b, T c) { return expression; }                                                              \
  KF_ROUNDED3(T, name, rz, expression) KF_ROUNDED3(T, name, ru, expression) KF_ROUNDED3(T, name, rd, expression)
KF_ALL2(float, __fadd, a + b)
KF_ALL2(float, __fsub, a - b)
KF_ALL2(float, __fmul, a* b)
KF_ALL2(float, __fdiv, a / b)
KF_ALL3(float, __fmaf, __builtin_fmaf(a, b, c))
KF_ALL1(float, __frcp, 1.0f / a)
KF_ALL1(float, __fsqrt, __builtin_sqrtf(a))
KF_ALL2(double, __dadd, a + b)
KF_ALL2(double, __dsub, a - b)
KF_ALL2(double, __dmul, a* b)
KF_ALL2(double, __ddiv, a / b)
KF_ALL3(double, __fma, __builtin_fma(a, b, c))
KF_ALL1(double, __drcp, 1.0 / a)
KF_ALL1(double, __dsqrt, __builtin_sqrt(a))
#undef KF_ALL1
#undef KF_ALL2
#undef KF_ALL3
#undef KF_NEAREST2
#undef KF_ROUNDED2
#undef KF_ROUNDED3
// Through the x87 format, whose 64 bits leave no midpoint of floats undecided for this function.
KF_FN float __frsqrt_rn(float x) { return static_cast<float>(1.0L / __builtin_sqrtl(static_cast<long double>(x))); }

// Floating point to floating point, and from integers: those are exact in double, or rounded to odd, before.
KF_FN float __double2float_rn(double d) { return static_cast<float>(d); }
KF_ROUNDED1(double, float, __double2float, rz, static_cast<float>(a))
KF_ROUNDED1(double, float, __double2float, ru, static_cast<float>(a))
KF_ROUNDED1(double, float, __double2float, rd, static_cast<float>(a))
#define KF_FROM_INT(I, N, ODD, M)                                                                                      \
  KF_FN float __##N##2float_##M(I i) { return __double2float_##M(ODD(i)); }
#define KF_FROM_WIDE(I, N, H, M)                                                                                       \
  KF_FN double __##N##2double_##M(I i) {                                                                               \
    const double high = static_cast<double>(static_cast<H>(i >> 32)) * 0x1p32;                                         \
    return __dadd_##M(high, static_cast<double>(static_cast<unsigned int>(i)));                                        \
  }
#define KF_TO_INT(S, I, N, M)                                                                                          \
  KF_FN I __##S##2##N##_##M(S v) {                                                                                     \
    return kf_to_int<I>(static_cast<double>(v), kf_##M, sizeof(S) == 8 || sizeof(I) == 8);                             \
  }
#define KF_CONVERSIONS(M)                                                                                              \
  KF_FROM_INT(int, int, static_cast<double>, M)                                                                        \
  KF_FROM_INT(unsigned int, uint, static_cast<double>, M)                                                              \
  KF_FROM_INT(long long, ll, kf_odd_signed, M)                                                                         \
  KF_FROM_INT(unsigned long long, ull, kf_odd_unsigned, M)                                                             \
  KF_FROM_WIDE(long long, ll, int, M)                                                                                  \
  KF_FROM_WIDE(unsigned long long, ull, unsigned int, M)                                                               \
  KF_TO_INT(float, int, int, M)                                                                                        \
  KF_TO_INT(float, unsigned int, uint, M)                                                                              \
  KF_TO_INT(float, long long, ll, M)                                                                                   \
  KF_TO_INT(float, unsigned long long, ull, M)                                                                         \
  KF_TO_INT(double, int, int, M)                                                                                       \
  KF_TO_INT(double, unsigned int, uint, M)                                                                             \
  KF_TO_INT(double, long long, ll, M)                                                                                  \
  KF_TO_INT(double, unsigned long long, ull, M)
KF_CONVERSIONS(rn)
KF_CONVERSIONS(rz)
KF_CONVERSIONS(ru)
KF_CONVERSIONS(rd)
#undef KF_CONVERSIONS
#undef KF_TO_INT
#undef KF_FROM_WIDE
#undef KF_FROM_INT
#undef KF_ROUNDED1
#undef KF_HIDE
KF_FN double __int2double_rn(int i) { return static_cast<double>(i); }
KF_FN double __uint2double_rn(unsigned int i) { return static_cast<double>(i); }

// Bits as another type.
KF_FN int __float_as_int(float v) { return kf_bits<int>(v); }
KF_FN unsigned int __float_as_uint(float v) { return kf_bits<unsigned int>(v); }
KF_FN float __int_as_float(int v) { return kf_bits<float>(v); }
KF_FN float __uint_as_float(unsigned int v) { return kf_bits<float>(v); }
KF_FN long long __double_as_longlong(double v) { return kf_bits<long long>(v); }
KF_FN double __longlong_as_double(long long v) { return kf_bits<double>(v); }
KF_FN int __double2hiint(double v) { return static_cast<int>(kf_bits<unsigned long long>(v) >> 32); }
KF_FN int __double2loint(double v) { return static_cast<int>(kf_bits<unsigned long long>(v)); }
KF_FN double __hiloint2double(int hi, int lo) {
  return kf_bits<double>(static_cast<unsigned long long>(static_cast<unsigned int>(hi)) << 32 |
                         static_cast<unsigned int>(lo));
}

// Products, sums and differences of integers.
KF_FN int kf_low24(int v) { return static_cast<int>(static_cast<unsigned int>(v) << 8) >> 8; }
KF_FN int __mul24(int a, int b) {
  return static_cast<int>(static_cast<unsigned int>(kf_low24(a)) * static_cast<unsigned int>(kf_low24(b)));
}
KF_FN unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffffu) * (b & 0xffffffu); }
KF_FN int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
KF_FN unsigned int __umulhi(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>(static_cast<unsigned long long>(a) * b >> 32);
}
KF_FN long long __mul64hi(long long a, long long b) {
  __extension__ typedef __int128 wide;
  return static_cast<long long>(static_cast<wide>(a) * b >> 64);
}
KF_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ typedef unsigned __int128 wide;
  return static_cast<unsigned long long>(static_cast<wide>(a) * b >> 64);
}
KF_FN unsigned int __sad(int a, int b, unsigned int c) {
  return c + (a < b ? static_cast<unsigned int>(b) - static_cast<unsigned int>(a)
                    : static_cast<unsigned int>(a) - static_cast<unsigned int>(b));
}
KF_FN unsigned int __usad(unsigned int a, unsigned int b, unsigned int c) { return c + (a < b ? b - a : a - b); }
KF_FN int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
KF_FN int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
KF_FN unsigned int __uhadd(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(a) + b) >> 1);
}
KF_FN unsigned int __urhadd(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}

// Bits of integers.
KF_FN int __popc(unsigned int v) { return __builtin_popcount(v); }
KF_FN int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
KF_FN int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned int>(v)) : 32; }
KF_FN int __clzll(long long v) { return v ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64; }
KF_FN int __ffs(int v) { return __builtin_ffs(v); }
KF_FN int __ffsll(long long v) { return __builtin_ffsll(v); }
KF_FN unsigned int __brev(unsigned int v) {
  v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
  v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
  v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(v);
}
KF_FN unsigned long long __brevll(unsigned long long v) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned int>(v))) << 32 |
         __brev(static_cast<unsigned int>(v >> 32));
}
// Each of the selector's nibbles picks, by its low three bits, one of the eight bytes of y:x.
KF_FN unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned int r = 0;
  for (int i = 0; i < 4; ++i) r |= static_cast<unsigned int>(bytes >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  return r;
}
// The high (l) or low (r) word of hi:lo shifted; the shift wraps at 32, or (c) stops there.
KF_FN unsigned long long kf_hilo(unsigned int lo, unsigned int hi) {
  return static_cast<unsigned long long>(hi) << 32 | lo;
}
KF_FN unsigned int __funnelshift_l(unsigned int lo, unsigned int hi, unsigned int shift) {
  return static_cast<unsigned int>(kf_hilo(lo, hi) << (shift & 31) >> 32);
}
KF_FN unsigned int __funnelshift_r(unsigned int lo, unsigned int hi, unsigned int shift) {
  return static_cast<unsigned int>(kf_hilo(lo, hi) >> (shift & 31));
}
KF_FN unsigned int __funnelshift_lc(unsigned int lo, unsigned int hi, unsigned int shift) {
  return static_cast<unsigned int>(kf_hilo(lo, hi) << (shift < 32 ? shift : 32) >> 32);
}
KF_FN unsigned int __funnelshift_rc(unsigned int lo, unsigned int hi, unsigned int shift) {
  return static_cast<unsigned int>(kf_hilo(lo, hi) >> (shift < 32 ? shift : 32));
}
// The position of the n-th set bit of `mask` at or above `base` (n > 0), or at or below it (n < 0); n = 0 asks for
// `base` itself. All ones if there is none.
KF_BIG unsigned int __fns(unsigned int mask, unsigned int base, int n) {
  const int step = n < 0 ? -1 : 1;
  int left = n == 0 ? 1 : n < 0 ? -n : n;
  for (int i = static_cast<int>(base); i >= 0 && i < 32; i += step) {
    if ((mask >> i & 1) && --left == 0) return static_cast<unsigned int>(i);
    if (n == 0) break;
  }
  return 0xffffffffu;
}
