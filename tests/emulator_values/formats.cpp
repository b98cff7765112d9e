// Every pattern of the narrow formats to float and back; float and double to them at and beside every midpoint, in
// every mode; arithmetic on sampled operands against the definition of correct rounding.
#include "check.h"
#include "kf_fp8.h"

struct Half {
  typedef __half T;
  typedef __half2 T2;
  static const Format& format() { return f16; }
  static T make(unsigned p) { return __ushort_as_half(static_cast<unsigned short>(p)); }
  static unsigned bits(T v) { return __half_as_ushort(v); }
  static float wide(T v) { return __half2float(v); }
  static T from(double d) { return __double2half(d); }
  static T from(float f, char mode) {
    return mode == 'n'   ? __float2half_rn(f)
           : mode == 'z' ? __float2half_rz(f)
           : mode == 'u' ? __float2half_ru(f)
                         : __float2half_rd(f);
  }
  static T2 pair(T a, T b) { return __halves2half2(a, b); }
  static T low(T2 v) { return __low2half(v); }
  static T high(T2 v) { return __high2half(v); }
};
struct Bfloat {
  typedef __nv_bfloat16 T;
  typedef __nv_bfloat162 T2;
  static const Format& format() { return bf16; }
  static T make(unsigned p) { return __ushort_as_bfloat16(static_cast<unsigned short>(p)); }
  static unsigned bits(T v) { return __bfloat16_as_ushort(v); }
  static float wide(T v) { return __bfloat162float(v); }
  static T from(double d) { return __double2bfloat16(d); }
  static T from(float f, char mode) {
    return mode == 'n'   ? __float2bfloat16_rn(f)
           : mode == 'z' ? __float2bfloat16_rz(f)
           : mode == 'u' ? __float2bfloat16_ru(f)
                         : __float2bfloat16_rd(f);
  }
  static T2 pair(T a, T b) { return __halves2bfloat162(a, b); }
  static T low(T2 v) { return __low2bfloat16(v); }
  static T high(T2 v) { return __high2bfloat16(v); }
};

// A float in every mode, against round_to and the mode's rule of overflow.
template <class F> static void narrow(float v) {
  const Format& f = F::format();
  for (char mode : {'n', 'z', 'u', 'd'}) {
    unsigned got = F::bits(F::from(v, mode));
    if (v != v) {
      CHECK(got == 0x7fff, "NaN %c", mode);
      continue;
    }
    long double want = round_to(v, f.fraction + 1, 1 - f.bias() - f.fraction, mode);
    if (fabsl(want) > f.value(f.largest())) {
      bool stays = !isinf(v) && (mode == 'z' || (mode == 'u' && v < 0) || (mode == 'd' && v > 0));
      want = copysignl(f.value(f.largest() + (stays ? 0 : 1)), v);
    }
    CHECK(f.value(got) == want && (got & f.sign()) / f.sign() == static_cast<unsigned>(signbit(v) != 0),
          "%a %c: got %04x", static_cast<double>(v), mode, got);
  }
}
static float step(float v, int by) { return as<float>(as<uint32_t>(v) + static_cast<uint32_t>(by)); }

template <class F> static void conversions() {
  const Format& f = F::format();
  for (unsigned p = 0; p < 0x10000; ++p) {
    float v = F::wide(F::make(p));
    if (f.nan(p)) {
      CHECK(v != v && F::bits(F::from(v, 'n')) == 0x7fff, "%04x", p);
      continue;
    }
    bool infinite = (p & 0x7fff) == f.largest() + 1;
    CHECK(infinite ? isinf(v) && (v > 0) == !(p & 0x8000) : v == f.value(p), "%04x", p);
    for (char mode : {'n', 'z', 'u', 'd'}) CHECK(F::bits(F::from(v, mode)) == p, "%04x %c", p, mode);
    CHECK(F::bits(F::from(static_cast<double>(v))) == p, "%04x", p);
    CHECK(F::bits(typename F::T(v)) == p && static_cast<float>(F::make(p)) == v, "%04x", p);
    if (infinite) continue;
    long double middle = (f.value(p) + f.value(p + 1)) / 2;
    for (int by : {-1, 0, 1}) {
      narrow<F>(step(v, by));
      narrow<F>(step(static_cast<float>(middle), by));
      double d =
          as<double>(as<uint64_t>(static_cast<double>(middle)) + static_cast<uint64_t>(static_cast<int64_t>(by)));
      CHECK(nearest(f, F::bits(F::from(d)), [&](long double m) { return sign_of(d - m); }), "%a", d);
    }
  }
  for (int i = 0; i < 300000; ++i) {
    narrow<F>(as<float>(static_cast<uint32_t>(draw())));
    double d = as<double>((draw() & 0x800fffffffffffffull) | (1023 - 160 + draw() % 300) << 52);
    CHECK(nearest(f, F::bits(F::from(d)), [&](long double m) { return sign_of(d - m); }), "%a", d);
  }
}

// One operation: the exact value by its side of any m, and what IEEE gives for operands that are not finite.
#define OPERATION(name, name2, op, side_of)                                                                            \
  {                                                                                                                    \
    unsigned got = F::bits(name(x, y));                                                                                \
    T2 both = name2(F::pair(x, y), F::pair(y, x));                                                                     \
    CHECK(F::bits(F::low(both)) == got && F::bits(F::high(both)) == F::bits(name(y, x)), "%04x %04x", p, q);           \
    CHECK(F::bits(x op y) == got, "%04x %04x", p, q);                                                                  \
    double ieee = static_cast<double>(a) op static_cast<double>(b);                                                    \
    if (ieee != ieee || isinf(ieee) || isinf(a) || isinf(b))                                                           \
      CHECK(got == F::bits(F::from(ieee)), "%04x " #op " %04x: %04x", p, q, got);                                      \
    else                                                                                                               \
      CHECK(nearest(f, got, [&](long double m) { return side_of; }) && ((got & 0x8000) != 0) == (signbit(ieee) != 0),  \
            "%04x " #op " %04x: %04x", p, q, got);                                                                     \
  }

template <class F> static void arithmetic() {
  typedef typename F::T T;
  typedef typename F::T2 T2;
  const Format& f = F::format();
  for (int i = 0; i < 400000; ++i) {
    uint64_t bits = draw();
    unsigned p = bits & 0xffff, q = bits >> 16 & 0xffff, s = bits >> 32 & 0xffff;
    if (i % 4 == 1) q = (p & 0x7c00) | (q & 0x83ff);    // exponents that meet
    if (i % 4 == 2) p &= 0x83ff, q = (q & 0x83ff) | 0x3800; // subnormals
    if (i % 64 == 3) q = bits >> 48 & 1 ? p : p ^ 0x8000;
    if (i % 4 == 2) s = (s & 0x80ff);
    T x = F::make(p), y = F::make(q), z = F::make(s);
    float a = F::wide(x), b = F::wide(y), c = F::wide(z);
    long double la = a, lb = b, lc = c;
    OPERATION(__hadd, __hadd2, +, sign_of_sum(la, lb, -m))
    OPERATION(__hsub, __hsub2, -, sign_of_sum(la, -lb, -m))
    OPERATION(__hmul, __hmul2, *, sign_of(la * lb - m))
    OPERATION(__hdiv, __h2div, /, sign_of(la - m * lb) * (lb < 0 ? -1 : 1))
    long double sum = la * lb + lc;
    unsigned got = F::bits(__hfma(x, y, z));
    if (!isfinite(sum)) {
      CHECK(got == F::bits(F::from(static_cast<double>(sum))), "fma %04x %04x %04x: %04x", p, q, s, got);
      CHECK(F::wide(__hfma_sat(x, y, z)) == (sum > 0 ? 1 : 0), "%04x", got);
      CHECK(F::bits(__hfma_relu(x, y, z)) == (sum < 0 ? 0 : got), "%04x", got);
    } else {
      CHECK(nearest(f, got, [&](long double m) { return sign_of_sum(la * lb, lc, -m); }), "fma %04x %04x %04x: %04x", p,
            q, s, got);
      float v = F::wide(F::make(got));
      CHECK(F::wide(__hfma_sat(x, y, z)) == (v > 1 ? 1 : v > 0 ? v : 0), "%04x", got);
      CHECK(F::bits(__hfma_relu(x, y, z)) == (v > 0 ? got : 0), "%04x", got);
    }
    CHECK(F::bits(F::high(__hfma2(F::pair(y, x), F::pair(x, y), F::pair(x, z)))) == got, "%04x %04x %04x", p, q, s);
    // Comparisons against float's.
    bool nan = a != a || b != b;
    CHECK(
        __heq(x, y) == (a == b) && __hne(x, y) == (!nan && a != b) && __hlt(x, y) == (a < b) && __hle(x, y) == (a <= b),
        "%04x %04x", p, q);
    CHECK(__hgt(x, y) == (a > b) && __hge(x, y) == (a >= b) && (x < y) == (a < b) && (x != y) == (a != b), "%04x %04x",
          p, q);
    CHECK(__hequ(x, y) == (nan || a == b) && __hneu(x, y) == (nan || a != b) && __hltu(x, y) == (nan || a < b),
          "%04x %04x", p, q);
    CHECK(__hleu(x, y) == (nan || a <= b) && __hgtu(x, y) == (nan || a > b) && __hgeu(x, y) == (nan || a >= b),
          "%04x %04x", p, q);
    unsigned mask = (a < b ? 0xffffu : 0) | (b < a ? 0xffff0000u : 0);
    CHECK(__hlt2_mask(F::pair(x, y), F::pair(y, x)) == mask, "%04x %04x", p, q);
    CHECK(__hbge2(F::pair(x, y), F::pair(y, x)) == (a == b), "%04x %04x", p, q);
    CHECK(F::wide(F::high(__hlt2(F::pair(x, y), F::pair(y, x)))) == (b < a ? 1 : 0), "%04x %04x", p, q);
    // Minimum and maximum.
    float most = F::wide(__hmax(x, y)), least = F::wide(__hmin(x, y));
    CHECK(nan ? (a != a && b != b ? most != most : most == (a != a ? b : a)) : most == (a < b ? b : a), "%04x %04x", p,
          q);
    CHECK(nan ? (a != a && b != b ? least != least : least == (a != a ? b : a)) : least == (b < a ? b : a), "%04x %04x",
          p, q);
    CHECK(nan == (F::bits(__hmax_nan(x, y)) == 0x7fff) && nan == (F::bits(__hmin_nan(x, y)) == 0x7fff), "%04x %04x", p,
          q);
  }
  // Products and quotients that end among the subnormals: all fractions, at every distance below the least normal
  // number.
  const unsigned one = 1u << f.fraction, low = 2;
  const unsigned stride = f.fraction > 7 ? 7 : 1; // a sample of binary16's
  for (unsigned a = 0; a < one; a += stride)
    for (unsigned b = 0; b < one; b += stride)
      for (unsigned down = 0; down <= static_cast<unsigned>(f.fraction) + 3; ++down) {
        unsigned p = low * one + a, q = (static_cast<unsigned>(f.bias()) + 1 - low - down) * one + b;
        long double la = f.value(p), lb = f.value(q), divisor = 1 / ldexpl(1, 2 * ilogbl(lb)) * lb; // 2^-n to 2^n
        unsigned got = F::bits(__hmul(F::make(p), F::make(q)));
        CHECK(nearest(f, got, [&](long double m) { return sign_of(la * lb - m); }), "%04x * %04x: %04x", p, q, got);
        if (divisor > f.value(f.largest())) continue;
        got = F::bits(__hdiv(F::make(p), F::from(static_cast<double>(divisor))));
        CHECK(nearest(f, got, [&](long double m) { return sign_of(la - m * divisor); }), "%04x / %a: %04x", p,
              static_cast<double>(divisor), got);
      }
  T zero = F::make(0), minus = F::make(0x8000);
  CHECK(F::bits(__hmax(minus, zero)) == 0 && F::bits(__hmax(zero, minus)) == 0, "signs of zero");
  CHECK(F::bits(__hmin(minus, zero)) == 0x8000 && F::bits(__hmin(zero, minus)) == 0x8000, "signs of zero");
  for (unsigned p = 0; p < 0x10000; ++p) {
    T x = F::make(p);
    float a = F::wide(x);
    CHECK(__hisnan(x) == (a != a) && __hisinf(x) == (isinf(a) ? (a > 0 ? 1 : -1) : 0), "%04x", p);
    CHECK(F::bits(__hneg(x)) == (a != a ? 0x7fff : p ^ 0x8000) && F::bits(__habs(x)) == (a != a ? 0x7fff : p & 0x7fff),
          "%04x", p);
    if (a != a) continue;
    if (a >= 0 && !isinf(a)) {
      long double la = a;
      CHECK(nearest(f, F::bits(hsqrt(x)), [&](long double m) { return m < 0 ? 1 : sign_of(la - m * m); }), "sqrt %04x",
            p);
      if (a > 0) CHECK(nearest(f, F::bits(hrcp(x)), [&](long double m) { return sign_of(1 - m * la); }), "rcp %04x", p);
      if (a > 0)
        CHECK(nearest(f, F::bits(hrsqrt(x)), [&](long double m) { return m < 0 ? 1 : sign_of(1 - m * m * la); }),
              "rsqrt %04x", p);
    }
    CHECK(F::wide(hfloor(x)) == floorf(a) && F::wide(hceil(x)) == ceilf(a) && F::wide(htrunc(x)) == truncf(a) &&
              F::wide(hrint(x)) == rintf(a),
          "%04x", p);
    // A function's result is within one unit in the last place of the accurate one.
    struct { T got; long double want;
    } functions[] = {{hexp(x), expl(a)}, {hexp2(x), exp2l(a)}, {hexp10(x), exp10l(a)},
                     {hsin(x), sinl(a)}, {hcos(x), cosl(a)},   {htanh(x), tanhl(a)},
                     {hlog(x), logl(a)}, {hlog2(x), log2l(a)}, {hlog10(x), log10l(a)}};
    for (auto& one : functions) {
      if (one.want != one.want) {
        CHECK(__hisnan(one.got), "%04x", p);
        continue;
      }
      int got = static_cast<int>(F::bits(one.got) & 0x7fff),
          want = static_cast<int>(F::bits(F::from(static_cast<double>(one.want))) & 0x7fff);
      CHECK(abs(got - want) <= 1 && (want == 0 || (F::bits(one.got) >> 15) == (signbit(one.want) != 0)),
            "function %d of %04x", static_cast<int>(&one - functions), p);
    }
  }
}

static void eights() {
  for (auto kind : {__NV_E4M3, __NV_E5M2}) {
    const Format& f = kind == __NV_E4M3 ? e4m3 : e5m2;
    for (unsigned p = 0; p < 256; ++p) {
      __half_raw h = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(p), kind);
      float v = __half2float(h);
      if (f.nan(p)) {
        CHECK(h.x == 0x7fff, "%02x", p);
        continue;
      }
      bool infinite = f.ieee && (p & 0x7f) == f.largest() + 1;
      CHECK(infinite ? isinf(v) : v == f.value(p), "%02x", p);
      CHECK((h.x >> 15) == (p >> 7), "%02x", p);
      CHECK(__nv_cvt_float_to_fp8(v, __NV_NOSAT, kind) == p, "%02x", p);
      CHECK(__nv_cvt_float_to_fp8(v, __NV_SATFINITE, kind) == (infinite ? p - 1 : p), "%02x", p);
      if (infinite) continue;
      float middle = static_cast<float>((f.value(p) + f.value(p + 1)) / 2);
      for (float x : {middle, step(middle, 1), step(middle, -1), step(v, 1), step(v, -1)}) {
        if (x != x) continue;
        unsigned got = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kind),
                 unbounded = __nv_cvt_float_to_fp8(x, __NV_NOSAT, kind);
        bool over = (unbounded & 0x7f) > f.largest();
        CHECK((unbounded & 0x7f) <= f.largest() + 1 && (over ? got == unbounded - 1 : got == unbounded), "%02x %a", p,
              static_cast<double>(x));
        CHECK(nearest(f, unbounded, [&](long double m) { return sign_of(x - m); }), "%02x %a", p,
              static_cast<double>(x));
        double d = static_cast<double>(x) * (1 + 0x1p-40); // a sliver past a midpoint must not be lost on the way
        CHECK(nearest(f, __nv_cvt_double_to_fp8(d, __NV_NOSAT, kind), [&](long double m) { return sign_of(d - m); }),
              "%a", d);
      }
    }
    for (unsigned p = 0; p < 0x10000; ++p) {
      float a = __half2float(Half::make(p)), b = __bfloat162float(Bfloat::make(p));
      CHECK(__nv_cvt_halfraw_to_fp8(Half::make(p), __NV_SATFINITE, kind) ==
                __nv_cvt_float_to_fp8(a, __NV_SATFINITE, kind),
            "%04x", p);
      CHECK(__nv_cvt_bfloat16raw_to_fp8(Bfloat::make(p), __NV_SATFINITE, kind) ==
                __nv_cvt_float_to_fp8(b, __NV_SATFINITE, kind),
            "%04x", p);
      unsigned pair = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, kind);
      CHECK((pair & 0xff) == __nv_cvt_float_to_fp8(a, __NV_SATFINITE, kind) &&
                pair >> 8 == __nv_cvt_float_to_fp8(b, __NV_SATFINITE, kind),
            "%04x", p);
    }
    CHECK(__nv_cvt_float_to_fp8(NAN, __NV_SATFINITE, kind) == 0x7f &&
              __nv_cvt_float_to_fp8(NAN, __NV_NOSAT, kind) == 0x7f,
          "NaN");
    double negative = as<double>(0xfff4000000000000ull); // NaN whose fraction begins with 01
    CHECK(__nv_cvt_double_to_fp8(negative, __NV_SATFINITE, kind) == 0xff &&
              __nv_cvt_float_to_fp8(-NAN, __NV_SATFINITE, kind) == 0x7f,
          "NaN");
    CHECK(__nv_cvt_float_to_fp8(1e30f, __NV_SATFINITE, kind) == f.largest(), "overflow");
    CHECK(__nv_cvt_float_to_fp8(-INFINITY, __NV_SATFINITE, kind) == (f.largest() | 0x80), "overflow");
    CHECK(__nv_cvt_float_to_fp8(-INFINITY, __NV_NOSAT, kind) == ((f.largest() + 1) | 0x80), "overflow");
  }
  float4 four = static_cast<float4>(__nv_fp8x4_e4m3(make_float4(1.0f, -2.0f, 0.3f, 1000.0f)));
  CHECK(four.x == 1.0f && four.y == -2.0f && four.z == 0.3125f && four.w == 448.0f, "%g %g",
        static_cast<double>(four.z), static_cast<double>(four.w));
  float2 two = static_cast<float2>(__nv_fp8x2_e5m2(make_float2(-3.0f, 0.3f)));
  CHECK(two.x == -3.0f && two.y == 0.3125f, "%g", static_cast<double>(two.y));
  CHECK(static_cast<int>(__nv_fp8_e4m3(-7.5f)) == -7 && static_cast<unsigned char>(__nv_fp8_e4m3(-7.5f)) == 0,
        "to integers");
  CHECK(__nv_fp8_e4m3(448).__x == 0x7e && __nv_fp8_e5m2(__float2half(-1.0f)).__x == 0xbc, "from others");
}

// The powers of two around |v|, the one the mode asks for, clipped; as a value.
static long double scale(double v, cudaRoundMode mode) {
  long double a = fabsl(v), low = a > 0 ? ldexpl(1, ilogbl(a)) : 0, high = low < a ? 2 * low : low;
  if (a < 0x1p-127L) low = high = 0x1p-127L;
  bool up = mode == cudaRoundPosInf || (mode == cudaRoundNearest && high - a <= a - low);
  return up ? high : low;
}
static void scales() {
  for (unsigned p = 0; p < 0xff; ++p)
    CHECK(static_cast<float>(as<__nv_fp8_e8m0>(static_cast<unsigned char>(p))) == ldexpl(1, static_cast<int>(p) - 127),
          "%02x", p);
  CHECK(
      isnan(static_cast<float>(as<__nv_fp8_e8m0>(static_cast<unsigned char>(0xff)))) && __nv_fp8_e8m0(NAN).__x == 0xff,
      "NaN");
  for (int i = 0; i < 100000; ++i) {
    uint32_t u = static_cast<uint32_t>(draw());
    if (i % 4 == 1) u &= 0xffc00000; // powers of two and midpoints
    if (i % 8 == 2) u &= 0x80ffffff;
    float v = as<float>(u);
    if (isnan(v)) continue;
    double d = static_cast<double>(v) * (1 + (i % 3 - 1) * 0x1p-40);
    for (auto mode : {cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf}) {
      long double want = isinf(v) ? INFINITY : scale(v, mode), want_d = isinf(d) ? INFINITY : scale(d, mode);
      unsigned loose = __nv_cvt_float_to_e8m0(v, __NV_NOSAT, mode),
               bound = __nv_cvt_float_to_e8m0(v, __NV_SATFINITE, mode);
      CHECK(want > 0x1p127L ? loose == 0xff && bound == 0xfe
                            : ldexpl(1, static_cast<int>(loose) - 127) == want && bound == loose,
            "%a", static_cast<double>(v));
      loose = __nv_cvt_double_to_e8m0(d, __NV_NOSAT, mode);
      CHECK(want_d > 0x1p127L ? loose == 0xff : ldexpl(1, static_cast<int>(loose) - 127) == want_d, "%a", d);
    }
  }
}

int main() {
  conversions<Half>();
  conversions<Bfloat>();
  arithmetic<Half>();
  arithmetic<Bfloat>();
  eights();
  scales();
  for (unsigned p = 0; p < 0x10000; ++p) {
    __half h = Half::make(p);
    __nv_bfloat16 b = Bfloat::make(p);
    CHECK(Half::bits(__half(b)) == Half::bits(Half::from(Bfloat::wide(b), 'n')), "%04x", p);
    CHECK(Bfloat::bits(__nv_bfloat16(h)) == Bfloat::bits(Bfloat::from(Half::wide(h), 'n')), "%04x", p);
  }
  return finish();
}
