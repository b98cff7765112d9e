// One call of each CUDA spelling the headers promise, typed as CUDA types it. Compiled, not run; `must` makes the
// result's type part of the promise. Kernels use the names without a namespace, so that is how they stand here.
#include "kf_bf16.h"
#include "kf_fp8.h"
#include "kf_half.h"
#include "kf_intrinsics.h"
#include "kf_math.h"
#include "kf_mma_values.h"
#include "kf_simd.h"
#include "kf_vector_types.h"
// A program may read the C++ header after the prelude, and bring std in.
#include <cmath>
#include <algorithm>

template <class Want, class Got> struct Same;
template <class T> struct Same<T, T> {};
#define must(T, ...) { auto value = __VA_ARGS__; (void)value; (void)sizeof(Same<T, decltype(value)>); }

#define NARROW(T, T2, n, n2)                                                                                           \
  __global__ void n##_spellings(T a, T b, T c, T2 p, T2 q, T2 r, float f, double d, float2 f2, int i, long long ll) {  \
    must(T, __float2##n(f)) must(T, __float2##n##_rn(f)) must(T, __float2##n##_rz(f)) must(T, __float2##n##_ru(f))     \
    must(T, __float2##n##_rd(f)) must(T, __double2##n(d)) must(float, __##n##2float(a))                                \
    must(T2, __float2##n2##_rn(f)) must(T2, __floats2##n2##_rn(f, f)) must(T2, __float22##n2##_rn(f2))                 \
    must(float2, __##n2##2float2(p)) must(float, __low2float(p)) must(float, __high2float(p))                          \
    must(T2, __##n##2##n2(a)) must(T2, __halves2##n2(a, b)) must(T2, make_##n2(a, b)) must(T, __low2##n(p))            \
    must(T, __high2##n(p)) must(T2, __low2##n2(p)) must(T2, __high2##n2(p)) must(T2, __lows2##n2(p, q))                \
    must(T2, __highs2##n2(p, q)) must(T2, __lowhigh2highlow(p))                                                        \
    must(short, __##n##_as_short(a)) must(unsigned short, __##n##_as_ushort(a)) must(T, __short_as_##n(short(1)))      \
    must(T, __ushort_as_##n((unsigned short)1))                                                                        \
    must(int, __##n##2int_rn(a)) must(int, __##n##2int_rz(a)) must(int, __##n##2int_ru(a)) must(int, __##n##2int_rd(a))\
    must(unsigned, __##n##2uint_rn(a)) must(short, __##n##2short_rz(a)) must(unsigned short, __##n##2ushort_ru(a))     \
    must(long long, __##n##2ll_rd(a)) must(unsigned long long, __##n##2ull_rn(a)) must(signed char, __##n##2char_rz(a))\
    must(unsigned char, __##n##2uchar_rz(a)) must(T, __int2##n##_rn(i)) must(T, __uint2##n##_rz(1u))                   \
    must(T, __short2##n##_ru(short(1))) must(T, __ushort2##n##_rd((unsigned short)1)) must(T, __ll2##n##_rn(ll))       \
    must(T, __ull2##n##_rz(1ull))                                                                                      \
    must(T, __hadd(a, b)) must(T, __hsub(a, b)) must(T, __hmul(a, b)) must(T, __hdiv(a, b)) must(T, __hadd_rn(a, b))   \
    must(T, __hsub_rn(a, b)) must(T, __hmul_rn(a, b)) must(T, __hadd_sat(a, b)) must(T, __hsub_sat(a, b))              \
    must(T, __hmul_sat(a, b)) must(T, __hfma(a, b, c)) must(T, __hfma_sat(a, b, c)) must(T, __hfma_relu(a, b, c))      \
    must(T, __hneg(a)) must(T, __habs(a)) must(T2, __hadd2(p, q)) must(T2, __hsub2(p, q)) must(T2, __hmul2(p, q))      \
    must(T2, __h2div(p, q)) must(T2, __hadd2_rn(p, q)) must(T2, __hsub2_rn(p, q)) must(T2, __hmul2_rn(p, q))           \
    must(T2, __hadd2_sat(p, q)) must(T2, __hsub2_sat(p, q)) must(T2, __hmul2_sat(p, q)) must(T2, __hfma2(p, q, r))     \
    must(T2, __hfma2_sat(p, q, r)) must(T2, __hfma2_relu(p, q, r)) must(T2, __hneg2(p)) must(T2, __habs2(p))           \
    must(T2, __hcmadd(p, q, r)) must(bool, __hisnan(a)) must(int, __hisinf(a)) must(T2, __hisnan2(p))                  \
    must(bool, __heq(a, b)) must(bool, __hne(a, b)) must(bool, __hlt(a, b)) must(bool, __hle(a, b))                    \
    must(bool, __hgt(a, b)) must(bool, __hge(a, b)) must(bool, __hequ(a, b)) must(bool, __hneu(a, b))                  \
    must(bool, __hltu(a, b)) must(bool, __hleu(a, b)) must(bool, __hgtu(a, b)) must(bool, __hgeu(a, b))                \
    must(T2, __heq2(p, q)) must(T2, __hne2(p, q)) must(T2, __hlt2(p, q)) must(T2, __hle2(p, q)) must(T2, __hgt2(p, q)) \
    must(T2, __hge2(p, q)) must(T2, __hequ2(p, q)) must(T2, __hneu2(p, q)) must(T2, __hltu2(p, q))                     \
    must(T2, __hleu2(p, q)) must(T2, __hgtu2(p, q)) must(T2, __hgeu2(p, q)) must(bool, __hbeq2(p, q))                  \
    must(bool, __hbne2(p, q)) must(bool, __hblt2(p, q)) must(bool, __hble2(p, q)) must(bool, __hbgt2(p, q))            \
    must(bool, __hbge2(p, q)) must(bool, __hbequ2(p, q)) must(bool, __hbneu2(p, q)) must(bool, __hbltu2(p, q))         \
    must(bool, __hbleu2(p, q)) must(bool, __hbgtu2(p, q)) must(bool, __hbgeu2(p, q))                                   \
    must(unsigned, __heq2_mask(p, q)) must(unsigned, __hgtu2_mask(p, q)) must(T, __hmax(a, b)) must(T, __hmin(a, b))   \
    must(T, __hmax_nan(a, b)) must(T, __hmin_nan(a, b)) must(T2, __hmax2(p, q)) must(T2, __hmin2(p, q))                \
    must(T2, __hmax2_nan(p, q)) must(T2, __hmin2_nan(p, q))                                                            \
    must(T, hsqrt(a)) must(T, hrsqrt(a)) must(T, hrcp(a)) must(T, hlog(a)) must(T, hlog2(a)) must(T, hlog10(a))        \
    must(T, hexp(a)) must(T, hexp2(a)) must(T, hexp10(a)) must(T, hsin(a)) must(T, hcos(a)) must(T, htanh(a))          \
    must(T, htanh_approx(a)) must(T, hfloor(a)) must(T, hceil(a)) must(T, htrunc(a)) must(T, hrint(a))                 \
    must(T2, h2sqrt(p)) must(T2, h2rsqrt(p)) must(T2, h2rcp(p)) must(T2, h2log(p)) must(T2, h2log2(p))                 \
    must(T2, h2log10(p)) must(T2, h2exp(p)) must(T2, h2exp2(p)) must(T2, h2exp10(p)) must(T2, h2sin(p))                \
    must(T2, h2cos(p)) must(T2, h2tanh(p)) must(T2, h2floor(p)) must(T2, h2ceil(p)) must(T2, h2trunc(p))               \
    must(T2, h2rint(p)) must(T2, h2tanh_approx(p))                                                                     \
    must(T, a + b) must(T, a - b) must(T, a * b) must(T, a / b) must(T, -a) must(T, +a) must(T2, p + q)                \
    must(T2, p - q) must(T2, p * q) must(T2, p / q) must(T2, -p) must(bool, a < b) must(bool, p == q)                  \
    a += b, a -= b, a *= b, a /= b, ++a, --a, a++, a--, p += q, p -= q, p *= q, p /= q, ++p, --p, p++, p--;            \
    a = f, a = 1.0f, a = 0.5, a = 1, a = i, a = T(ll), a = (T)f, f = a, i = (int)a, d = static_cast<double>(float(a)); \
    if (a) b = c;                                                                                                      \
    p = T2(a, b), p = {a, b}, p.x = b, f += float(p.y), f = static_cast<float>(a) * f;                                 \
    __attribute__((unused)) T list[2] = {T(1.0f), b};                                                                  \
    union { T2 pair; unsigned word; } as{p};                                                                           \
    (void)as.word;                                                                                                     \
  }
NARROW(__half, __half2, half, half2)
NARROW(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)

__global__ void aliases(half a, half2 b, nv_bfloat16 c, nv_bfloat162 d, __half_raw e, __half2_raw f,
                        __nv_bfloat16_raw g) {
  a = e, b = f, c = g, e = a, f = b, g = c, e.x = 1, f.y = 2;
  must(half, CUDART_INF_FP16) must(nv_bfloat16, CUDART_ONE_BF16) must(nv_bfloat162, d + d)
  must(half, half(c)) must(nv_bfloat16, nv_bfloat16(a))
}

__global__ void eight_bits(float f, double d, float2 f2, float4 f4, half h, half2 h2, nv_bfloat16 b, nv_bfloat162 b2) {
  must(__nv_fp8_storage_t, __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3))
  must(__nv_fp8_storage_t, __nv_cvt_double_to_fp8(d, __NV_NOSAT, __NV_E5M2))
  must(__nv_fp8_storage_t, __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, __NV_E4M3))
  must(__nv_fp8_storage_t, __nv_cvt_bfloat16raw_to_fp8(b, __NV_SATFINITE, __NV_E4M3))
  must(__nv_fp8x2_storage_t, __nv_cvt_float2_to_fp8x2(f2, __NV_SATFINITE, __NV_E4M3))
  must(__nv_fp8x2_storage_t, __nv_cvt_halfraw2_to_fp8x2(h2, __NV_SATFINITE, __NV_E4M3))
  must(__nv_fp8x2_storage_t, __nv_cvt_bfloat16raw2_to_fp8x2(b2, __NV_SATFINITE, __NV_E4M3))
  must(__half_raw, __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(1), __NV_E4M3))
  must(__half2_raw, __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t(1), __NV_E5M2))
  __nv_fp8_e4m3 e(f);
  __nv_fp8_e5m2 g(h);
  must(float, float(e)) must(half, half(g)) must(nv_bfloat16, nv_bfloat16(e)) must(int, int(g)) must(double, double(e))
  e = __nv_fp8_e4m3(b), e = __nv_fp8_e4m3(3), g = __nv_fp8_e5m2(d), e.__x = 1;
  must(float2, float2(__nv_fp8x2_e4m3(f2))) must(half2, half2(__nv_fp8x2_e5m2(h2)))
  must(float4, float4(__nv_fp8x4_e4m3(f4)))
  must(__nv_fp8_storage_t, __nv_cvt_float_to_e8m0(f, __NV_SATFINITE, cudaRoundPosInf))
  must(float, float(__nv_fp8_e8m0(f)))
  must(float4, float4(__nv_fp8x4_e5m2(h2, h2))) must(float, __float_to_tf32(f)) must(float, kf_mma_wide(e))
}

__global__ void mathematics(float x, float y, float* s, float* c, double d, double* ds, double* dc, int i,
                            unsigned u, const float* v) {
  must(float, rsqrtf(x)) must(float, rsqrt(x)) must(double, rsqrt(d)) must(float, rcbrtf(x)) must(double, rcbrt(d))
  must(float, sinpif(x)) must(float, cospif(x)) must(double, sinpi(d)) must(float, cospi(x)) must(float, exp10f(x))
  must(float, exp10(x)) must(double, exp10(d)) must(float, erfinvf(x)) must(double, erfinv(d)) must(float, erfcinvf(x))
  must(double, erfcinv(d)) must(float, erfcxf(x)) must(double, erfcx(d)) must(float, normcdff(x))
  must(double, normcdf(d))
  must(float, normcdfinvf(x)) must(double, normcdfinv(d)) must(float, norm3df(x, x, x)) must(double, norm3d(d, d, d))
  must(float, norm4df(x, x, x, x)) must(double, norm4d(d, d, d, d)) must(float, rnorm3df(x, x, x))
  must(double, rnorm3d(d, d, d)) must(float, rnorm4df(x, x, x, x)) must(double, rnorm4d(d, d, d, d))
  must(float, normf(3, v))
  must(float, rnormf(3, v)) must(double, norm(1, ds)) must(double, rnorm(1, ds)) must(float, rhypotf(x, y))
  must(double, rhypot(d, d)) must(float, fdividef(x, y)) must(float, cyl_bessel_i0f(x)) must(double, cyl_bessel_i1(d))
  sincospif(x, s, c), sincospi(d, ds, dc), sincosf(x, s, c), sincos(x, s, c), sincos(d, ds, dc), sincospi(x, s, c);
  must(float, sinf(x)) must(float, cosf(x)) must(float, tanf(x)) must(float, expf(x)) must(float, exp2f(x))
  must(float, expm1f(x))
  must(float, logf(x)) must(float, log2f(x)) must(float, log10f(x)) must(float, log1pf(x)) must(float, powf(x, y))
  must(float, sqrtf(x)) must(float, cbrtf(x)) must(float, hypotf(x, y)) must(float, tanhf(x)) must(float, sinhf(x))
  must(float, coshf(x)) must(float, asinf(x)) must(float, acosf(x)) must(float, atanf(x)) must(float, atan2f(x, y))
  must(float, asinhf(x)) must(float, acoshf(x)) must(float, atanhf(x)) must(float, erff(x)) must(float, erfcf(x))
  must(float, tgammaf(x)) must(float, lgammaf(x)) must(float, floorf(x)) must(float, ceilf(x)) must(float, truncf(x))
  must(float, roundf(x)) must(float, rintf(x)) must(float, nearbyintf(x)) must(long, lrintf(x)) must(long, lroundf(x))
  must(long long, llrintf(x)) must(float, fabsf(x)) must(float, fmaf(x, y, x)) must(float, fmaxf(x, y))
  must(float, fminf(x, y))
  must(float, fmodf(x, y)) must(float, remainderf(x, y)) must(float, copysignf(x, y)) must(float, fdimf(x, y))
  must(float, ldexpf(x, i)) must(float, scalbnf(x, i)) must(float, frexpf(x, &i)) must(float, modff(x, s))
  must(int, ilogbf(x))
  must(float, logbf(x)) must(float, nextafterf(x, y)) must(float, j0f(x)) must(float, y1f(x))
  must(float, jnf(2, x)) must(float, j0(x))
  must(float, sqrt(x)) must(double, sqrt(d)) must(float, exp(x)) must(float, log(x)) must(float, fabs(x))
  must(float, abs(x))
  must(int, abs(i)) must(float, pow(x, y)) must(float, floor(x)) must(float, fma(x, y, x)) must(float, tanh(x))
  must(long long, llabs(1ll))
  must(bool, isnan(x)) must(bool, isinf(x)) must(bool, isfinite(d)) must(bool, signbit(x))
  must(float, max(x, y)) must(double, max(x, d)) must(double, min(d, x)) must(int, max(i, 3)) must(unsigned, min(i, u))
  must(unsigned long long, max(1ull, 2ll)) must(long, min(1l, 2l)) must(int, max(short(1), short(2)))
  must(unsigned long, min(sizeof(i), 4ul))
  must(unsigned, umin(u, u)) must(long long, llmax(1, 2)) must(unsigned long long, ullmin(1, 2))
  must(float, std::max(x, y))
  must(float, INFINITY) must(float, NAN) must(float, FLT_MAX) must(float, FLT_MIN) must(float, FLT_EPSILON)
  must(double, DBL_MAX)
  must(int, INT_MAX) must(unsigned, UINT_MAX) must(double, M_PI) must(float, HUGE_VALF) must(float, CUDART_INF_F)
  must(float, CUDART_NAN_F) must(float, CUDART_PI_F) must(double, CUDART_INF) must(double, CUDART_NAN)
  must(float, CUDART_L2E_F)
}

__global__ void intrinsics(float x, float y, float z, float* s, float* c, double d, double e, int i, int j,
                           unsigned u, unsigned w, long long l, unsigned long long m) {
  must(float, __expf(x)) must(float, __exp10f(x)) must(float, __logf(x)) must(float, __log2f(x))
  must(float, __log10f(x))
  must(float, __powf(x, y)) must(float, __sin2pif(x)) must(float, __cos2pif(x)) must(float, __sinf(x))
  must(float, __cosf(x)) must(float, __tanf(x)) must(float, __tanhf(x))
  must(float, __fdividef(x, y)) must(float, __saturatef(x)) must(float, __frsqrt_rn(x))
  __sincosf(x, s, c);
#define MODES1(T, n, ...)                                                                                              \
  must(T, n##_rn(__VA_ARGS__)) must(T, n##_rz(__VA_ARGS__)) must(T, n##_ru(__VA_ARGS__)) must(T, n##_rd(__VA_ARGS__))
  MODES1(float, __fadd, x, y) MODES1(float, __fsub, x, y) MODES1(float, __fmul, x, y) MODES1(float, __fdiv, x, y)
  MODES1(float, __fmaf, x, y, z) MODES1(float, __frcp, x) MODES1(float, __fsqrt, x) MODES1(double, __dadd, d, e)
  MODES1(double, __dsub, d, e) MODES1(double, __dmul, d, e) MODES1(double, __ddiv, d, e) MODES1(double, __fma, d, e, d)
  MODES1(double, __drcp, d) MODES1(double, __dsqrt, d) MODES1(float, __double2float, d) MODES1(int, __float2int, x)
  MODES1(unsigned, __float2uint, x) MODES1(long long, __float2ll, x) MODES1(unsigned long long, __float2ull, x)
  MODES1(int, __double2int, d) MODES1(unsigned, __double2uint, d) MODES1(long long, __double2ll, d)
  MODES1(unsigned long long, __double2ull, d) MODES1(float, __int2float, i) MODES1(float, __uint2float, u)
  MODES1(float, __ll2float, l) MODES1(float, __ull2float, m) MODES1(double, __ll2double, l)
  MODES1(double, __ull2double, m)
  must(double, __int2double_rn(i)) must(double, __uint2double_rn(u)) must(int, __float_as_int(x))
  must(unsigned, __float_as_uint(x))
  must(float, __int_as_float(i)) must(float, __uint_as_float(u)) must(long long, __double_as_longlong(d))
  must(double, __longlong_as_double(l)) must(int, __double2hiint(d)) must(int, __double2loint(d))
  must(double, __hiloint2double(i, j))
  must(int, __mul24(i, j)) must(unsigned, __umul24(u, w)) must(int, __mulhi(i, j)) must(unsigned, __umulhi(u, w))
  must(long long, __mul64hi(l, l)) must(unsigned long long, __umul64hi(m, m)) must(unsigned, __sad(i, j, u))
  must(unsigned, __usad(u, w, u)) must(int, __hadd(i, j)) must(int, __rhadd(i, j)) must(unsigned, __uhadd(u, w))
  must(unsigned, __urhadd(u, w)) must(int, __popc(u)) must(int, __popcll(m)) must(int, __clz(i)) must(int, __clzll(l))
  must(int, __ffs(i)) must(int, __ffsll(l)) must(unsigned, __brev(u)) must(unsigned long long, __brevll(m))
  must(unsigned, __byte_perm(u, w, 0x3210)) must(unsigned, __funnelshift_l(u, w, u))
  must(unsigned, __funnelshift_r(u, w, u))
  must(unsigned, __funnelshift_lc(u, w, u)) must(unsigned, __funnelshift_rc(u, w, u)) must(unsigned, __fns(u, 0, 1))
  must(int, __dp4a(i, j, i)) must(unsigned, __dp4a(u, w, u)) must(int, __dp4a(char4(), char4(), i))
  must(unsigned, __dp4a(uchar4(), uchar4(), u)) must(int, __dp2a_lo(i, j, i)) must(unsigned, __dp2a_hi(u, w, u))
  must(int, __dp2a_hi(short2(), char4(), i))
#define LANES1(n) must(unsigned, n##2(u)) must(unsigned, n##4(u))
#define LANES2(n) must(unsigned, n##2(u, w)) must(unsigned, n##4(u, w))
  LANES1(__vabs) LANES1(__vabsss) LANES1(__vneg) LANES1(__vnegss)
  LANES2(__vadd) LANES2(__vaddss) LANES2(__vaddus) LANES2(__vsub) LANES2(__vsubss) LANES2(__vsubus) LANES2(__vabsdiffs)
  LANES2(__vabsdiffu) LANES2(__vavgs) LANES2(__vavgu) LANES2(__vhaddu) LANES2(__vmaxs) LANES2(__vmaxu) LANES2(__vmins)
  LANES2(__vminu) LANES2(__vsads) LANES2(__vsadu) LANES2(__vcmpeq) LANES2(__vcmpne) LANES2(__vcmpgts) LANES2(__vcmpgtu)
  LANES2(__vcmpges) LANES2(__vcmpgeu) LANES2(__vcmplts) LANES2(__vcmpltu) LANES2(__vcmples) LANES2(__vcmpleu)
  LANES2(__vseteq) LANES2(__vsetne) LANES2(__vsetgts) LANES2(__vsetgtu) LANES2(__vsetges) LANES2(__vsetgeu)
  LANES2(__vsetlts)
  LANES2(__vsetltu) LANES2(__vsetles) LANES2(__vsetleu)
  must(int, __vimax3_s32(i, j, i)) must(unsigned, __viaddmin_u32(u, w, u)) must(unsigned, __vimax3_u16x2(u, w, u))
  must(unsigned, __vimin3_s16x2(u, w, u)) must(int, __viaddmax_s32_relu(i, j, i))
  must(unsigned, __viaddmax_s16x2_relu(u, w, u))
  bool high, low;
  must(unsigned, __vibmax_s16x2(u, w, &high, &low)) must(int, __vibmin_s32(i, j, &low))
}

#define VECTORS(N, T)                                                                                                  \
  must(N##1, make_##N##1(zero<T>())) must(N##2, make_##N##2(zero<T>(), zero<T>()))                                     \
  must(N##3, make_##N##3(zero<T>(), zero<T>(), zero<T>()))                                                             \
  must(N##4, make_##N##4(zero<T>(), zero<T>(), zero<T>(), zero<T>())) {                                                \
    N##4 v = {1, 2, 3, 4};                                                                                             \
    (void)(v.x + v.y + v.z + v.w);                                                                                     \
  }
template <class T> T zero() { return T(); }
__global__ void vectors(dim3 grid, uint3 index) {
  VECTORS(char, signed char) VECTORS(uchar, unsigned char) VECTORS(short, short) VECTORS(ushort, unsigned short)
  VECTORS(int, int) VECTORS(uint, unsigned) VECTORS(long, long) VECTORS(ulong, unsigned long)
  VECTORS(longlong, long long)
  VECTORS(ulonglong, unsigned long long) VECTORS(float, float) VECTORS(double, double)
  grid = dim3(1, 2), grid = 4, index = grid, grid = index;
  must(double4_32a, make_double4_32a(1, 2, 3, 4)) must(long4_16a, make_long4_16a(1, 2, 3, 4))
}

// Kernels that say `using namespace std` still mean the device's functions.
using namespace std;
__device__ float mixed(float x, int i) {
  return max(x, 0.0f) + min(i, 3) + sqrt(x) + max<float>(x, 1.0f) + rsqrt(x) + abs(x);
}
