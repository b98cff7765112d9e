// Values that matrix instructions take and give: tf32, and the widening and narrowing that fragments of any element
// type need. Knows single elements only; which lane holds which element is the fragments' business.
#pragma once
#include "kf_bf16.h"
#include "kf_fp8.h"
#include "kf_half.h"

// float to tf32 (float with 10 bits of fraction), to nearest with ties away from zero, as cvt.rna.tf32.f32 does: half
// of the last kept place is added to the magnitude and the rest is cut. Infinity stays; NaN gives 0x7fffffff.
KF_FN float __float_to_tf32(float f) {
  const uint32_t u = kf_bits<uint32_t>(f), a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return kf_bits<float>(0x7fffffffu);
  if (a == 0x7f800000u) return f;
  return kf_bits<float>((u + 0x1000u) & 0xffffe000u);
}
// What the tensor cores read of a float that was not converted first: the low 13 bits are ignored.
KF_FN float kf_tf32_read(float f) { return kf_bits<float>(kf_bits<uint32_t>(f) & 0xffffe000u); }

// An element as the type products are summed in: float for floating point (double for double), int for integers.
KF_FN float kf_mma_wide(__half v) { return kf_f16_to(v.__x); }
KF_FN float kf_mma_wide(__nv_bfloat16 v) { return kf_bf16_to(v.__x); }
KF_FN float kf_mma_wide(__nv_fp8_e4m3 v) { return kf_f16_to(kf_fp8_to(v.__x, __NV_E4M3)); }
KF_FN float kf_mma_wide(__nv_fp8_e5m2 v) { return kf_f16_to(kf_fp8_to(v.__x, __NV_E5M2)); }
KF_FN float kf_mma_wide(float v) { return v; }
KF_FN double kf_mma_wide(double v) { return v; }
KF_FN int kf_mma_wide(signed char v) { return v; }
KF_FN int kf_mma_wide(unsigned char v) { return v; }
KF_FN int kf_mma_wide(int v) { return v; }

// The sum of one output's products and its accumulator. Floating point is summed in double, in order, and rounded once
// by the caller: hardware sums in an order and precision of its own, which this is at least as exact as. Integers
// wrap, or saturate where the instruction says satfinite.
KF_FN double kf_mma_step(double sum, float a, float b) { return sum + static_cast<double>(a) * static_cast<double>(b); }
KF_FN int kf_mma_step(int sum, int a, int b) {
  return static_cast<int>(static_cast<unsigned int>(sum) + static_cast<unsigned int>(a * b));
}
KF_FN int kf_mma_saturated(long long sum) {
  return sum > 0x7fffffffll    ? 0x7fffffff
         : sum < -0x80000000ll ? static_cast<int>(-0x7fffffff - 1)
                               : static_cast<int>(sum);
}
// That sum as the accumulator's type.
KF_FN void kf_mma_store(float& to, double sum) { to = static_cast<float>(sum); }
KF_FN void kf_mma_store(double& to, double sum) { to = sum; }
KF_FN void kf_mma_store(__half& to, double sum) { to.__x = kf_f16_from(sum); }
