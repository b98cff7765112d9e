// Floating-point instructions of PTX, by value: arithmetic with its rounding, flushing and clamping, and the approximations.
// Knows PTX ISA 9.0. Results of stated rounding are exact; approximations are the accurate value rounded once, with the device's results at the edges.
// A NaN that an instruction makes is the canonical one, except of f64, where devices differ.
#pragma once
#include "kf_ptx_integer.h"

// What is done with a result: nothing, into [0, 1] with NaN as 0, negative values to 0.
enum kf_clamp { kf_clamp_none, kf_clamp_sat, kf_clamp_relu };
template <class T> struct kf_is_float : std::is_floating_point<T> {};
template <> struct kf_is_float<__half> : std::true_type {};
template <> struct kf_is_float<__nv_bfloat16> : std::true_type {};

// The parts of a pair and the pair of two parts.
KF_FN __half kf_ptx_low(__half2 v) { return v.x; }
KF_FN __half kf_ptx_high(__half2 v) { return v.y; }
KF_FN __nv_bfloat16 kf_ptx_low(__nv_bfloat162 v) { return v.x; }
KF_FN __nv_bfloat16 kf_ptx_high(__nv_bfloat162 v) { return v.y; }
KF_FN __half2 kf_ptx_pair(__half lo, __half hi) { return kf_make_half2(lo.__x, hi.__x); }
KF_FN __nv_bfloat162 kf_ptx_pair(__nv_bfloat16 lo, __nv_bfloat16 hi) { return kf_make_bfloat162(lo.__x, hi.__x); }
template <class T> struct kf_is_pair : std::false_type {};
template <> struct kf_is_pair<__half2> : std::true_type {};
template <> struct kf_is_pair<__nv_bfloat162> : std::true_type {};

// Signs are bits, of NaN too.
template <class T> KF_FN T kf_ptx_with_bits(T v, uint64_t keep, uint64_t flip) {
  typedef typename kf_word<sizeof(T)>::type W;
  return kf_bits<T>(static_cast<W>((kf_bits<W>(v) & keep) ^ flip));
}
template <class T> KF_FN constexpr uint64_t kf_signs() {
  return kf_is_pair<T>::value ? 0x80008000ull : uint64_t(1) << (kf_width<T>() - 1);
}

KF_FN double kf_ptx_wide(float v) { return v; }
KF_FN double kf_ptx_wide(double v) { return v; }
KF_FN double kf_ptx_wide(__half v) { return kf_f16_to(v.__x); }
KF_FN double kf_ptx_wide(__nv_bfloat16 v) { return kf_bf16_to(v.__x); }
KF_FN bool kf_ptx_nan(float v) { return v != v; }
KF_FN bool kf_ptx_nan(double v) { return v != v; }
KF_FN bool kf_ptx_nan(__half v) { return (v.__x & 0x7fffu) > 0x7c00u; }
KF_FN bool kf_ptx_nan(__nv_bfloat16 v) { return (v.__x & 0x7fffu) > 0x7f80u; }
// A subnormal number as zero of its sign.
KF_FN float kf_ptx_flushed(float v) { return (kf_bits<uint32_t>(v) & 0x7f800000u) == 0 ? kf_bits<float>(kf_bits<uint32_t>(v) & 0x80000000u) : v; }
KF_FN double kf_ptx_flushed(double v) { return v; }
KF_FN __half kf_ptx_flushed(__half v) { return (v.__x & 0x7c00u) == 0 ? kf_make_half(v.__x & 0x8000u) : v; }
KF_FN __nv_bfloat16 kf_ptx_flushed(__nv_bfloat16 v) { return (v.__x & 0x7f80u) == 0 ? kf_make_bfloat16(v.__x & 0x8000u) : v; }
template <bool Ftz, class T> KF_FN T kf_ptx_flush(T v) {
  if constexpr (Ftz) return kf_ptx_flushed(v);
  else return v;
}
KF_FN float kf_ptx_canonical(float v) { return v != v ? kf_bits<float>(0x7fffffffu) : v; }
KF_FN double kf_ptx_canonical(double v) { return v; }
KF_FN __half kf_ptx_canonical(__half v) { return kf_ptx_nan(v) ? kf_make_half(0x7fff) : v; }
KF_FN __nv_bfloat16 kf_ptx_canonical(__nv_bfloat16 v) { return kf_ptx_nan(v) ? kf_make_bfloat16(0x7fff) : v; }
KF_FN float kf_ptx_unit(float v) { return v >= 1.0f ? 1.0f : v > 0.0f ? v : 0.0f; }
KF_FN double kf_ptx_unit(double v) { return v >= 1.0 ? 1.0 : v > 0.0 ? v : 0.0; }
KF_FN __half kf_ptx_unit(__half v) { return kf_make_half(kf_half_unit(v.__x)); }
KF_FN __nv_bfloat16 kf_ptx_unit(__nv_bfloat16 v) { return kf_make_bfloat16(kf_bfloat16_unit(v.__x)); }
KF_FN float kf_ptx_positive(float v) { return v != v ? kf_bits<float>(0x7fffffffu) : v > 0.0f ? v : 0.0f; }
KF_FN double kf_ptx_positive(double v) { return v > 0.0 || v != v ? v : 0.0; }
KF_FN __half kf_ptx_positive(__half v) { return kf_make_half(kf_half_relu(v.__x)); }
KF_FN __nv_bfloat16 kf_ptx_positive(__nv_bfloat16 v) { return kf_make_bfloat16(kf_bfloat16_relu(v.__x)); }
// Whether a result is subnormal, which is when a device flushes it: after rounding as if there were no least exponent. `exact` is exact or rounded to odd, and
// `least` the least normal number of a format of so many bits.
template <kf_round M> KF_FN bool kf_ptx_tiny(double exact, double least, int bits) {
  const double size = __builtin_fabs(exact), place = __builtin_ldexp(least, -bits);
  if (M == kf_rn) return size < least - place / 2;
  const bool away = M == (__builtin_signbit(exact) ? kf_rd : kf_ru);
  return away ? size <= least - place : size < least;
}
template <kf_round M> KF_FN bool kf_ptx_flushes(float, double exact) { return kf_ptx_tiny<M>(exact, 0x1p-126, 24); }
template <kf_round M> KF_FN bool kf_ptx_flushes(__half, double exact) { return kf_ptx_tiny<M>(exact, 0x1p-14, 11); }
template <kf_round M, class T> KF_FN bool kf_ptx_flushes(T, double) { return false; }
KF_FN double kf_ptx_exact_add(double a, double b) { return a + b; }
KF_FN double kf_ptx_exact_sub(double a, double b) { return a - b; }
KF_FN double kf_ptx_exact_mul(double a, double b) { return a * b; }
KF_FN double kf_ptx_exact_div(double a, double b) { return a / b; }
template <bool Ftz, kf_round M, class T> KF_FN T kf_ptx_settled(T v, double exact) {
  if constexpr (Ftz)
    if (!kf_ptx_nan(v) && kf_ptx_flushes<M>(v, exact)) return kf_ptx_with_bits(v, kf_signs<T>(), 0);
  return v;
}
template <bool Ftz, kf_clamp Clamp, class T> KF_FN T kf_ptx_finish(T v) {
  v = kf_ptx_flush<Ftz>(kf_ptx_canonical(v));
  if constexpr (Clamp == kf_clamp_sat) return kf_ptx_unit(v);
  else if constexpr (Clamp == kf_clamp_relu) return kf_ptx_positive(v);
  else return v;
}

// Arithmetic with a rounding, of one kind of value; 16-bit formats only round to nearest.
#define KF_ROUND(M, rn, rz, ru, rd) (M == kf_rn ? rn : M == kf_rz ? rz : M == kf_ru ? ru : rd)
#define KF_PTX_BINARY(name, half, f, d)                                                                                \
  template <kf_round M> KF_FN float kf_raw_##name(float a, float b) {                                                  \
    return KF_ROUND(M, f##_rn(a, b), f##_rz(a, b), f##_ru(a, b), f##_rd(a, b));                                        \
  }                                                                                                                    \
  template <kf_round M> KF_FN double kf_raw_##name(double a, double b) {                                               \
    return KF_ROUND(M, d##_rn(a, b), d##_rz(a, b), d##_ru(a, b), d##_rd(a, b));                                        \
  }                                                                                                                    \
  template <kf_round M> KF_FN __half kf_raw_##name(__half a, __half b) { return kf_make_half(kf_half_##half(a.__x, b.__x)); } \
  template <kf_round M> KF_FN __nv_bfloat16 kf_raw_##name(__nv_bfloat16 a, __nv_bfloat16 b) {                          \
    return kf_make_bfloat16(kf_bfloat16_##half(a.__x, b.__x));                                                         \
  }                                                                                                                    \
  template <kf_round M, bool Ftz, kf_clamp C, class T> KF_FN T kf_ptx_f##name(T a, T b) {                              \
    if constexpr (kf_is_pair<T>::value) {                                                                              \
      return kf_ptx_pair(kf_ptx_f##name<M, Ftz, C>(kf_ptx_low(a), kf_ptx_low(b)),                                      \
                         kf_ptx_f##name<M, Ftz, C>(kf_ptx_high(a), kf_ptx_high(b)));                                   \
    } else {                                                                                                           \
      a = kf_ptx_flush<Ftz>(a), b = kf_ptx_flush<Ftz>(b);                                                              \
      const double exact = kf_ptx_exact_##name(kf_ptx_wide(a), kf_ptx_wide(b));                                        \
      return kf_ptx_finish<Ftz, C>(kf_ptx_settled<Ftz, M>(kf_raw_##name<M>(a, b), exact));                                \
    }                                                                                                                  \
  }
KF_PTX_BINARY(add, add, __fadd, __dadd)
KF_PTX_BINARY(sub, sub, __fsub, __dsub)
KF_PTX_BINARY(mul, mul, __fmul, __dmul)
KF_PTX_BINARY(div, div, __fdiv, __ddiv)
#undef KF_PTX_BINARY

template <kf_round M> KF_FN float kf_raw_fma(float a, float b, float c) {
  return KF_ROUND(M, __fmaf_rn(a, b, c), __fmaf_rz(a, b, c), __fmaf_ru(a, b, c), __fmaf_rd(a, b, c));
}
template <kf_round M> KF_FN double kf_raw_fma(double a, double b, double c) {
  return KF_ROUND(M, __fma_rn(a, b, c), __fma_rz(a, b, c), __fma_ru(a, b, c), __fma_rd(a, b, c));
}
template <kf_round M> KF_FN __half kf_raw_fma(__half a, __half b, __half c) { return kf_make_half(kf_half_fma(a.__x, b.__x, c.__x)); }
template <kf_round M> KF_FN __nv_bfloat16 kf_raw_fma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return kf_make_bfloat16(kf_bfloat16_fma(a.__x, b.__x, c.__x));
}
template <kf_round M, bool Ftz, kf_clamp C, class T> KF_FN T kf_ptx_fma(T a, T b, T c) {
  if constexpr (kf_is_pair<T>::value) {
    return kf_ptx_pair(kf_ptx_fma<M, Ftz, C>(kf_ptx_low(a), kf_ptx_low(b), kf_ptx_low(c)),
                       kf_ptx_fma<M, Ftz, C>(kf_ptx_high(a), kf_ptx_high(b), kf_ptx_high(c)));
  } else {
    a = kf_ptx_flush<Ftz>(a), b = kf_ptx_flush<Ftz>(b), c = kf_ptx_flush<Ftz>(c);
    const double exact = kf_odd_sum(kf_ptx_wide(a) * kf_ptx_wide(b), kf_ptx_wide(c));
    return kf_ptx_finish<Ftz, C>(kf_ptx_settled<Ftz, M>(kf_raw_fma<M>(a, b, c), exact));
  }
}

// Of one value, with a rounding.
template <kf_round M, bool Ftz> KF_FN float kf_ptx_rcp(float a) {
  a = kf_ptx_flush<Ftz>(a);
  return kf_ptx_finish<Ftz, kf_clamp_none>(KF_ROUND(M, __frcp_rn(a), __frcp_rz(a), __frcp_ru(a), __frcp_rd(a)));
}
template <kf_round M, bool Ftz> KF_FN double kf_ptx_rcp(double a) { return KF_ROUND(M, __drcp_rn(a), __drcp_rz(a), __drcp_ru(a), __drcp_rd(a)); }
template <kf_round M, bool Ftz> KF_FN float kf_ptx_sqrt(float a) {
  a = kf_ptx_flush<Ftz>(a);
  return kf_ptx_finish<Ftz, kf_clamp_none>(KF_ROUND(M, __fsqrt_rn(a), __fsqrt_rz(a), __fsqrt_ru(a), __fsqrt_rd(a)));
}
template <kf_round M, bool Ftz> KF_FN double kf_ptx_sqrt(double a) { return KF_ROUND(M, __dsqrt_rn(a), __dsqrt_rz(a), __dsqrt_ru(a), __dsqrt_rd(a)); }
#undef KF_ROUND

template <bool Ftz, class T> KF_FN T kf_ptx_each_flushed(T v) {
  if constexpr (!Ftz) return v;
  else if constexpr (kf_is_pair<T>::value) return kf_ptx_pair(kf_ptx_flushed(kf_ptx_low(v)), kf_ptx_flushed(kf_ptx_high(v)));
  else return kf_ptx_flushed(v);
}
template <bool Ftz, class T> KF_FN T kf_ptx_fabs(T v) { return kf_ptx_with_bits(kf_ptx_each_flushed<Ftz>(v), ~kf_signs<T>(), 0); }
template <bool Ftz, class T> KF_FN T kf_ptx_fneg(T v) { return kf_ptx_with_bits(kf_ptx_each_flushed<Ftz>(v), ~uint64_t(0), kf_signs<T>()); }
// The second value with the sign of the first.
template <class T> KF_FN T kf_ptx_copysign(T sign, T v) {
  typedef typename kf_word<sizeof(T)>::type W;
  return kf_bits<T>(static_cast<W>((kf_bits<W>(v) & ~static_cast<W>(kf_signs<T>())) | (kf_bits<W>(sign) & static_cast<W>(kf_signs<T>()))));
}

// The less and the greater: -0 is less than +0; a NaN loses, or wins where the instruction says so.
template <bool Greater, bool Ftz, bool Nan, class T> KF_FN T kf_ptx_extreme(T a, T b) {
  if constexpr (kf_is_pair<T>::value) {
    return kf_ptx_pair(kf_ptx_extreme<Greater, Ftz, Nan>(kf_ptx_low(a), kf_ptx_low(b)), kf_ptx_extreme<Greater, Ftz, Nan>(kf_ptx_high(a), kf_ptx_high(b)));
  } else {
    a = kf_ptx_flush<Ftz>(a), b = kf_ptx_flush<Ftz>(b);
    if (kf_ptx_nan(a)) return Nan || kf_ptx_nan(b) ? kf_ptx_canonical(a) : b;
    if (kf_ptx_nan(b)) return Nan ? kf_ptx_canonical(b) : a;
    const double x = kf_ptx_wide(a), y = kf_ptx_wide(b);
    const bool less = x < y || (x == y && __builtin_signbit(x) && !__builtin_signbit(y));
    return less == Greater ? b : a;
  }
}
template <bool Ftz, bool Nan, class T> KF_FN T kf_ptx_fmin(T a, T b) { return kf_ptx_extreme<false, Ftz, Nan>(a, b); }
template <bool Ftz, bool Nan, class T> KF_FN T kf_ptx_fmax(T a, T b) { return kf_ptx_extreme<true, Ftz, Nan>(a, b); }
template <kf_cmp C, bool Ftz, class T> KF_FN bool kf_ptx_fcompare(T a, T b) {
  return kf_ptx_compare<C>(kf_ptx_wide(kf_ptx_flush<Ftz>(a)), kf_ptx_wide(kf_ptx_flush<Ftz>(b)));
}

// Classes of values.
enum kf_class { kf_class_finite, kf_class_infinite, kf_class_number, kf_class_notanumber, kf_class_normal, kf_class_subnormal };
template <kf_class C, class T> KF_FN bool kf_ptx_testp(T v) {
  switch (C) {
    case kf_class_finite: return __builtin_isfinite(v);
    case kf_class_infinite: return __builtin_isinf(v);
    case kf_class_number: return v == v;
    case kf_class_notanumber: return v != v;
    case kf_class_normal: return __builtin_isnormal(v) || v == 0; // PTX counts zero
    case kf_class_subnormal: return v != 0 && !__builtin_isnormal(v) && __builtin_isfinite(v);
  }
  return false;
}

// Approximations of f32, at least as close as the device's. Without .ftz, f32's square root and logarithm take subnormal numbers.
#define KF_PTX_APPROX(name, expression)                                                                                \
  template <bool Ftz> KF_FN float kf_ptx_##name(float a) {                                                             \
    const float x = kf_ptx_flush<Ftz>(a);                                                                              \
    return kf_ptx_finish<Ftz, kf_clamp_none>(expression);                                                                   \
  }
KF_PTX_APPROX(ex2_approx, exp2f(x))
KF_PTX_APPROX(lg2_approx, log2f(x))
KF_PTX_APPROX(sin_approx, sinf(x))
KF_PTX_APPROX(cos_approx, cosf(x))
KF_PTX_APPROX(rcp_approx, 1.0f / x)
KF_PTX_APPROX(sqrt_approx, __builtin_sqrtf(x))
KF_PTX_APPROX(rsqrt_approx, static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))))
#undef KF_PTX_APPROX
KF_FN float kf_ptx_tanh_approx(float x) { return kf_ptx_canonical(tanhf(x)); }
template <bool Ftz> KF_FN double kf_ptx_rsqrt_approx(double x) { return rsqrt(x); }
// Divisors beyond 2^126 make it 0, of infinity NaN.
template <bool Ftz> KF_FN float kf_ptx_div_approx(float a, float b) {
  return kf_ptx_finish<Ftz, kf_clamp_none>(__fdividef(kf_ptx_flush<Ftz>(a), kf_ptx_flush<Ftz>(b)));
}
template <bool Ftz> KF_FN float kf_ptx_div_full(float a, float b) {
  return kf_ptx_finish<Ftz, kf_clamp_none>(kf_ptx_flush<Ftz>(a) / kf_ptx_flush<Ftz>(b));
}
// Of the 16-bit formats and their pairs.
#define KF_PTX_NARROW(name, function)                                                                                  \
  template <bool Ftz, class T> KF_FN T kf_ptx_narrow_##name(T v) {                                                     \
    if constexpr (kf_is_pair<T>::value) {                                                                              \
      return kf_ptx_pair(kf_ptx_narrow_##name<Ftz>(kf_ptx_low(v)), kf_ptx_narrow_##name<Ftz>(kf_ptx_high(v)));         \
    } else {                                                                                                           \
      const float x = static_cast<float>(kf_ptx_wide(kf_ptx_flush<Ftz>(v)));                                           \
      if constexpr (std::is_same<T, __half>::value) return kf_ptx_flush<Ftz>(kf_make_half(kf_f16_from(function(x))));  \
      else return kf_ptx_flush<Ftz>(kf_make_bfloat16(kf_bf16_from(function(x))));                                      \
    }                                                                                                                  \
  }
KF_PTX_NARROW(ex2, exp2f)
KF_PTX_NARROW(tanh, tanhf)
#undef KF_PTX_NARROW
