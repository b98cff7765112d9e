// Arithmetic and conversions in a stated rounding mode: against the processor's own modes, against exact values where a
// wider format holds them, and at the edges of the integers.
#include "check.h"
#include "kf_half.h"
#include "kf_bf16.h"
#include "kf_intrinsics.h"
#include "kf_mma_values.h"
#include <fenv.h>

static float random_float() {
  uint64_t r = draw();
  uint32_t u = static_cast<uint32_t>(r);
  if (r >> 62 == 0) u = (u & 0x80ffffff) | 0x3f000000; // near 1
  if (r >> 60 == 7) u &= 0x807fffff;                    // subnormal
  if (r >> 58 == 63) u |= 0x7f800000;                   // not finite
  return as<float>(u);
}
static double random_double() {
  uint64_t r = draw(), u = draw();
  if (r & 1) u = (u & 0x801fffffffffffffull) | 0x3fe0000000000000ull;
  if (r % 16 == 2) u &= 0x800fffffffffffffull;
  if (r % 64 == 4) u |= 0x7ff0000000000000ull;
  return as<double>(u);
}
static bool same(float a, float b) { return a != a ? b != b : as<uint32_t>(a) == as<uint32_t>(b); }
static bool same(double a, double b) { return a != a ? b != b : as<uint64_t>(a) == as<uint64_t>(b); }
static int fe(char mode) {
  return mode == 'n' ? FE_TONEAREST : mode == 'z' ? FE_TOWARDZERO : mode == 'u' ? FE_UPWARD : FE_DOWNWARD;
}
// The expression under the processor's mode; volatile operands keep it from being computed earlier.
#define UNDER(mode, T, expression)                                                                                     \
  [&] {                                                                                                                \
    fesetround(fe(mode));                                                                                              \
    volatile T r = expression;                                                                                         \
    fesetround(FE_TONEAREST);                                                                                          \
    return static_cast<T>(r);                                                                                          \
  }()
#define ALL(T, name, expression, ...)                                                                                  \
  {                                                                                                                    \
    T n = name##_rn(__VA_ARGS__), z = name##_rz(__VA_ARGS__), u = name##_ru(__VA_ARGS__), d = name##_rd(__VA_ARGS__);  \
    CHECK(same(n, UNDER('n', T, expression)) && same(z, UNDER('z', T, expression)) &&                                  \
              same(u, UNDER('u', T, expression)) && same(d, UNDER('d', T, expression)),                                \
          #name " %a %a %a", static_cast<double>(va), static_cast<double>(vb), static_cast<double>(vc));               \
    CHECK(n != n || (d <= n && n <= u && (z == d || z == u) && (d == u || nextafter(d, u) == u)), #name " order");     \
    CHECK(fegetround() == FE_TONEAREST, #name " left the mode changed");                                               \
  }

static void floats() {
  for (int i = 0; i < 100000; ++i) {
    float a = random_float(), b = i % 8 ? random_float() : a, c = i % 4 ? random_float() : -a * b;
    volatile float va = a, vb = b, vc = c;
    ALL(float, __fadd, va + vb, a, b)
    ALL(float, __fsub, va - vb, a, b)
    ALL(float, __fmul, va* vb, a, b)
    ALL(float, __fdiv, va / vb, a, b)
    ALL(float, __fmaf, fmaf(va, vb, vc), a, b, c)
    ALL(float, __frcp, 1.0f / va, a)
    ALL(float, __fsqrt, sqrtf(va), a)
    // A product of floats is exact in double, a sum of like size in the x87 format.
    double product = static_cast<double>(a) * b;
    if (isfinite(product)) {
      for (char mode : {'n', 'z', 'u', 'd'}) {
        float got = mode == 'n'   ? __fmul_rn(a, b)
                    : mode == 'z' ? __fmul_rz(a, b)
                    : mode == 'u' ? __fmul_ru(a, b)
                                  : __fmul_rd(a, b);
        long double want = round_to(product, 24, -149, mode);
        CHECK(isinf(got) || fabsl(want) > static_cast<long double>(FLT_MAX) || got == want, "%a * %a %c",
              static_cast<double>(a), static_cast<double>(b), mode);
      }
    }
    if (a > 0 && isfinite(a)) {
      // The midpoints beside 1 / sqrt(a), to 128 bits: m is right of it if m * m * a > 1.
      float r = __frsqrt_rn(a);
      __float128 low = (static_cast<__float128>(r) + nextafterf(r, 0.0f)) / 2,
                 high = (static_cast<__float128>(r) + nextafterf(r, INFINITY)) / 2;
      CHECK(low * low * a < 1 && high * high * a > 1, "rsqrt %a", static_cast<double>(a));
    }
  }
}
static void doubles() {
  for (int i = 0; i < 100000; ++i) {
    double a = random_double(), b = i % 8 ? random_double() : a, c = i % 4 ? random_double() : -a * b;
    volatile double va = a, vb = b, vc = c;
    ALL(double, __dadd, va + vb, a, b)
    ALL(double, __dsub, va - vb, a, b)
    ALL(double, __dmul, va* vb, a, b)
    ALL(double, __ddiv, va / vb, a, b)
    ALL(double, __fma, fma(va, vb, vc), a, b, c)
    ALL(double, __drcp, 1.0 / va, a)
    ALL(double, __dsqrt, sqrt(va), a)
    ALL(float, __double2float, static_cast<float>(va), a)
  }
}

// Floating point to integers: the mathematical result, clamped; NaN as PTX ISA 9.0 (cvt) says.
template <class I> static I clamped(long double v, char mode, I least, I most, bool wide_nan) {
  if (v != v) return wide_nan ? static_cast<I>(uint64_t(1) << (8 * sizeof(I) - 1)) : I(0);
  v = mode == 'n' ? rintl(v) : mode == 'z' ? truncl(v) : mode == 'u' ? ceill(v) : floorl(v);
  return v <= static_cast<long double>(least) ? least : v >= static_cast<long double>(most) ? most : static_cast<I>(v);
}
#define TO_INT(name, I, v, least, most, wide)                                                                          \
  CHECK(name##_rn(v) == clamped<I>(v, 'n', least, most, wide) &&                                                       \
            name##_rz(v) == clamped<I>(v, 'z', least, most, wide) &&                                                   \
            name##_ru(v) == clamped<I>(v, 'u', least, most, wide) &&                                                   \
            name##_rd(v) == clamped<I>(v, 'd', least, most, wide),                                                     \
        #name " %a", static_cast<double>(v));
static void to_integers(double d) {
  float f = static_cast<float>(d);
  TO_INT(__float2int, int, f, INT_MIN, INT_MAX, false)
  TO_INT(__float2uint, unsigned, f, 0u, UINT_MAX, false)
  TO_INT(__float2ll, long long, f, LLONG_MIN, LLONG_MAX, true)
  TO_INT(__float2ull, unsigned long long, f, 0ull, ULLONG_MAX, true)
  TO_INT(__double2int, int, d, INT_MIN, INT_MAX, true)
  TO_INT(__double2uint, unsigned, d, 0u, UINT_MAX, true)
  TO_INT(__double2ll, long long, d, LLONG_MIN, LLONG_MAX, true)
  TO_INT(__double2ull, unsigned long long, d, 0ull, ULLONG_MAX, true)
}
#define TO_INT16(name, I, v, least, most, wide)                                                                        \
  CHECK(name##_rn(v) == clamped<I>(w, 'n', least, most, wide) &&                                                       \
            name##_rz(v) == clamped<I>(w, 'z', least, most, wide) &&                                                   \
            name##_ru(v) == clamped<I>(w, 'u', least, most, wide) &&                                                   \
            name##_rd(v) == clamped<I>(w, 'd', least, most, wide),                                                     \
        #name " %a", static_cast<double>(w));
static void narrow_to_integers() {
  for (unsigned p = 0; p < 0x10000; ++p) {
    __half h = __ushort_as_half(static_cast<unsigned short>(p));
    __nv_bfloat16 b = __ushort_as_bfloat16(static_cast<unsigned short>(p));
    float w = __half2float(h);
    TO_INT16(__half2short, short, h, SHRT_MIN, SHRT_MAX, false)
    TO_INT16(__half2ushort, unsigned short, h, 0, USHRT_MAX, false)
    TO_INT16(__half2int, int, h, INT_MIN, INT_MAX, false)
    TO_INT16(__half2uint, unsigned, h, 0u, UINT_MAX, false)
    TO_INT16(__half2ll, long long, h, LLONG_MIN, LLONG_MAX, true)
    TO_INT16(__half2ull, unsigned long long, h, 0ull, ULLONG_MAX, true)
    CHECK(__half2char_rz(h) == clamped<signed char>(w, 'z', SCHAR_MIN, SCHAR_MAX, false), "%04x", p);
    CHECK(__half2uchar_rz(h) == clamped<unsigned char>(w, 'z', 0, UCHAR_MAX, false), "%04x", p);
    w = __bfloat162float(b);
    TO_INT16(__bfloat162short, short, b, SHRT_MIN, SHRT_MAX, false)
    TO_INT16(__bfloat162int, int, b, INT_MIN, INT_MAX, false)
    TO_INT16(__bfloat162uint, unsigned, b, 0u, UINT_MAX, false)
    TO_INT16(__bfloat162ll, long long, b, LLONG_MIN, LLONG_MAX, true)
    TO_INT16(__bfloat162ull, unsigned long long, b, 0ull, ULLONG_MAX, true)
  }
}

// Integers to floating point: the x87 format holds every 64-bit integer.
static bool agrees(long double v, int bits, char mode, long double largest, long double got) {
  long double want = round_to(v, bits, -2000, mode);
  if (fabsl(want) > largest) {
    bool stays = mode == 'z' || (mode == 'u' && v < 0) || (mode == 'd' && v > 0);
    want = stays ? copysignl(largest, v) : copysignl(INFINITY, v);
  }
  return got == want;
}
#define FROM_INT(N, S, i, bits, largest, wide)                                                                         \
  CHECK(agrees(i, bits, 'n', largest, wide(__##N##2##S##_rn(i))) &&                                                    \
            agrees(i, bits, 'z', largest, wide(__##N##2##S##_rz(i))) &&                                                \
            agrees(i, bits, 'u', largest, wide(__##N##2##S##_ru(i))) &&                                                \
            agrees(i, bits, 'd', largest, wide(__##N##2##S##_rd(i))),                                                  \
        #N " to " #S " %lld", static_cast<long long>(i));
static void from_integers(uint64_t raw) {
  long long ll = static_cast<long long>(raw);
  unsigned long long ull = raw;
  int i = static_cast<int>(raw);
  unsigned u = static_cast<unsigned>(raw);
  FROM_INT(int, float, i, 24, FLT_MAX, static_cast<long double>)
  FROM_INT(uint, float, u, 24, FLT_MAX, static_cast<long double>)
  FROM_INT(ll, float, ll, 24, FLT_MAX, static_cast<long double>)
  FROM_INT(ull, float, ull, 24, FLT_MAX, static_cast<long double>)
  FROM_INT(ll, double, ll, 53, DBL_MAX, static_cast<long double>)
  FROM_INT(ull, double, ull, 53, DBL_MAX, static_cast<long double>)
  FROM_INT(int, half, i, 11, 65504, __half2float)
  FROM_INT(uint, half, u, 11, 65504, __half2float)
  FROM_INT(ll, half, ll, 11, 65504, __half2float)
  FROM_INT(ull, half, ull, 11, 65504, __half2float)
  FROM_INT(int, bfloat16, i, 8, FLT_MAX, __bfloat162float)
  FROM_INT(uint, bfloat16, u, 8, FLT_MAX, __bfloat162float)
  FROM_INT(ll, bfloat16, ll, 8, FLT_MAX, __bfloat162float)
  FROM_INT(ull, bfloat16, ull, 8, FLT_MAX, __bfloat162float)
  short s = static_cast<short>(raw);
  unsigned short us = static_cast<unsigned short>(raw);
  FROM_INT(short, half, s, 11, 65504, __half2float)
  FROM_INT(ushort, half, us, 11, 65504, __half2float)
  FROM_INT(short, bfloat16, s, 8, FLT_MAX, __bfloat162float)
  FROM_INT(ushort, bfloat16, us, 8, FLT_MAX, __bfloat162float)
  CHECK(agrees(ll, 11, 'n', 65504, __half2float(__half(ll))) &&
            agrees(ull, 8, 'n', FLT_MAX, __bfloat162float(__nv_bfloat16(ull))),
        "constructors");
}

// tf32: 10 bits of fraction, ties away from zero.
static void tf32(float f) {
  float got = __float_to_tf32(f);
  if (f != f) {
    CHECK(as<uint32_t>(got) == 0x7fffffff, "NaN");
    return;
  }
  if (isinf(f) || f == 0) {
    CHECK(same(got, f), "%a", static_cast<double>(f));
    return;
  }
  int e;
  frexpf(f, &e);
  int place = e - 11 > -136 ? e - 11 : -136;
  long double want = ldexpl(roundl(ldexpl(f, -place)), place); // roundl takes ties away from zero
  CHECK(
      want > static_cast<long double>(FLT_MAX) || want < -static_cast<long double>(FLT_MAX) ? isinf(got) : got == want,
      "%a: %a", static_cast<double>(f), static_cast<double>(got));
}

int main() {
  floats();
  doubles();
  for (double edge : {0.0,    0.5,    1.0,        1.5,    2.5,        127.0,  128.0,  255.0,  32767.0, 32768.0, 65535.5,
                      0x1p24, 0x1p31, 0x1p31 - 1, 0x1p32, 0x1p32 - 1, 0x1p53, 0x1p63, 0x1p64, 1e30,    1e-30})
    for (double v : {edge, -edge})
      for (double near : {v, nextafter(v, 1e300), nextafter(v, -1e300),
                          static_cast<double>(nextafterf(static_cast<float>(v), 1e30f)), v + 0.5, v - 0.5})
        to_integers(near);
  to_integers(INFINITY);
  to_integers(-INFINITY);
  to_integers(NAN);
  for (int i = 0; i < 50000; ++i)
    to_integers(ldexp(static_cast<double>(static_cast<int64_t>(draw())), -static_cast<int>(draw() % 66)));
  narrow_to_integers();
  for (int shift = 0; shift < 64; ++shift)
    for (int by = -2; by <= 2; ++by)
      from_integers((uint64_t(1) << shift) + static_cast<uint64_t>(static_cast<int64_t>(by)));
  for (int i = 0; i < 100000; ++i) {
    uint64_t v = draw() >> draw() % 64;
    from_integers(v);
    from_integers(v & (~uint64_t(0) << draw() % 64)); // short runs of bits, where midpoints are
    from_integers((v & (~uint64_t(0) << draw() % 64)) + 1);
    tf32(random_float());
    tf32(as<float>((static_cast<uint32_t>(v) & 0xffffe000u) + 0x1000u));
    tf32(as<float>((static_cast<uint32_t>(v) & 0xffffe000u) + 0xfffu));
  }
  return finish();
}
