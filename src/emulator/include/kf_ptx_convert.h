// PTX's `cvt`: between integers and floating point of every width, with rounding, saturation and packing.
// Knows PTX ISA 9.0; the roundings themselves are in kf_narrow.h.
#pragma once
#include "kf_ptx_float.h"

// A float to nearest, a number of 16 bits or of f32 from any wider value.
template <class D, kf_round M> KF_FN D kf_ptx_narrowed(float v) {
  if constexpr (std::is_same<D, __half>::value) return kf_make_half(kf_f16_from(v, M));
  else if constexpr (std::is_same<D, __nv_bfloat16>::value) return kf_make_bfloat16(kf_bf16_from(v, M));
  else return kf_ptx_canonical(v);
}
template <class D, kf_round M> KF_FN D kf_ptx_narrowed(double v) {
  if constexpr (std::is_same<D, double>::value) return v;
  else if constexpr (std::is_same<D, float>::value)
    return kf_ptx_canonical(M == kf_rn ? __double2float_rn(v) : M == kf_rz ? __double2float_rz(v) : M == kf_ru ? __double2float_ru(v) : __double2float_rd(v));
  else return kf_ptx_narrowed<D, M>(kf_odd_float(v));
}

template <class D> KF_FN D kf_ptx_nan_of(uint64_t u) {
  if constexpr (std::is_same<D, float>::value)
    return kf_bits<float>(static_cast<uint32_t>(u >> 32 & 0x80000000u) | 0x7fc00000u | static_cast<uint32_t>(u >> 29 & 0x3fffffu));
  else if constexpr (std::is_same<D, __half>::value) return kf_make_half(static_cast<uint16_t>((u >> 48 & 0x8000u) | 0x7e00u | (u >> 42 & 0x1ffu)));
  else return kf_make_bfloat16(static_cast<uint16_t>((u >> 48 & 0x8000u) | 0x7fc0u | (u >> 45 & 0x3fu)));
}
template <bool Ftz, kf_clamp Clamp, class D> KF_FN D kf_ptx_kept(D v) {
  if constexpr (Clamp == kf_clamp_sat) return kf_ptx_unit(v);
  else if constexpr (Clamp == kf_clamp_relu) return kf_ptx_positive(v);
  else return v;
}
// Only values of f32 are flushed.
template <bool Ftz, class T> KF_FN T kf_ptx_flush_single(T v) {
  if constexpr (std::is_same<T, float>::value) return kf_ptx_flush<Ftz>(v);
  else return v;
}
template <class D, class S, kf_round M, bool Integral, bool Ftz, kf_clamp Clamp> KF_FN D kf_ptx_cvt(S v) {
  if constexpr (std::is_integral<S>::value && std::is_integral<D>::value) {
    if constexpr (Clamp == kf_clamp_sat) return kf_ptx_clamped<D>(v);
    else return static_cast<D>(v);
  } else if constexpr (std::is_integral<D>::value) {
    return kf_to_int<D>(kf_ptx_wide(kf_ptx_flush_single<Ftz>(v)), M, sizeof(D) == 8 || sizeof(S) == 8);
  } else if constexpr (std::is_integral<S>::value) {
    if constexpr (std::is_same<D, double>::value && sizeof(S) == 8) {
      typedef typename std::conditional<std::is_signed<S>::value, int32_t, uint32_t>::type H;
      const double high = static_cast<double>(static_cast<H>(v >> 32)) * 0x1p32;
      return kf_raw_add<M>(high, static_cast<double>(static_cast<uint32_t>(v)));
    } else {
      const double odd = std::is_signed<S>::value ? kf_odd_signed(static_cast<int64_t>(v)) : kf_odd_unsigned(static_cast<uint64_t>(v));
      D r = kf_ptx_narrowed<D, M>(odd);
      if constexpr (Clamp == kf_clamp_sat) return kf_ptx_unit(r);
      else return r;
    }
  } else {
    // A NaN of bfloat16 or f64 keeps its sign and the upper bits of its payload.
    if constexpr (std::is_same<S, __nv_bfloat16>::value && std::is_same<D, float>::value) return kf_ptx_kept<Ftz, Clamp>(kf_bf16_to(v.__x));
    if constexpr (std::is_same<S, double>::value && !std::is_same<D, double>::value)
      if (v != v) return kf_ptx_kept<Ftz, Clamp>(kf_ptx_nan_of<D>(kf_bits<uint64_t>(v)));
    double wide = kf_ptx_wide(kf_ptx_flush_single<Ftz>(v));
    if constexpr (Integral) wide = kf_integral(wide, M);
    D r = kf_ptx_flush_single<Ftz>(kf_ptx_narrowed<D, Integral ? kf_rn : M>(wide));
    if constexpr (Clamp == kf_clamp_sat) return kf_ptx_unit(r);
    else if constexpr (Clamp == kf_clamp_relu) return kf_ptx_positive(r);
    else return r;
  }
}
// Two floats as a pair: the first becomes the upper half.
template <class D, kf_round M, kf_clamp Clamp> KF_FN D kf_ptx_cvt_pair(float hi, float lo) {
  typedef decltype(kf_ptx_low(D())) E;
  return kf_ptx_pair(kf_ptx_cvt<E, float, M, false, false, Clamp>(lo), kf_ptx_cvt<E, float, M, false, false, Clamp>(hi));
}
// tf32, ties away from zero, or to even, or cut. What becomes of a NaN is what an H200 gives.
KF_FN uint32_t kf_ptx_tf32_rna(float v) {
  const uint32_t u = kf_bits<uint32_t>(v);
  return (u & 0x7fffffffu) > 0x7f800000u ? u & 0xffffe000u : kf_bits<uint32_t>(__float_to_tf32(v));
}
KF_FN uint32_t kf_ptx_tf32_rn(float v) {
  const uint32_t u = kf_bits<uint32_t>(v), a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return 0x7fffe000u;
  return a == 0x7f800000u ? u : (u + 0xfffu + (u >> 13 & 1)) & 0xffffe000u;
}
KF_FN uint32_t kf_ptx_tf32_rz(float v) {
  const uint32_t u = kf_bits<uint32_t>(v);
  return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fffe000u : u & 0xffffe000u;
}
// Eight-bit floats in twos, saturating: the first becomes the upper byte.
KF_FN __nv_fp8_interpretation_t kf_ptx_fp8(kf_t_e4m3) { return __NV_E4M3; }
KF_FN __nv_fp8_interpretation_t kf_ptx_fp8(kf_t_e5m2) { return __NV_E5M2; }
template <class E, bool Relu> KF_FN uint16_t kf_ptx_cvt_fp8(float hi, float lo) {
  if constexpr (Relu) hi = kf_ptx_positive(hi), lo = kf_ptx_positive(lo);
  return kf_fp8x2_from(lo, hi, __NV_SATFINITE, kf_ptx_fp8(E()));
}
template <class E, bool Relu> KF_FN uint16_t kf_ptx_cvt_fp8(__half2 v) { return kf_ptx_cvt_fp8<E, Relu>(kf_f16_to(v.y.__x), kf_f16_to(v.x.__x)); }
template <class E, bool Relu> KF_FN __half2 kf_ptx_cvt_from_fp8(uint16_t v) {
  uint16_t lo = kf_fp8_to(static_cast<uint8_t>(v), kf_ptx_fp8(E())), hi = kf_fp8_to(static_cast<uint8_t>(v >> 8), kf_ptx_fp8(E()));
  __half2 r = kf_make_half2(lo, hi);
  if constexpr (Relu) return kf_ptx_pair(kf_ptx_positive(r.x), kf_ptx_positive(r.y));
  else return r;
}
// Two integers into the low bytes or halves of a word, saturating; `c` gives the rest.
template <class D> KF_FN uint32_t kf_ptx_cvt_pack(int32_t a, int32_t b, uint32_t c) {
  typedef kf_unsigned<D> U;
  const uint32_t hi = static_cast<U>(kf_ptx_clamped<D>(a)), lo = static_cast<U>(kf_ptx_clamped<D>(b));
  const uint32_t both = hi << kf_width<D>() | lo;
  if constexpr (sizeof(D) == 2) return both;
  else return c << 16 | both;
}
