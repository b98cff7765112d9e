// CUDA's device mathematics where the C library lacks a name or means another, min and max over CUDA's mixes of types,
// and the constants of math_constants.h. What the C library has (sinf, erf, fma, ...) is used as it is.
// Knows values only; the intrinsics with two leading underscores are in kf_intrinsics.h.
//
// Functions are at least as accurate as CUDA documents, not bit for bit what a GPU gives.
#pragma once
#include <kf_system.h>
#include "kf_vector_types.h"

// Names that a C library of C23 declares, or will, with C linkage: ours stand under another name, from here on.
#define rsqrt kf_rsqrt
#define rsqrtf kf_rsqrtf
#define sinpi kf_sinpi
#define sinpif kf_sinpif
#define cospi kf_cospi
#define cospif kf_cospif

// Least and greatest. Of floats the one that is a number; -0 is less than +0.
#define KF_MIN_MAX(R, A, B)                                                                                            \
  KF_FN constexpr R min(A a, B b) {                                                                                    \
    return static_cast<R>(b) < static_cast<R>(a) ? static_cast<R>(b) : static_cast<R>(a);                              \
  }                                                                                                                    \
  KF_FN constexpr R max(A a, B b) {                                                                                    \
    return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(b) : static_cast<R>(a);                              \
  }
KF_MIN_MAX(int, int, int)
KF_MIN_MAX(unsigned int, unsigned int, unsigned int)
KF_MIN_MAX(unsigned int, int, unsigned int)
KF_MIN_MAX(unsigned int, unsigned int, int)
KF_MIN_MAX(long, long, long)
KF_MIN_MAX(unsigned long, unsigned long, unsigned long)
KF_MIN_MAX(unsigned long, long, unsigned long)
KF_MIN_MAX(unsigned long, unsigned long, long)
KF_MIN_MAX(long long, long long, long long)
KF_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
KF_MIN_MAX(unsigned long long, long long, unsigned long long)
KF_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef KF_MIN_MAX
#define KF_MIN_MAX(R, A, B)                                                                                            \
  KF_FN R min(A a, B b) {                                                                                              \
    R x = a, y = b;                                                                                                    \
    return x != x ? y : y < x || (y == x && __builtin_signbit(y)) ? y : x;                                             \
  }                                                                                                                    \
  KF_FN R max(A a, B b) {                                                                                              \
    R x = a, y = b;                                                                                                    \
    return x != x ? y : y > x || (y == x && __builtin_signbit(x)) ? y : x;                                             \
  }
KF_MIN_MAX(float, float, float)
KF_MIN_MAX(double, double, double)
KF_MIN_MAX(double, float, double)
KF_MIN_MAX(double, double, float)
#undef KF_MIN_MAX
KF_FN unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
KF_FN unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
KF_FN long long llmin(long long a, long long b) { return min(a, b); }
KF_FN long long llmax(long long a, long long b) { return max(a, b); }
KF_FN unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
KF_FN unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

// sin(pi x) and cos(pi x): the reduction to a quarter turn is exact.
KF_BIG double kf_turn(double x, int quarters) {
  if (!(__builtin_fabs(x) < 0x1p53)) return x - x + quarters; // even integers, or not finite
  double whole = __builtin_rint(2.0 * x), t = x - 0.5 * whole;
  int n = (static_cast<int>(whole - 4.0 * __builtin_floor(0.25 * whole)) + quarters) & 3;
  double v = n & 1 ? cos(M_PI * t) : sin(M_PI * t);
  return n & 2 ? -v : v;
}
KF_FN double sinpi(double x) {
  return x == __builtin_trunc(x) ? __builtin_copysign(x - x, x) : kf_turn(x, 0);
}  // of whole numbers 0
KF_FN double cospi(double x) { return kf_turn(x, 1) + 0.0; }
KF_FN void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }

// Roots and norms, free of overflow on the way: squares of doubles fit the range of the x87 format.
KF_FN double rsqrt(double x) { return static_cast<double>(1.0L / sqrtl(x)); }
KF_FN double rcbrt(double x) { return static_cast<double>(1.0L / cbrtl(x)); }
KF_BIG long double kf_norm(int n, const double* p) {
  long double sum = 0;
  for (int i = 0; i < n; ++i) {
    if (__builtin_isinf(p[i])) return __builtin_infl(); // whatever the others, NaN included
    sum += static_cast<long double>(p[i]) * p[i];
  }
  return sqrtl(sum);
}
KF_FN double norm(int n, const double* p) { return static_cast<double>(kf_norm(n, p)); }
KF_FN double rnorm(int n, const double* p) { return static_cast<double>(1.0L / kf_norm(n, p)); }
KF_FN double norm3d(double a, double b, double c) {
  const double p[] = {a, b, c};
  return norm(3, p);
}
KF_FN double rnorm3d(double a, double b, double c) {
  const double p[] = {a, b, c};
  return rnorm(3, p);
}
KF_FN double norm4d(double a, double b, double c, double d) {
  const double p[] = {a, b, c, d};
  return norm(4, p);
}
KF_FN double rnorm4d(double a, double b, double c, double d) {
  const double p[] = {a, b, c, d};
  return rnorm(4, p);
}
KF_FN double rhypot(double a, double b) {
  const double p[] = {a, b};
  return rnorm(2, p);
}

// exp(x * x) * erfc(x): directly while erfc has its full precision, then by its continued fraction (Abramowitz and
// Stegun 7.1.14), which from 5 on is exact to double well before its 20th term.
KF_BIG double erfcx(double x) {
  if (x < 5.0) {
    double h = x * x, low = fma(x, x, -h);
    double e = exp(h);
    return __builtin_isinf(e) ? e : (e + e * low) * erfc(x);
  }
  double t = x;
  for (int k = 20; k > 0; --k) t = x + 0.5 * k / t;
  return 0.564189583547756286948 / t; // 1 / sqrt(pi)
}

// The standard normal distribution. The low part of x / sqrt(2) counts in the tail, where erfc is steep.
KF_BIG double normcdf(double x) {
  double t = -x * M_SQRT1_2;
  double low = fma(-x, M_SQRT1_2, -t) - x * -4.833646656726457e-17; // 1/sqrt(2) less M_SQRT1_2
  double v = erfc(t);
  if (__builtin_isfinite(t)) v -= 1.1283791670955126 * exp(-t * t) * low; // 2 / sqrt(pi)
  return 0.5 * v;
}

// Inverses by Halley's rule on erf and erfc, whose second derivative is -2x times the first.
KF_BIG double kf_erfinv_middle(double p) { // |p| <= 0.5
  double x = 0.886226925452758 * p * (1.0 + 0.2617993877991494 * p * p);
  for (int i = 0; i < 3; ++i) {
    double u = (erf(x) - p) / (1.1283791670955126 * exp(-x * x));
    x -= u / (1.0 + x * u);
  }
  return x;
}
KF_BIG double kf_erfcinv_tail(double q) { // 0 < q <= 0.5; starts from the asymptotic erfc(x) ~ exp(-x*x) / (x sqrt(pi))
  double l = -log(q), x = sqrt(l - 0.5 * log(M_PI * l));
  for (int i = 0; i < 5; ++i) {
    double u = (erfc(x) - q) / (-1.1283791670955126 * exp(-x * x));
    x -= u / (1.0 + x * u);
  }
  return x;
}
KF_BIG double erfinv(double p) {
  double a = __builtin_fabs(p);
  if (!(a < 1.0)) return a == 1.0 ? __builtin_copysign(__builtin_inf(), p) : __builtin_nan("");
  return a <= 0.5 ? kf_erfinv_middle(p) : __builtin_copysign(kf_erfcinv_tail(1.0 - a), p);
}
KF_BIG double erfcinv(double q) {
  if (!(q > 0.0 && q < 2.0)) return q == 0.0 ? __builtin_inf() : q == 2.0 ? -__builtin_inf() : __builtin_nan("");
  return q <= 0.5 ? kf_erfcinv_tail(q) : q >= 1.5 ? -kf_erfcinv_tail(2.0 - q) : kf_erfinv_middle(1.0 - q);
}
KF_FN double normcdfinv(double p) { return -M_SQRT2 * erfcinv(2.0 * p); }

// Modified Bessel functions of the first kind, by their power series: all terms are positive.
KF_BIG double kf_bessel_i(double x, int order) {
  long double q = 0.25L * x * x, term = order ? 0.5L * x : 1.0L, sum = term;
  for (int k = 1; k < 4000 && __builtin_fabsl(term) > 1e-22L * __builtin_fabsl(sum); ++k) {
    term *= q / (static_cast<long double>(k) * (k + order));
    sum += term;
  }
  return __builtin_isinf(x) ? __builtin_fabs(x) * (order && x < 0 ? -1 : 1) : static_cast<double>(sum);
}
KF_FN double cyl_bessel_i0(double x) { return kf_bessel_i(x, 0); }
KF_FN double cyl_bessel_i1(double x) { return kf_bessel_i(x, 1); }

// The float functions, through double and rounded once, and the overloads that C++ code calls by the plain name.
#define KF_FLOAT1(n)                                                                                                   \
  KF_FN float n##f(float x) { return static_cast<float>(n(static_cast<double>(x))); }                                  \
  KF_FN float n(float x) { return n##f(x); }
KF_FN float rsqrtf(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }
KF_FN float rsqrt(float x) { return rsqrtf(x); }
KF_FLOAT1(rcbrt)
KF_FLOAT1(erfcx)
KF_FLOAT1(normcdf)
KF_FLOAT1(erfinv)
KF_FLOAT1(erfcinv)
KF_FLOAT1(cyl_bessel_i0)
KF_FLOAT1(cyl_bessel_i1)
#undef KF_FLOAT1
KF_FN float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
KF_FN float sinpi(float x) { return sinpif(x); }
KF_FN float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
KF_FN float cospi(float x) { return cospif(x); }
KF_FN void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
KF_FN void sincospi(float x, float* s, float* c) { sincospif(x, s, c); }
KF_FN void sincos(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
KF_FN float exp10(float x) { return exp10f(x); }
KF_FN float normcdfinvf(float p) { return static_cast<float>(normcdfinv(static_cast<double>(p))); }
KF_FN float normcdfinv(float p) { return normcdfinvf(p); }
KF_FN float norm3df(float a, float b, float c) { return static_cast<float>(norm3d(a, b, c)); }
KF_FN float rnorm3df(float a, float b, float c) { return static_cast<float>(rnorm3d(a, b, c)); }
KF_FN float norm4df(float a, float b, float c, float d) { return static_cast<float>(norm4d(a, b, c, d)); }
KF_FN float rnorm4df(float a, float b, float c, float d) { return static_cast<float>(rnorm4d(a, b, c, d)); }
KF_FN float rhypotf(float a, float b) { return static_cast<float>(rhypot(a, b)); }
KF_FN float rhypot(float a, float b) { return rhypotf(a, b); }
KF_BIG float normf(int n, const float* p) {
  double sum = 0, inf = 0;
  for (int i = 0; i < n; ++i) {
    if (__builtin_isinf(p[i])) inf = __builtin_inf();
    sum += static_cast<double>(p[i]) * p[i];
  }
  return static_cast<float>(inf > 0 ? inf : __builtin_sqrt(sum));
}
KF_FN float rnormf(int n, const float* p) { return 1.0f / normf(n, p); }
KF_FN float fdividef(float a, float b) { return a / b; }
KF_FN float fdivide(float a, float b) { return a / b; }
KF_FN double fdivide(double a, double b) { return a / b; }
#define KF_FLOAT1(n)                                                                                                   \
  KF_FN float n(float x) { return n##f(x); }
KF_FLOAT1(j0)
KF_FLOAT1(j1)
KF_FLOAT1(y0)
KF_FLOAT1(y1)
#undef KF_FLOAT1
KF_FN float jn(int n, float x) { return jnf(n, x); }
KF_FN float yn(int n, float x) { return ynf(n, x); }

// math_constants.h.
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_bit_cast(float, 0x7fffffff)
#define CUDART_MIN_DENORM_F 0x1p-149f
#define CUDART_MAX_NORMAL_F FLT_MAX
#define CUDART_NEG_ZERO_F (-0.0f)
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
#define CUDART_SQRT_HALF_F 0.707106781f
#define CUDART_SQRT_HALF_HI_F 0.707106781f
#define CUDART_SQRT_HALF_LO_F 1.210161749e-08f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_THIRD_F 0.333333333f
#define CUDART_PIO4_F 0.785398163f
#define CUDART_PIO2_F 1.570796327f
#define CUDART_3PIO4_F 2.356194490f
#define CUDART_2_OVER_PI_F 0.636619772f
#define CUDART_SQRT_2_OVER_PI_F 0.797884561f
#define CUDART_PI_F 3.141592654f
#define CUDART_L2E_F 1.442695041f
#define CUDART_L2T_F 3.321928094f
#define CUDART_LG2_F 0.301029996f
#define CUDART_LGE_F 0.434294482f
#define CUDART_LN2_F 0.693147181f
#define CUDART_LNT_F 2.302585093f
#define CUDART_LNPI_F 1.144729886f
#define CUDART_TWO_TO_M126_F 0x1p-126f
#define CUDART_TWO_TO_126_F 0x1p126f
#define CUDART_NORM_HUGE_F 0x1.fffffep127f
#define CUDART_TWO_TO_23_F 8388608.0f
#define CUDART_TWO_TO_24_F 16777216.0f
#define CUDART_TWO_TO_31_F 2147483648.0f
#define CUDART_TWO_TO_32_F 4294967296.0f
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_bit_cast(double, 0xfff8000000000000ull)
#define CUDART_NEG_ZERO (-0.0)
#define CUDART_MIN_DENORM 0x1p-1074
#define CUDART_ZERO 0.0
#define CUDART_ONE 1.0
#define CUDART_SQRT_TWO 1.4142135623730951e+0
#define CUDART_SQRT_HALF 7.0710678118654757e-1
#define CUDART_THIRD 3.3333333333333331e-1
#define CUDART_TWOTHIRD 6.6666666666666667e-1
#define CUDART_PIO4 7.8539816339744828e-1
#define CUDART_PIO2 1.5707963267948966e+0
#define CUDART_3PIO4 2.3561944901923448e+0
#define CUDART_2_OVER_PI 6.3661977236758138e-1
#define CUDART_SQRT_2PI 2.5066282746310005e+0
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_L2E 1.4426950408889634e+0
#define CUDART_L2T 3.3219280948873622e+0
#define CUDART_LG2 3.0102999566398120e-1
#define CUDART_LGE 4.3429448190325182e-1
#define CUDART_LN2 6.9314718055994529e-1
#define CUDART_LNT 2.3025850929940459e+0
#define CUDART_LNPI 1.1447298858494002e+0
#define CUDART_LN2_X_1024 7.0978271289338397e+2
#define CUDART_LN2_X_1025 7.1047586007394398e+2
#define CUDART_LN2_X_1075 7.4513321910194122e+2
#define CUDART_LG2_X_1024 3.0825471555991675e+2
#define CUDART_LG2_X_1075 3.2360724533877976e+2
#define CUDART_TWO_TO_23 8388608.0
#define CUDART_TWO_TO_52 0x1p52
#define CUDART_TWO_TO_53 0x1p53
#define CUDART_TWO_TO_54 0x1p54
#define CUDART_TWO_TO_M54 0x1p-54
#define CUDART_TWO_TO_M1022 0x1p-1022
// The same to twice the precision: the rounded value, and what it lacks.
#define CUDART_SQRT_HALF_HI 0.70710678118654757
#define CUDART_SQRT_HALF_LO -4.8336466567264567e-17
#define CUDART_PIO4_HI 0.78539816339744828
#define CUDART_PIO4_LO 3.061616997868383e-17
#define CUDART_PIO2_HI 1.5707963267948966
#define CUDART_PIO2_LO 6.123233995736766e-17
#define CUDART_PI_HI 3.1415926535897931
#define CUDART_PI_LO 1.2246467991473532e-16
#define CUDART_SQRT_2PI_HI 2.5066282746310007
#define CUDART_SQRT_2PI_LO -1.8328579980459167e-16
#define CUDART_SQRT_PIO2_HI 1.2533141373155003
#define CUDART_SQRT_PIO2_LO -9.1642899902295834e-17
#define CUDART_L2E_HI 1.4426950408889634
#define CUDART_L2E_LO 2.0355273740931033e-17
#define CUDART_LG2_HI 0.3010299956639812
#define CUDART_LG2_LO -2.8037281277851704e-18
#define CUDART_LGE_HI 0.43429448190325182
#define CUDART_LGE_LO 1.0983196502167651e-17
#define CUDART_LN2_HI 0.69314718055994529
#define CUDART_LN2_LO 2.3190468138462996e-17
#define CUDART_LNT_HI 2.3025850929940459
#define CUDART_LNT_LO -2.1707562233822494e-16
#define CUDART_SQRT_PIO2 1.2533141373155003
#define CUDART_SQRT_2OPI 0.79788456080286541
