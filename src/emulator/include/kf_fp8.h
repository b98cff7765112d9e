// CUDA's eight-bit floating-point types as cuda_fp8.h spells them: e4m3 and e5m2, alone and in twos and fours.
// Also e8m0, a scale: eight bits of exponent. Knows their encodings and saturation; not the four- and six-bit types.
// Includes the 16-bit types they convert to.
#pragma once
#define __CUDA_FP8_H__  // CUDA's guard: sources that declare these types themselves ask for it.
#include "kf_bf16.h"
#include "kf_half.h"

#define __CUDA_FP8_TYPES_EXIST__
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

// float to eight bits, to nearest even. e4m3 has no infinity and one NaN (0x7f): past 448 it is 448, or NaN unless
// saturating. e5m2 past 57344 is that, or infinity unless saturating. NaN gives 0x7f in both.
KF_FN __nv_fp8_storage_t kf_fp8_from(float f, __nv_saturation_t sat, __nv_fp8_interpretation_t kind) {
  const uint32_t u = kf_bits<uint32_t>(f), sign = u >> 24 & 0x80u, a = u & 0x7fffffffu;
  const uint32_t drop = kind == __NV_E4M3 ? 20 : 21,
                 bias = kind == __NV_E4M3 ? 120 : 112;  // float's bias less the type's
  if (a > 0x7f800000u) return 0x7f;
  uint32_t p;
  if (a < (bias + 1) << 23) { // subnormal: adding a value whose last bit is the least subnormal lets the FPU round
    const uint32_t magic = (bias + 1 + drop) << 23;
    p = kf_bits<uint32_t>(kf_bits<float>(a) + kf_bits<float>(magic)) - magic;
  } else {
    p = (a - (bias << 23) + ((1u << (drop - 1)) - 1) + (a >> drop & 1)) >> drop;
  }
  const uint32_t largest = kind == __NV_E4M3 ? 0x7e : 0x7b;
  if (p > largest) p = sat == __NV_SATFINITE ? largest : largest + 1; // the next pattern is NaN, or infinity
  return static_cast<__nv_fp8_storage_t>(sign | p);
}
// The same from double, where CUDA keeps NaN's sign and, in e5m2, the end of its fraction.
KF_FN __nv_fp8_storage_t kf_fp8_from_double(double d, __nv_saturation_t sat, __nv_fp8_interpretation_t kind) {
  if (d == d) return kf_fp8_from(kf_odd_float(d), sat, kind);
  const uint64_t u = kf_bits<uint64_t>(d);
  return static_cast<__nv_fp8_storage_t>((u >> 56 & 0x80) | (kind == __NV_E4M3 ? 0x7f : 0x7e | (u >> 50 & 3)));
}
// Eight bits to binary16, exact; NaN gives 0x7fff.
KF_FN uint16_t kf_fp8_to(__nv_fp8_storage_t v, __nv_fp8_interpretation_t kind) {
  if (kind == __NV_E5M2) return static_cast<uint16_t>((v & 0x7fu) > 0x7cu ? 0x7fffu : static_cast<uint32_t>(v) << 8);
  if ((v & 0x7fu) == 0x7fu) return 0x7fff;
  // The bits shifted into place read as a value 2^8 too small.
  const float magnitude = kf_f16_to(static_cast<uint16_t>((v & 0x7fu) << 7)) * 256.0f;
  return static_cast<uint16_t>((v & 0x80u) << 8 | kf_f16_from(magnitude));
}

// Conversions by name; a pair holds its x element in the low byte.
#define KF_FP8_ARGS __nv_saturation_t sat, __nv_fp8_interpretation_t kind
KF_FN __nv_fp8x2_storage_t kf_fp8_pair(unsigned int lo, unsigned int hi) {
  return static_cast<__nv_fp8x2_storage_t>(lo | hi << 8);
}
KF_FN __nv_fp8x2_storage_t kf_fp8x2_from(float x, float y, KF_FP8_ARGS) {
  return kf_fp8_pair(kf_fp8_from(x, sat, kind), kf_fp8_from(y, sat, kind));
}
KF_FN __nv_fp8_storage_t __nv_cvt_float_to_fp8(float v, KF_FP8_ARGS) { return kf_fp8_from(v, sat, kind); }
KF_FN __nv_fp8_storage_t __nv_cvt_double_to_fp8(double v, KF_FP8_ARGS) { return kf_fp8_from_double(v, sat, kind); }
KF_FN __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw v, KF_FP8_ARGS) {
  return kf_fp8_from(kf_f16_to(v.x), sat, kind);
}
KF_FN __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw v, KF_FP8_ARGS) {
  return kf_fp8_from(kf_bf16_to(v.x), sat, kind);
}
KF_FN __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, KF_FP8_ARGS) {
  return kf_fp8x2_from(v.x, v.y, sat, kind);
}
KF_FN __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 v, KF_FP8_ARGS) {
  return kf_fp8_pair(kf_fp8_from_double(v.x, sat, kind), kf_fp8_from_double(v.y, sat, kind));
}
KF_FN __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw v, KF_FP8_ARGS) {
  return kf_fp8x2_from(kf_f16_to(v.x), kf_f16_to(v.y), sat, kind);
}
KF_FN __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw v, KF_FP8_ARGS) {
  return kf_fp8x2_from(kf_bf16_to(v.x), kf_bf16_to(v.y), sat, kind);
}
#undef KF_FP8_ARGS
KF_FN __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t v, __nv_fp8_interpretation_t kind) {
  return __half_raw{kf_fp8_to(v, kind)};
}
KF_FN __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t v, __nv_fp8_interpretation_t kind) {
  return __half2_raw{kf_fp8_to(static_cast<unsigned char>(v & 0xff), kind),
                     kf_fp8_to(static_cast<unsigned char>(v >> 8), kind)};
}

// The classes. Every conversion is explicit, to nearest and saturating, as CUDA's are; integers go through float.
#define KF_FP8_CLASS(T, KIND)                                                                                          \
  struct __nv_fp8_##T {                                                                                                \
    __nv_fp8_storage_t __x;                                                                                            \
    __nv_fp8_##T() = default;                                                                                          \
    explicit __nv_fp8_##T(float v) : __x(kf_fp8_from(v, __NV_SATFINITE, KIND)) {}                                      \
    explicit __nv_fp8_##T(double v) : __x(kf_fp8_from_double(v, __NV_SATFINITE, KIND)) {}                              \
    explicit __nv_fp8_##T(const __half& v) : __nv_fp8_##T(kf_f16_to(v.__x)) {}                                         \
    explicit __nv_fp8_##T(const __nv_bfloat16& v) : __nv_fp8_##T(kf_bf16_to(v.__x)) {}                                 \
    KF_FP8_FROM_INT(T, short)                                                                                          \
    KF_FP8_FROM_INT(T, unsigned short)                                                                                 \
    KF_FP8_FROM_INT(T, int)                                                                                            \
    KF_FP8_FROM_INT(T, unsigned int)                                                                                   \
    KF_FP8_FROM_INT(T, long)                                                                                           \
    KF_FP8_FROM_INT(T, unsigned long)                                                                                  \
    KF_FP8_FROM_INT(T, long long)                                                                                      \
    KF_FP8_FROM_INT(T, unsigned long long)                                                                             \
    explicit operator float() const { return kf_f16_to(kf_fp8_to(__x, KIND)); }                                        \
    explicit operator double() const { return static_cast<double>(kf_f16_to(kf_fp8_to(__x, KIND))); }                  \
    explicit operator __half() const { return __half_raw{kf_fp8_to(__x, KIND)}; }                                      \
    explicit operator __nv_bfloat16() const {                                                                          \
      return __nv_bfloat16_raw{kf_bf16_from(kf_f16_to(kf_fp8_to(__x, KIND)))};                                         \
    }                                                                                                                  \
    explicit operator bool() const { return (__x & 0x7fu) != 0; }                                                      \
    KF_FP8_TO_INT(KIND, char)                                                                                          \
    KF_FP8_TO_INT(KIND, signed char)                                                                                   \
    KF_FP8_TO_INT(KIND, unsigned char)                                                                                 \
    KF_FP8_TO_INT(KIND, short)                                                                                         \
    KF_FP8_TO_INT(KIND, unsigned short)                                                                                \
    KF_FP8_TO_INT(KIND, int)                                                                                           \
    KF_FP8_TO_INT(KIND, unsigned int)                                                                                  \
    KF_FP8_TO_INT(KIND, long)                                                                                          \
    KF_FP8_TO_INT(KIND, unsigned long)                                                                                 \
    KF_FP8_TO_INT(KIND, long long)                                                                                     \
    KF_FP8_TO_INT(KIND, unsigned long long)                                                                            \
  };                                                                                                                   \
  struct __nv_fp8x2_##T {                                                                                              \
    __nv_fp8x2_storage_t __x;                                                                                          \
    __nv_fp8x2_##T() = default;                                                                                        \
    explicit __nv_fp8x2_##T(float2 v) : __x(kf_fp8x2_from(v.x, v.y, __NV_SATFINITE, KIND)) {}                          \
    explicit __nv_fp8x2_##T(double2 v) : __x(__nv_cvt_double2_to_fp8x2(v, __NV_SATFINITE, KIND)) {}                    \
    explicit __nv_fp8x2_##T(const __half2& v) : __nv_fp8x2_##T(__half22float2(v)) {}                                   \
    explicit __nv_fp8x2_##T(const __nv_bfloat162& v) : __nv_fp8x2_##T(__bfloat1622float2(v)) {}                        \
    explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, KIND); }                                \
    explicit operator float2() const { return __half22float2(__nv_cvt_fp8x2_to_halfraw2(__x, KIND)); }                 \
  };                                                                                                                   \
  struct __nv_fp8x4_##T {                                                                                              \
    __nv_fp8x4_storage_t __x;                                                                                          \
    __nv_fp8x4_##T() = default;                                                                                        \
    explicit __nv_fp8x4_##T(float4 v)                                                                                  \
        : __x(static_cast<unsigned int>(kf_fp8x2_from(v.x, v.y, __NV_SATFINITE, KIND)) |                               \
              static_cast<unsigned int>(kf_fp8x2_from(v.z, v.w, __NV_SATFINITE, KIND)) << 16) {}                       \
    explicit __nv_fp8x4_##T(double4 v)                                                                                 \
        : __x(static_cast<unsigned int>(__nv_cvt_double2_to_fp8x2(double2{v.x, v.y}, __NV_SATFINITE, KIND)) |          \
              static_cast<unsigned int>(__nv_cvt_double2_to_fp8x2(double2{v.z, v.w}, __NV_SATFINITE, KIND)) << 16) {}  \
    explicit __nv_fp8x4_##T(const __half2& lo, const __half2& hi)                                                      \
        : __nv_fp8x4_##T(float4{kf_float(lo.x), kf_float(lo.y), kf_float(hi.x), kf_float(hi.y)}) {}                    \
    explicit __nv_fp8x4_##T(const __nv_bfloat162& lo, const __nv_bfloat162& hi)                                        \
        : __nv_fp8x4_##T(float4{kf_float(lo.x), kf_float(lo.y), kf_float(hi.x), kf_float(hi.y)}) {}                    \
    explicit operator float4() const {                                                                                 \
      const __half2_raw lo = __nv_cvt_fp8x2_to_halfraw2(static_cast<unsigned short>(__x & 0xffff), KIND);              \
      const __half2_raw hi = __nv_cvt_fp8x2_to_halfraw2(static_cast<unsigned short>(__x >> 16), KIND);                 \
      return float4{kf_f16_to(lo.x), kf_f16_to(lo.y), kf_f16_to(hi.x), kf_f16_to(hi.y)};                               \
    }                                                                                                                  \
  };
#define KF_FP8_FROM_INT(T, I) explicit __nv_fp8_##T(I v) : __nv_fp8_##T(static_cast<float>(v)) {}
#define KF_FP8_TO_INT(KIND, I)                                                                                         \
  explicit operator I() const { return kf_to_int<I>(static_cast<double>(kf_f16_to(kf_fp8_to(__x, KIND))), kf_rz); }
KF_FP8_CLASS(e4m3, __NV_E4M3)
KF_FP8_CLASS(e5m2, __NV_E5M2)
#undef KF_FP8_TO_INT
#undef KF_FP8_FROM_INT
#undef KF_FP8_CLASS

// e8m0: the absolute value as a power of two from 2^-127 to 2^127, pattern 0xff being NaN. To nearest means by
// distance, midpoints going up; below the least it is clipped, above the greatest too, or NaN unless saturating.
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };
#define KF_E8M0_ARGS __nv_saturation_t sat, cudaRoundMode mode
KF_FN __nv_fp8_storage_t __nv_cvt_float_to_e8m0(float v, KF_E8M0_ARGS) {
  const uint32_t a = kf_bits<uint32_t>(v) & 0x7fffffffu;
  if (a > 0x7f800000u) return 0xff;
  // Float's subnormals end at 2^-126: there 2^-127 is the pattern 0x400000, and 0x600000 is the middle between the two.
  const uint32_t base = a >> 23, exact = base ? 0 : 0x400000u, middle = base ? 0x400000u : 0x600000u,
                 rest = a & 0x7fffffu;
  const bool up = mode == cudaRoundNearest ? rest >= middle : mode == cudaRoundPosInf && rest > exact;
  const uint32_t e = base + (up ? 1 : 0);
  return static_cast<__nv_fp8_storage_t>(e == 0xff && sat == __NV_SATFINITE ? 0xfe : e);
}
KF_FN __nv_fp8_storage_t __nv_cvt_double_to_e8m0(double v, KF_E8M0_ARGS) {
  return __nv_cvt_float_to_e8m0(kf_odd_float(v), sat, mode);
}
KF_FN __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_e8m0(__nv_bfloat16_raw v, KF_E8M0_ARGS) {
  return __nv_cvt_float_to_e8m0(kf_bf16_to(v.x), sat, mode);
}
KF_FN __nv_fp8x2_storage_t __nv_cvt_float2_to_e8m0x2(float2 v, KF_E8M0_ARGS) {
  return kf_fp8_pair(__nv_cvt_float_to_e8m0(v.x, sat, mode), __nv_cvt_float_to_e8m0(v.y, sat, mode));
}
KF_FN __nv_fp8x2_storage_t __nv_cvt_double2_to_e8m0x2(double2 v, KF_E8M0_ARGS) {
  return kf_fp8_pair(__nv_cvt_double_to_e8m0(v.x, sat, mode), __nv_cvt_double_to_e8m0(v.y, sat, mode));
}
KF_FN __nv_fp8x2_storage_t __nv_cvt_bfloat162raw_to_e8m0x2(__nv_bfloat162_raw v, KF_E8M0_ARGS) {
  return __nv_cvt_float2_to_e8m0x2(float2{kf_bf16_to(v.x), kf_bf16_to(v.y)}, sat, mode);
}
#undef KF_E8M0_ARGS
KF_FN __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t v) {
  return __nv_bfloat16_raw{static_cast<unsigned short>(v == 0xff ? 0x7fff : v ? v << 7 : 0x40)};
}
KF_FN __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(__nv_fp8x2_storage_t v) {
  return __nv_bfloat162_raw{__nv_cvt_e8m0_to_bf16raw(static_cast<unsigned char>(v & 0xff)).x,
                            __nv_cvt_e8m0_to_bf16raw(static_cast<unsigned char>(v >> 8)).x};
}
// Conversions by constructor go up to the next power of two.
struct __nv_fp8_e8m0 {
  __nv_fp8_storage_t __x;
  __nv_fp8_e8m0() = default;
  explicit __nv_fp8_e8m0(float v) : __x(__nv_cvt_float_to_e8m0(v, __NV_SATFINITE, cudaRoundPosInf)) {}
  explicit __nv_fp8_e8m0(double v) : __x(__nv_cvt_double_to_e8m0(v, __NV_SATFINITE, cudaRoundPosInf)) {}
  explicit __nv_fp8_e8m0(const __half& v) : __nv_fp8_e8m0(kf_f16_to(v.__x)) {}
  explicit __nv_fp8_e8m0(const __nv_bfloat16& v) : __nv_fp8_e8m0(kf_bf16_to(v.__x)) {}
  explicit __nv_fp8_e8m0(int v) : __nv_fp8_e8m0(static_cast<double>(v)) {}
  explicit __nv_fp8_e8m0(unsigned int v) : __nv_fp8_e8m0(static_cast<double>(v)) {}
  explicit __nv_fp8_e8m0(long long v) : __nv_fp8_e8m0(kf_odd_signed(v)) {}
  explicit __nv_fp8_e8m0(unsigned long long v) : __nv_fp8_e8m0(kf_odd_unsigned(v)) {}
  explicit operator float() const { return kf_bf16_to(__nv_cvt_e8m0_to_bf16raw(__x).x); }
  explicit operator double() const { return static_cast<double>(kf_bf16_to(__nv_cvt_e8m0_to_bf16raw(__x).x)); }
  explicit operator __nv_bfloat16() const { return __nv_cvt_e8m0_to_bf16raw(__x); }
};
