// Rounding to the formats narrower than float, and from floating point to integers: bit patterns in, bit patterns out.
// Knows IEEE 754 and how CUDA treats NaN and overflow; not the class types, which the headers above it define.
//
// All of it rests on rounding to odd: a value that is cut to more bits than the target has (at least two more), and
// whose last bit is set whenever the cut lost something, still rounds right in every mode. So an exact sum is rounded
// to odd to double, that to odd to float, and only the last step rounds by the mode asked for: no rounding
// twice.
#pragma once
#include <kf_system.h>
#include "kf_vector_types.h"

// Rounding modes as CUDA's suffixes name them: to nearest even, to zero, up, down.
enum kf_round { kf_rn, kf_rz, kf_ru, kf_rd };

template <class To, class From> KF_FN constexpr To kf_bits(From v) { return __builtin_bit_cast(To, v); }

// `d` as float, rounded to odd; NaN stays NaN, infinity stays.
KF_FN float kf_odd_float(double d) {
  float f = static_cast<float>(d);
  double back = static_cast<double>(f);
  if (back == d || d != d) return f;
  uint32_t u = kf_bits<uint32_t>(f);
  if (__builtin_fabs(back) > __builtin_fabs(d))
    u -= 1;  // back to the cut value; infinity becomes the largest finite one
  return kf_bits<float>(u | 1u);
}

// a + b as double, rounded to odd. The error of the sum is found exactly (Knuth's TwoSum); no overflow is expected.
KF_FN double kf_odd_sum(double a, double b) {
  double s = a + b;
  double bv = s - a;
  double err = (a - (s - bv)) + (b - bv);
  uint64_t u = kf_bits<uint64_t>(s);
  if (!(err != 0.0) || err != err || (u & 1)) return s;
  bool away = (err < 0.0) == (s > 0.0); // the sum was rounded away from zero
  return kf_bits<double>(away ? u - 1 : u + 1);
}

// An integer as double, rounded to odd (exact below 2^53).
KF_FN double kf_odd_unsigned(uint64_t v) {
  int over = 11 - (v ? __builtin_clzll(v) : 64);
  if (over > 0) {
    uint64_t lost = v & ((uint64_t(1) << over) - 1);
    v = (v >> over | (lost ? 1 : 0)) << over;
  }
  return static_cast<double>(v);
}
KF_FN double kf_odd_signed(int64_t v) {
  return v < 0 ? -kf_odd_unsigned(uint64_t(0) - static_cast<uint64_t>(v)) : kf_odd_unsigned(static_cast<uint64_t>(v));
}

// Whether a magnitude `base` with lost bits `low`, whose middle is `half`, is rounded up.
KF_FN bool kf_rounds_up(uint32_t base, uint32_t low, uint32_t half, bool negative, kf_round mode) {
  if (mode == kf_rn) return low > half || (low == half && (base & 1));
  return low != 0 && ((mode == kf_ru && !negative) || (mode == kf_rd && negative));
}

// float to IEEE binary16. NaN gives CUDA's canonical 0x7fff.
KF_FN uint16_t kf_f16_from(float f) {
  uint32_t u = kf_bits<uint32_t>(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  if (a >= 0x47800000u) return static_cast<uint16_t>(a > 0x7f800000u ? 0x7fffu : sign | 0x7c00u);
  if (a < 0x38800000u) // subnormal: adding 0.5 lets the FPU shift and round
    return static_cast<uint16_t>(sign | (kf_bits<uint32_t>(kf_bits<float>(a) + 0.5f) - 0x3f000000u));
  return static_cast<uint16_t>(sign | ((a - 0x38000000u + 0xfffu + (a >> 13 & 1)) >> 13));
}
KF_BIG uint16_t kf_f16_from(float f, kf_round mode) {
  uint32_t u = kf_bits<uint32_t>(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return 0x7fff;
  if (a == 0x7f800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (a >= 0x47800000u) // 65536 and more
    return static_cast<uint16_t>(sign | (mode == kf_rn || mode == (sign ? kf_rd : kf_ru) ? 0x7c00u : 0x7bffu));
  uint32_t exponent = a >> 23, base, low, half;
  if (exponent >= 113) {
    base = (a - 0x38000000u) >> 13, low = a & 0x1fffu, half = 0x1000u;
  } else {
    uint32_t m = exponent ? (a & 0x7fffffu) | 0x800000u : 0u, shift = 126 - exponent;
    if (shift > 25)
      shift = 25, m = a ? 1 : 0;  // below a quarter of the least subnormal: only that it is not zero counts
    base = m >> shift, low = m & ((1u << shift) - 1), half = 1u << (shift - 1);
  }
  return static_cast<uint16_t>(sign | (base + (kf_rounds_up(base, low, half, sign != 0, mode) ? 1u : 0u)));
}
KF_FN uint16_t kf_f16_from(double d) { return kf_f16_from(kf_odd_float(d)); }
// IEEE binary16 to float, exact. NaN gives 0x7fffffff.
KF_FN float kf_f16_to(uint16_t h) {
  uint32_t sign = (h & 0x8000u) << 16, a = h & 0x7fffu;
  if (a >= 0x7c00u) return kf_bits<float>(a > 0x7c00u ? 0x7fffffffu : sign | 0x7f800000u);
  // The bits shifted into place read as a value 2^112 too small, subnormals included.
  return kf_bits<float>(sign | kf_bits<uint32_t>(kf_bits<float>(a << 13) * 0x1p112f));
}

// float to bfloat16. NaN gives CUDA's canonical 0x7fff.
KF_FN uint16_t kf_bf16_from(float f) {
  uint32_t u = kf_bits<uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
KF_BIG uint16_t kf_bf16_from(float f, kf_round mode) {
  uint32_t u = kf_bits<uint32_t>(f), base = u >> 16, low = u & 0xffffu;
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>(base + (kf_rounds_up(base, low, 0x8000u, u >> 31, mode) ? 1u : 0u));
}
KF_FN uint16_t kf_bf16_from(double d) { return kf_bf16_from(kf_odd_float(d)); }
// bfloat16 to float, exact: the upper half of the bits.
KF_FN float kf_bf16_to(uint16_t b) { return kf_bits<float>(static_cast<uint32_t>(b) << 16); }

// `v` rounded to an integral value by the mode.
KF_FN double kf_integral(double v, kf_round mode) {
  return mode == kf_rn   ? __builtin_rint(v)
         : mode == kf_rz ? __builtin_trunc(v)
         : mode == kf_ru ? __builtin_ceil(v)
                         : __builtin_floor(v);
}

// `v` as an integer: rounded by the mode, then saturated. NaN gives 0; in 64 bits, and (PTX ISA 9.0, cvt) from double
// in any width, the value whose only set bit is the topmost.
template <class I> KF_BIG I kf_to_int(double v, kf_round mode, bool from_double = sizeof(I) == 8) {
  constexpr int bits = 8 * static_cast<int>(sizeof(I));
  constexpr bool is_signed = I(-1) < I(0);
  constexpr I top = is_signed ? static_cast<I>((uint64_t(1) << (bits - 1)) - 1) : static_cast<I>(~uint64_t(0));
  constexpr double above = 2.0 * static_cast<double>(uint64_t(1) << (bits - (is_signed ? 2 : 1)));
  if (v != v) return from_double ? static_cast<I>(uint64_t(1) << (bits - 1)) : I(0);
  v = kf_integral(v, mode);
  if (v >= above) return top;
  if (v < (is_signed ? -above : 0.0)) return is_signed ? static_cast<I>(-top - 1) : I(0);
  return static_cast<I>(v);
}
