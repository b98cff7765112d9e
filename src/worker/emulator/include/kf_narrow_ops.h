// Arithmetic, comparison and mathematics of a 16-bit format: included once by kf_half.h and once by kf_bf16.h, after
// kf_narrow_types.h and under the same KF_* macros; no guard, on purpose.
//
// +, -, *, / and fma give the correctly rounded result. Nothing is contracted: where nvcc fuses a product into a sum, two
// roundings happen here. Functions (hexp, hsin, ...) are the float functions rounded once, so they are at least as close as
// the hardware's. NaN results are canonical (0x7fff) as the hardware's are.

// Sums, products, quotients.
#define KF_ARITHMETIC(name, op)                                                                                        \
  KF_FN KF_T name(KF_T a, KF_T b) {                                                                                    \
    return KF_MAKE(KF_FROM(static_cast<KF_WIDE>(kf_float(a)) op static_cast<KF_WIDE>(kf_float(b))));                   \
  }
KF_ARITHMETIC(__hadd, +)
KF_ARITHMETIC(__hsub, -)
KF_ARITHMETIC(__hmul, *)
KF_ARITHMETIC(__hdiv, /)
KF_ARITHMETIC(__hadd_rn, +)
KF_ARITHMETIC(__hsub_rn, -)
KF_ARITHMETIC(__hmul_rn, *)
#undef KF_ARITHMETIC

// Into [0, 1]; NaN gives 0.
KF_FN KF_T kf_unit(KF_T v) {
  float f = kf_float(v);
  return f >= 1.0f ? KF_MAKE(KF_ONE) : f > 0.0f ? v : KF_MAKE(0);
}
// Negative values to +0; NaN stays NaN.
KF_FN KF_T kf_relu(KF_T v) {
  float f = kf_float(v);
  return f > 0.0f ? v : f != f ? KF_MAKE(0x7fff) : KF_MAKE(0);
}

KF_FN KF_T __hfma(KF_T a, KF_T b, KF_T c) {
  double product = static_cast<double>(kf_float(a)) * static_cast<double>(kf_float(b)); // exact
  return KF_MAKE(KF_FROM(kf_odd_sum(product, static_cast<double>(kf_float(c)))));
}
KF_FN KF_T __hfma_rn(KF_T a, KF_T b, KF_T c) { return __hfma(a, b, c); }
KF_FN KF_T __hfma_sat(KF_T a, KF_T b, KF_T c) { return kf_unit(__hfma(a, b, c)); }
KF_FN KF_T __hfma_relu(KF_T a, KF_T b, KF_T c) { return kf_relu(__hfma(a, b, c)); }
KF_FN KF_T __hadd_sat(KF_T a, KF_T b) { return kf_unit(__hadd(a, b)); }
KF_FN KF_T __hsub_sat(KF_T a, KF_T b) { return kf_unit(__hsub(a, b)); }
KF_FN KF_T __hmul_sat(KF_T a, KF_T b) { return kf_unit(__hmul(a, b)); }
KF_FN bool __hisnan(KF_T h) { return kf_float(h) != kf_float(h); }
KF_FN int __hisinf(KF_T h) { return __builtin_fabsf(kf_float(h)) == __builtin_inff() ? (kf_pattern(h) & 0x8000u ? -1 : 1) : 0; }
KF_FN KF_T __hneg(KF_T h) { return __hisnan(h) ? KF_MAKE(0x7fff) : KF_MAKE(kf_pattern(h) ^ 0x8000u); }
KF_FN KF_T __habs(KF_T h) { return __hisnan(h) ? KF_MAKE(0x7fff) : KF_MAKE(kf_pattern(h) & 0x7fffu); }

// Pairs, element by element.
#define KF_PAIR1(name, one)                                                                                            \
  KF_FN KF_T2 name(KF_T2 a) { return KF_T2(one(a.x), one(a.y)); }
#define KF_PAIR2(name, one)                                                                                            \
  KF_FN KF_T2 name(KF_T2 a, KF_T2 b) { return KF_T2(one(a.x, b.x), one(a.y, b.y)); }
#define KF_PAIR3(name, one)                                                                                            \
  KF_FN KF_T2 name(KF_T2 a, KF_T2 b, KF_T2 c) { return KF_T2(one(a.x, b.x, c.x), one(a.y, b.y, c.y)); }
KF_PAIR2(__hadd2, __hadd)
KF_PAIR2(__hsub2, __hsub)
KF_PAIR2(__hmul2, __hmul)
KF_PAIR2(__h2div, __hdiv)
KF_PAIR2(__hadd2_rn, __hadd)
KF_PAIR2(__hsub2_rn, __hsub)
KF_PAIR2(__hmul2_rn, __hmul)
KF_PAIR2(__hadd2_sat, __hadd_sat)
KF_PAIR2(__hsub2_sat, __hsub_sat)
KF_PAIR2(__hmul2_sat, __hmul_sat)
KF_PAIR3(__hfma2, __hfma)
KF_PAIR3(__hfma2_sat, __hfma_sat)
KF_PAIR3(__hfma2_relu, __hfma_relu)
KF_PAIR1(__hneg2, __hneg)
KF_PAIR1(__habs2, __habs)
// a * b + c over complex numbers (x real, y imaginary), each component by two fused steps.
KF_FN KF_T2 __hcmadd(KF_T2 a, KF_T2 b, KF_T2 c) {
  return KF_T2(__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));
}

// Comparisons. Plain names are false when either is NaN, the ones with u true; pairs give 1 or 0 per element, the b forms
// whether both hold, the masks 0xffff or 0 per element.
#define KF_COMPARE(n, op, u, U)                                                                                        \
  KF_FN bool __h##n##u(KF_T a, KF_T b) {                                                                               \
    float x = kf_float(a), y = kf_float(b);                                                                            \
    return (x != x || y != y) ? U : x op y;                                                                            \
  }                                                                                                                    \
  KF_FN KF_T2 __h##n##u##2(KF_T2 a, KF_T2 b) {                                                                         \
    return KF_T2(KF_MAKE(__h##n##u(a.x, b.x) ? KF_ONE : 0), KF_MAKE(__h##n##u(a.y, b.y) ? KF_ONE : 0));                \
  }                                                                                                                    \
  KF_FN bool __hb##n##u##2(KF_T2 a, KF_T2 b) { return __h##n##u(a.x, b.x) && __h##n##u(a.y, b.y); }                    \
  KF_FN unsigned int __h##n##u##2_mask(KF_T2 a, KF_T2 b) {                                                             \
    return (__h##n##u(a.x, b.x) ? 0xffffu : 0u) | (__h##n##u(a.y, b.y) ? 0xffff0000u : 0u);                            \
  }
#define KF_COMPARE_BOTH(n, op) KF_COMPARE(n, op, , false) KF_COMPARE(n, op, u, true)
KF_COMPARE_BOTH(eq, ==)
KF_COMPARE_BOTH(ne, !=)
KF_COMPARE_BOTH(lt, <)
KF_COMPARE_BOTH(le, <=)
KF_COMPARE_BOTH(gt, >)
KF_COMPARE_BOTH(ge, >=)
#undef KF_COMPARE_BOTH
#undef KF_COMPARE
KF_FN KF_T2 __hisnan2(KF_T2 v) { return KF_T2(KF_MAKE(__hisnan(v.x) ? KF_ONE : 0), KF_MAKE(__hisnan(v.y) ? KF_ONE : 0)); }

// The greater and the less; -0 is less than +0. Plain: a NaN loses; _nan: a NaN wins.
KF_FN KF_T kf_pick(KF_T a, KF_T b, bool want_greater, bool nan_wins) {
  if (__hisnan(a) || __hisnan(b)) return nan_wins || (__hisnan(a) && __hisnan(b)) ? KF_MAKE(0x7fff) : __hisnan(a) ? b : a;
  float x = kf_float(a), y = kf_float(b);
  bool a_less = x < y || (x == y && (kf_pattern(a) & 0x8000u));
  return a_less == want_greater ? b : a;
}
KF_FN KF_T __hmax(KF_T a, KF_T b) { return kf_pick(a, b, true, false); }
KF_FN KF_T __hmin(KF_T a, KF_T b) { return kf_pick(a, b, false, false); }
KF_FN KF_T __hmax_nan(KF_T a, KF_T b) { return kf_pick(a, b, true, true); }
KF_FN KF_T __hmin_nan(KF_T a, KF_T b) { return kf_pick(a, b, false, true); }
KF_PAIR2(__hmax2, __hmax)
KF_PAIR2(__hmin2, __hmin)
KF_PAIR2(__hmax2_nan, __hmax_nan)
KF_PAIR2(__hmin2_nan, __hmin_nan)

// Functions.
#define KF_FUNCTION(n, expression)                                                                                     \
  KF_FN KF_T h##n(KF_T h) {                                                                                            \
    float x = kf_float(h);                                                                                             \
    return KF_MAKE(KF_FROM(expression));                                                                               \
  }                                                                                                                    \
  KF_PAIR1(h2##n, h##n)
KF_FUNCTION(sqrt, __builtin_sqrtf(x))
KF_FUNCTION(rsqrt, 1.0 / __builtin_sqrt(static_cast<double>(x)))
KF_FUNCTION(rcp, 1.0 / static_cast<double>(x))
KF_FUNCTION(log, __builtin_logf(x))
KF_FUNCTION(log2, __builtin_log2f(x))
KF_FUNCTION(log10, __builtin_log10f(x))
KF_FUNCTION(exp, __builtin_expf(x))
KF_FUNCTION(exp2, __builtin_exp2f(x))
KF_FUNCTION(exp10, __builtin_exp2(static_cast<double>(x) * 3.321928094887362348)) // log2(10)
KF_FUNCTION(sin, __builtin_sinf(x))
KF_FUNCTION(cos, __builtin_cosf(x))
KF_FUNCTION(tanh, __builtin_tanhf(x))
KF_FUNCTION(tanh_approx, __builtin_tanhf(x))
KF_FUNCTION(floor, __builtin_floorf(x))
KF_FUNCTION(ceil, __builtin_ceilf(x))
KF_FUNCTION(trunc, __builtin_truncf(x))
KF_FUNCTION(rint, __builtin_rintf(x))
#undef KF_FUNCTION

#if !KF_NO_OPERATORS
KF_FN KF_T operator+(const KF_T& a, const KF_T& b) { return __hadd(a, b); }
KF_FN KF_T operator-(const KF_T& a, const KF_T& b) { return __hsub(a, b); }
KF_FN KF_T operator*(const KF_T& a, const KF_T& b) { return __hmul(a, b); }
KF_FN KF_T operator/(const KF_T& a, const KF_T& b) { return __hdiv(a, b); }
KF_FN KF_T& operator+=(KF_T& a, const KF_T& b) { return a = __hadd(a, b); }
KF_FN KF_T& operator-=(KF_T& a, const KF_T& b) { return a = __hsub(a, b); }
KF_FN KF_T& operator*=(KF_T& a, const KF_T& b) { return a = __hmul(a, b); }
KF_FN KF_T& operator/=(KF_T& a, const KF_T& b) { return a = __hdiv(a, b); }
KF_FN KF_T& operator++(KF_T& a) { return a = __hadd(a, KF_MAKE(KF_ONE)); }
KF_FN KF_T& operator--(KF_T& a) { return a = __hsub(a, KF_MAKE(KF_ONE)); }
KF_FN KF_T operator++(KF_T& a, int) { KF_T old = a; ++a; return old; }
KF_FN KF_T operator--(KF_T& a, int) { KF_T old = a; --a; return old; }
KF_FN KF_T operator+(const KF_T& a) { return a; }
KF_FN KF_T operator-(const KF_T& a) { return __hneg(a); }
KF_FN bool operator==(const KF_T& a, const KF_T& b) { return __heq(a, b); }
KF_FN bool operator!=(const KF_T& a, const KF_T& b) { return __hneu(a, b); }
KF_FN bool operator<(const KF_T& a, const KF_T& b) { return __hlt(a, b); }
KF_FN bool operator<=(const KF_T& a, const KF_T& b) { return __hle(a, b); }
KF_FN bool operator>(const KF_T& a, const KF_T& b) { return __hgt(a, b); }
KF_FN bool operator>=(const KF_T& a, const KF_T& b) { return __hge(a, b); }
#endif

#if !KF_NO_OPERATORS2
KF_PAIR2(operator+, __hadd)
KF_PAIR2(operator-, __hsub)
KF_PAIR2(operator*, __hmul)
KF_PAIR2(operator/, __hdiv)
KF_PAIR1(operator-, __hneg)
KF_FN KF_T2 operator+(KF_T2 a) { return a; }
KF_FN KF_T2& operator+=(KF_T2& a, const KF_T2& b) { return a = __hadd2(a, b); }
KF_FN KF_T2& operator-=(KF_T2& a, const KF_T2& b) { return a = __hsub2(a, b); }
KF_FN KF_T2& operator*=(KF_T2& a, const KF_T2& b) { return a = __hmul2(a, b); }
KF_FN KF_T2& operator/=(KF_T2& a, const KF_T2& b) { return a = __h2div(a, b); }
KF_FN KF_T2& operator++(KF_T2& a) { return a = __hadd2(a, KF_T2(KF_MAKE(KF_ONE), KF_MAKE(KF_ONE))); }
KF_FN KF_T2& operator--(KF_T2& a) { return a = __hsub2(a, KF_T2(KF_MAKE(KF_ONE), KF_MAKE(KF_ONE))); }
KF_FN KF_T2 operator++(KF_T2& a, int) { KF_T2 old = a; ++a; return old; }
KF_FN KF_T2 operator--(KF_T2& a, int) { KF_T2 old = a; --a; return old; }
KF_FN bool operator==(const KF_T2& a, const KF_T2& b) { return __hbeq2(a, b); }
KF_FN bool operator!=(const KF_T2& a, const KF_T2& b) { return __hbneu2(a, b); }
KF_FN bool operator<(const KF_T2& a, const KF_T2& b) { return __hblt2(a, b); }
KF_FN bool operator<=(const KF_T2& a, const KF_T2& b) { return __hble2(a, b); }
KF_FN bool operator>(const KF_T2& a, const KF_T2& b) { return __hbgt2(a, b); }
KF_FN bool operator>=(const KF_T2& a, const KF_T2& b) { return __hbge2(a, b); }
#endif

#undef KF_PAIR1
#undef KF_PAIR2
#undef KF_PAIR3
