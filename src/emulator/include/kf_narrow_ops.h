// Arithmetic, comparison and mathematics of a 16-bit format: included once by kf_half.h and once by kf_bf16.h, after
// kf_narrow_types.h and under the same KF_* macros; no guard, on purpose.
//
// +, -, *, / and fma give the correctly rounded result. Nothing is contracted: where nvcc fuses a product into a sum,
// two roundings happen here. Functions (hexp, hsin, ...) are the float functions rounded once, so they are at least as
// close as the hardware's. NaN results are canonical (0x7fff) as the hardware's are.
//
// Each operation is a function KF_P(name) on bit patterns; the macros below give it its scalar and its pair spelling.

#define KF_P(name) KF_CAT(kf_, KF_NAME, _, name)
#define KF_U16 unsigned short
#define KF_NAN(x) (((x) & 0x7fffu) > KF_INFINITY)

#define KF_SPELL1(p, name, name2)                                                                                      \
  KF_FN KF_T name(KF_T a) { return KF_MAKE(KF_P(p)(a.__x)); }                                                          \
  KF_FN KF_T2 name2(KF_T2 a) { return KF_MAKE2(KF_P(p)(a.x.__x), KF_P(p)(a.y.__x)); }
#define KF_SPELL2(p, name, name2)                                                                                      \
  KF_FN KF_T name(KF_T a, KF_T b) { return KF_MAKE(KF_P(p)(a.__x, b.__x)); }                                           \
  KF_FN KF_T2 name2(KF_T2 a, KF_T2 b) { return KF_MAKE2(KF_P(p)(a.x.__x, b.x.__x), KF_P(p)(a.y.__x, b.y.__x)); }
#define KF_SPELL3(p, name, name2)                                                                                      \
  KF_FN KF_T name(KF_T a, KF_T b, KF_T c) { return KF_MAKE(KF_P(p)(a.__x, b.__x, c.__x)); }                            \
  KF_FN KF_T2 name2(KF_T2 a, KF_T2 b, KF_T2 c) {                                                                       \
    return KF_MAKE2(KF_P(p)(a.x.__x, b.x.__x, c.x.__x), KF_P(p)(a.y.__x, b.y.__x, c.y.__x));                           \
  }

// Into [0, 1]; NaN gives 0.
KF_FN KF_U16 KF_P(unit)(KF_U16 v) { return v & 0x8000u || KF_NAN(v) ? 0 : v > KF_ONE ? KF_ONE : v; }
// Negative values to +0; NaN stays NaN.
KF_FN KF_U16 KF_P(relu)(KF_U16 v) { return KF_NAN(v) ? 0x7fff : v & 0x8000u ? 0 : v; }

// Sums, products and quotients, through float. Rounding twice is harmless: float has 24 >= 2 * 11 + 2 bits. Nor is it
// where bfloat16 and float are subnormal together: sums are exact there, products of 16 bits that reach half the least
// bfloat16 end at float's least or above, and a quotient of 8-bit numbers stays 2^-8 of that half away from every
// midpoint.
#define KF_ARITHMETIC(p, op)                                                                                           \
  KF_FN KF_U16 KF_P(p)(KF_U16 a, KF_U16 b) { return KF_FROM(KF_TO(a) op KF_TO(b)); }
KF_ARITHMETIC(add, +)
KF_ARITHMETIC(sub, -)
KF_ARITHMETIC(mul, *)
KF_ARITHMETIC(div, /)
#undef KF_ARITHMETIC
KF_FN KF_U16 KF_P(fma)(KF_U16 a, KF_U16 b, KF_U16 c) {
  double product = static_cast<double>(KF_TO(a)) * static_cast<double>(KF_TO(b)); // exact
  return KF_FROM(kf_odd_sum(product, static_cast<double>(KF_TO(c))));
}
KF_FN KF_U16 KF_P(add_sat)(KF_U16 a, KF_U16 b) { return KF_P(unit)(KF_P(add)(a, b)); }
KF_FN KF_U16 KF_P(sub_sat)(KF_U16 a, KF_U16 b) { return KF_P(unit)(KF_P(sub)(a, b)); }
KF_FN KF_U16 KF_P(mul_sat)(KF_U16 a, KF_U16 b) { return KF_P(unit)(KF_P(mul)(a, b)); }
KF_FN KF_U16 KF_P(fma_sat)(KF_U16 a, KF_U16 b, KF_U16 c) { return KF_P(unit)(KF_P(fma)(a, b, c)); }
KF_FN KF_U16 KF_P(fma_relu)(KF_U16 a, KF_U16 b, KF_U16 c) { return KF_P(relu)(KF_P(fma)(a, b, c)); }
KF_FN KF_U16 KF_P(neg)(KF_U16 v) { return KF_NAN(v) ? 0x7fff : v ^ 0x8000u; }
KF_FN KF_U16 KF_P(abs)(KF_U16 v) { return KF_NAN(v) ? 0x7fff : v & 0x7fffu; }
KF_SPELL2(add, __hadd, __hadd2)
KF_SPELL2(sub, __hsub, __hsub2)
KF_SPELL2(mul, __hmul, __hmul2)
KF_SPELL2(div, __hdiv, __h2div)
KF_SPELL2(add, __hadd_rn, __hadd2_rn)
KF_SPELL2(sub, __hsub_rn, __hsub2_rn)
KF_SPELL2(mul, __hmul_rn, __hmul2_rn)
KF_SPELL2(add_sat, __hadd_sat, __hadd2_sat)
KF_SPELL2(sub_sat, __hsub_sat, __hsub2_sat)
KF_SPELL2(mul_sat, __hmul_sat, __hmul2_sat)
KF_SPELL3(fma, __hfma, __hfma2)
KF_SPELL3(fma_sat, __hfma_sat, __hfma2_sat)
KF_SPELL3(fma_relu, __hfma_relu, __hfma2_relu)
KF_SPELL1(neg, __hneg, __hneg2)
KF_SPELL1(abs, __habs, __habs2)
// a * b + c over complex numbers (x real, y imaginary), each component by two fused steps.
KF_FN KF_T2 __hcmadd(KF_T2 a, KF_T2 b, KF_T2 c) {
  KF_U16 re = KF_P(fma)(a.x.__x, b.x.__x, c.x.__x), im = KF_P(fma)(a.x.__x, b.y.__x, c.y.__x);
  return KF_MAKE2(KF_P(fma)(KF_P(neg)(a.y.__x), b.y.__x, re), KF_P(fma)(a.y.__x, b.x.__x, im));
}

// Classification.
KF_FN KF_U16 KF_P(isnan)(KF_U16 v) { return KF_NAN(v) ? KF_ONE : 0; }
KF_FN bool __hisnan(KF_T h) { return KF_NAN(h.__x); }
KF_FN KF_T2 __hisnan2(KF_T2 v) { return KF_MAKE2(KF_P(isnan)(v.x.__x), KF_P(isnan)(v.y.__x)); }
KF_FN int __hisinf(KF_T h) { return (h.__x & 0x7fffu) != KF_INFINITY ? 0 : h.__x & 0x8000u ? -1 : 1; }

// Comparisons. Plain names are false when either is NaN, the ones with u true; pairs give 1 or 0 per element, the b
// forms whether both hold, the masks 0xffff or 0 per element.
#define KF_COMPARE(n, yes)                                                                                             \
  KF_FN bool KF_P(n)(KF_U16 p, KF_U16 q) {                                                                             \
    float x = KF_TO(p), y = KF_TO(q);                                                                                  \
    return yes;                                                                                                        \
  }                                                                                                                    \
  KF_FN bool __h##n(KF_T a, KF_T b) { return KF_P(n)(a.__x, b.__x); }                                                  \
  KF_FN bool __hb##n##2(KF_T2 a, KF_T2 b) { return KF_P(n)(a.x.__x, b.x.__x) && KF_P(n)(a.y.__x, b.y.__x); }           \
  KF_FN KF_T2 __h##n##2(KF_T2 a, KF_T2 b) {                                                                            \
    return KF_MAKE2(KF_P(n)(a.x.__x, b.x.__x) ? KF_ONE : 0, KF_P(n)(a.y.__x, b.y.__x) ? KF_ONE : 0);                   \
  }                                                                                                                    \
  KF_FN unsigned int __h##n##2_mask(KF_T2 a, KF_T2 b) {                                                                \
    return (KF_P(n)(a.x.__x, b.x.__x) ? 0xffffu : 0u) | (KF_P(n)(a.y.__x, b.y.__x) ? 0xffff0000u : 0u);                \
  }
KF_COMPARE(eq, x == y)
KF_COMPARE(ne, x < y || x > y)
KF_COMPARE(lt, x < y)
KF_COMPARE(le, x <= y)
KF_COMPARE(gt, x > y)
KF_COMPARE(ge, x >= y)
KF_COMPARE(equ, !(x < y || x > y))
KF_COMPARE(neu, x != y)
KF_COMPARE(ltu, !(x >= y))
KF_COMPARE(leu, !(x > y))
KF_COMPARE(gtu, !(x <= y))
KF_COMPARE(geu, !(x < y))
#undef KF_COMPARE

// The greater and the less; -0 is less than +0. Plain: a NaN loses; _nan: a NaN wins. `order` maps a pattern to an
// integer that grows with the value.
KF_FN int KF_P(order)(KF_U16 v) { return v & 0x8000u ? 0x7fff - static_cast<int>(v) : static_cast<int>(v); }
KF_FN KF_U16 KF_P(max_nan)(KF_U16 a, KF_U16 b) {
  return KF_NAN(a) || KF_NAN(b) ? 0x7fff : KF_P(order)(a) < KF_P(order)(b) ? b : a;
}
KF_FN KF_U16 KF_P(min_nan)(KF_U16 a, KF_U16 b) {
  return KF_NAN(a) || KF_NAN(b) ? 0x7fff : KF_P(order)(b) < KF_P(order)(a) ? b : a;
}
KF_FN KF_U16 KF_P(max)(KF_U16 a, KF_U16 b) { return KF_P(max_nan)(KF_NAN(a) ? b : a, KF_NAN(b) ? a : b); }
KF_FN KF_U16 KF_P(min)(KF_U16 a, KF_U16 b) { return KF_P(min_nan)(KF_NAN(a) ? b : a, KF_NAN(b) ? a : b); }
KF_SPELL2(max, __hmax, __hmax2)
KF_SPELL2(min, __hmin, __hmin2)
KF_SPELL2(max_nan, __hmax_nan, __hmax2_nan)
KF_SPELL2(min_nan, __hmin_nan, __hmin2_nan)

// Functions.
#define KF_FUNCTION(n, expression)                                                                                     \
  KF_FN KF_U16 KF_P(n)(KF_U16 v) {                                                                                     \
    float x = KF_TO(v);                                                                                                \
    return KF_FROM(expression);                                                                                        \
  }                                                                                                                    \
  KF_SPELL1(n, h##n, h2##n)
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
KF_FUNCTION(floor, __builtin_floorf(x))
KF_FUNCTION(ceil, __builtin_ceilf(x))
KF_FUNCTION(trunc, __builtin_truncf(x))
KF_FUNCTION(rint, __builtin_rintf(x))
KF_SPELL1(tanh, htanh_approx, h2tanh_approx)
#undef KF_FUNCTION

#if !KF_NO_OPERATORS
#define KF_OPERATOR(op, p)                                                                                             \
  KF_FN KF_T operator op(const KF_T& a, const KF_T& b) { return KF_MAKE(KF_P(p)(a.__x, b.__x)); }                      \
  KF_FN KF_T& operator op##=(KF_T& a, const KF_T& b) {                                                                 \
    a.__x = KF_P(p)(a.__x, b.__x);                                                                                     \
    return a;                                                                                                          \
  }
KF_OPERATOR(+, add)
KF_OPERATOR(-, sub)
KF_OPERATOR(*, mul)
KF_OPERATOR(/, div)
#undef KF_OPERATOR
#define KF_STEP(op, p)                                                                                                 \
  KF_FN KF_T& operator op(KF_T& a) {                                                                                   \
    a.__x = KF_P(p)(a.__x, KF_ONE);                                                                                    \
    return a;                                                                                                          \
  }                                                                                                                    \
  KF_FN KF_T operator op(KF_T& a, int) {                                                                               \
    KF_U16 old = a.__x;                                                                                                \
    a.__x = KF_P(p)(old, KF_ONE);                                                                                      \
    return KF_MAKE(old);                                                                                               \
  }
KF_STEP(++, add)
KF_STEP(--, sub)
#undef KF_STEP
KF_FN KF_T operator+(const KF_T& a) { return KF_MAKE(a.__x); }
KF_FN KF_T operator-(const KF_T& a) { return KF_MAKE(KF_P(neg)(a.__x)); }
#define KF_OPERATOR(op, p)                                                                                             \
  KF_FN bool operator op(const KF_T& a, const KF_T& b) { return KF_P(p)(a.__x, b.__x); }
KF_OPERATOR(==, eq)
KF_OPERATOR(!=, neu)
KF_OPERATOR(<, lt)
KF_OPERATOR(<=, le)
KF_OPERATOR(>, gt)
KF_OPERATOR(>=, ge)
#undef KF_OPERATOR
#endif

#if !KF_NO_OPERATORS2
#define KF_OPERATOR(op, p)                                                                                             \
  KF_FN KF_T2 operator op(const KF_T2& a, const KF_T2& b) {                                                            \
    return KF_MAKE2(KF_P(p)(a.x.__x, b.x.__x), KF_P(p)(a.y.__x, b.y.__x));                                             \
  }                                                                                                                    \
  KF_FN KF_T2& operator op##=(KF_T2& a, const KF_T2& b) {                                                              \
    a.x.__x = KF_P(p)(a.x.__x, b.x.__x), a.y.__x = KF_P(p)(a.y.__x, b.y.__x);                                          \
    return a;                                                                                                          \
  }
KF_OPERATOR(+, add)
KF_OPERATOR(-, sub)
KF_OPERATOR(*, mul)
KF_OPERATOR(/, div)
#undef KF_OPERATOR
#define KF_STEP(op, p)                                                                                                 \
  KF_FN KF_T2& operator op(KF_T2& a) {                                                                                 \
    a.x.__x = KF_P(p)(a.x.__x, KF_ONE), a.y.__x = KF_P(p)(a.y.__x, KF_ONE);                                            \
    return a;                                                                                                          \
  }                                                                                                                    \
  KF_FN KF_T2 operator op(KF_T2& a, int) {                                                                             \
    KF_U16 x = a.x.__x, y = a.y.__x;                                                                                   \
    a.x.__x = KF_P(p)(x, KF_ONE), a.y.__x = KF_P(p)(y, KF_ONE);                                                        \
    return KF_MAKE2(x, y);                                                                                             \
  }
KF_STEP(++, add)
KF_STEP(--, sub)
#undef KF_STEP
KF_FN KF_T2 operator+(const KF_T2& a) { return KF_MAKE2(a.x.__x, a.y.__x); }
KF_FN KF_T2 operator-(const KF_T2& a) { return KF_MAKE2(KF_P(neg)(a.x.__x), KF_P(neg)(a.y.__x)); }
#define KF_OPERATOR(op, p)                                                                                             \
  KF_FN bool operator op(const KF_T2& a, const KF_T2& b) {                                                             \
    return KF_P(p)(a.x.__x, b.x.__x) && KF_P(p)(a.y.__x, b.y.__x);                                                     \
  }
KF_OPERATOR(==, eq)
KF_OPERATOR(!=, neu)
KF_OPERATOR(<, lt)
KF_OPERATOR(<=, le)
KF_OPERATOR(>, gt)
KF_OPERATOR(>=, ge)
#undef KF_OPERATOR
#endif

#undef KF_P
#undef KF_U16
#undef KF_NAN
#undef KF_SPELL1
#undef KF_SPELL2
#undef KF_SPELL3
