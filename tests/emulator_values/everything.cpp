// Every function of CUDA's mathematics (CUDA Math API, chapters 3 to 5: single and double precision, integers, and the type-less spellings of C++), by name, in both
// widths, as a source may call them that includes nothing. Compiled behind the prelude, not run; `must` makes the result's type part of the promise.
template <class Want, class Got> struct Same;
template <class T> struct Same<T, T> {};
#define must(T, ...) { auto value = __VA_ARGS__; (void)value; (void)sizeof(Same<T, decltype(value)>); }

// Of one value: `sin(double)`, `sinf(float)` and `sin(float)`.
#define ONE(n, nf) must(double, n(d)) must(float, nf(x)) must(float, n(x))
#define TWO(n, nf) must(double, n(d, e)) must(float, nf(x, y)) must(float, n(x, y))
#define TO(T, n, nf) must(T, n(d)) must(T, nf(x)) must(T, n(x))

__global__ void both_widths(float x, float y, float z, float *s, float *c, double d, double e, double g, double *ds, double *dc, int i, long l, const float *v,
                            const double *w) {
  ONE(acos, acosf) ONE(acosh, acoshf) ONE(asin, asinf) ONE(asinh, asinhf) ONE(atan, atanf) ONE(atanh, atanhf) ONE(cbrt, cbrtf) ONE(ceil, ceilf)
  ONE(cos, cosf) ONE(cosh, coshf) ONE(cospi, cospif) ONE(cyl_bessel_i0, cyl_bessel_i0f) ONE(cyl_bessel_i1, cyl_bessel_i1f) ONE(erf, erff) ONE(erfc, erfcf)
  ONE(erfcinv, erfcinvf) ONE(erfcx, erfcxf) ONE(erfinv, erfinvf) ONE(exp, expf) ONE(exp10, exp10f) ONE(exp2, exp2f) ONE(expm1, expm1f) ONE(fabs, fabsf)
  ONE(floor, floorf) ONE(j0, j0f) ONE(j1, j1f) ONE(lgamma, lgammaf) ONE(log, logf) ONE(log10, log10f) ONE(log1p, log1pf) ONE(log2, log2f) ONE(logb, logbf)
  ONE(nearbyint, nearbyintf) ONE(normcdf, normcdff) ONE(normcdfinv, normcdfinvf) ONE(rcbrt, rcbrtf) ONE(rint, rintf) ONE(round, roundf) ONE(rsqrt, rsqrtf)
  ONE(sin, sinf) ONE(sinh, sinhf) ONE(sinpi, sinpif) ONE(sqrt, sqrtf) ONE(tan, tanf) ONE(tanh, tanhf) ONE(tgamma, tgammaf) ONE(trunc, truncf) ONE(y0, y0f)
  ONE(y1, y1f)
  TWO(atan2, atan2f) TWO(copysign, copysignf) TWO(fdim, fdimf) TWO(fmax, fmaxf) TWO(fmin, fminf) TWO(fmod, fmodf) TWO(hypot, hypotf)
  TWO(nextafter, nextafterf) TWO(pow, powf) TWO(remainder, remainderf) TWO(rhypot, rhypotf) TWO(fdivide, fdividef)
  TO(int, ilogb, ilogbf) TO(long, lrint, lrintf) TO(long, lround, lroundf) TO(long long, llrint, llrintf) TO(long long, llround, llroundf)
  must(double, fma(d, e, g)) must(float, fmaf(x, y, z)) must(float, fma(x, y, z))
  must(double, frexp(d, &i)) must(float, frexpf(x, &i)) must(float, frexp(x, &i))
  must(double, ldexp(d, i)) must(float, ldexpf(x, i)) must(float, ldexp(x, i))
  must(double, scalbn(d, i)) must(float, scalbnf(x, i)) must(float, scalbn(x, i))
  must(double, scalbln(d, l)) must(float, scalblnf(x, l)) must(float, scalbln(x, l))
  must(double, modf(d, ds)) must(float, modff(x, s)) must(float, modf(x, s))
  must(double, remquo(d, e, &i)) must(float, remquof(x, y, &i)) must(float, remquo(x, y, &i))
  must(double, jn(2, d)) must(float, jnf(2, x)) must(float, jn(2, x)) must(double, yn(2, d)) must(float, ynf(2, x)) must(float, yn(2, x))
  must(double, nan("")) must(float, nanf(""))
  must(double, norm(2, w)) must(float, normf(2, v)) must(double, rnorm(2, w)) must(float, rnormf(2, v))
  must(double, norm3d(d, d, d)) must(float, norm3df(x, x, x)) must(double, rnorm3d(d, d, d)) must(float, rnorm3df(x, x, x))
  must(double, norm4d(d, d, d, d)) must(float, norm4df(x, x, x, x)) must(double, rnorm4d(d, d, d, d)) must(float, rnorm4df(x, x, x, x))
  sincos(d, ds, dc), sincosf(x, s, c), sincos(x, s, c), sincospi(d, ds, dc), sincospif(x, s, c), sincospi(x, s, c);
  must(bool, isnan(d)) must(bool, isnan(x)) must(bool, isinf(d)) must(bool, isinf(x)) must(bool, isfinite(d)) must(bool, isfinite(x))
  must(bool, signbit(d)) must(bool, signbit(x))
  must(double, max(d, e)) must(float, max(x, y)) must(double, min(d, e)) must(float, min(x, y)) must(double, max(x, d)) must(double, min(d, x))
  must(double, abs(d)) must(float, abs(x)) must(double, pow(d, i)) must(float, powf(x, 2)) must(float, sqrt(x) + 1)
  // C++'s own spelling too.
  must(double, std::sin(d)) must(float, std::sin(x)) must(float, std::fma(x, y, z)) must(bool, std::isnan(x)) must(float, std::abs(x)) must(double, std::fmax(d, e))
  must(float, INFINITY) must(float, NAN) must(double, M_PI) must(double, HUGE_VAL) must(float, FLT_MAX) must(double, DBL_EPSILON) must(float, CUDART_PI_F)
}

__global__ void integers(int i, int j, unsigned u, unsigned w, long long l, long long m, unsigned long long o) {
  must(int, abs(i)) must(long, labs(1l)) must(long long, llabs(l)) must(long long, abs(l))
  must(int, max(i, j)) must(int, min(i, j)) must(unsigned, max(u, w)) must(unsigned, min(u, w)) must(unsigned, umax(u, w)) must(unsigned, umin(u, w))
  must(long long, llmax(l, m)) must(long long, llmin(l, m)) must(unsigned long long, ullmax(o, o)) must(unsigned long long, ullmin(o, o))
  must(long long, max(l, m)) must(unsigned long long, min(o, o))
  must(unsigned, __brev(u)) must(unsigned long long, __brevll(o)) must(unsigned, __byte_perm(u, w, u)) must(int, __clz(i)) must(int, __clzll(l))
  must(int, __ffs(i)) must(int, __ffsll(l)) must(unsigned, __fns(u, 0, 1)) must(unsigned, __funnelshift_l(u, w, u)) must(unsigned, __funnelshift_lc(u, w, u))
  must(unsigned, __funnelshift_r(u, w, u)) must(unsigned, __funnelshift_rc(u, w, u)) must(int, __hadd(i, j)) must(int, __mul24(i, j))
  must(long long, __mul64hi(l, m)) must(int, __mulhi(i, j)) must(int, __popc(u)) must(int, __popcll(o)) must(int, __rhadd(i, j)) must(unsigned, __sad(i, j, u))
  must(unsigned, __uhadd(u, w)) must(unsigned, __umul24(u, w)) must(unsigned long long, __umul64hi(o, o)) must(unsigned, __umulhi(u, w))
  must(unsigned, __urhadd(u, w)) must(unsigned, __usad(u, w, u))
}

// What else CUDA C++ has without an include.
__global__ void others(unsigned char *bytes, size_t n, uint32_t u, int64_t l, clock_t t) {
  assert(n > 0);
  printf("%u %lld\n", u, static_cast<long long>(l));
  memcpy(bytes, bytes + 1, 1), memset(bytes, 0, n), t = clock();
  new (bytes) char(1);
  for (int i : {1, 2}) bytes[i] = static_cast<unsigned char>(t + INT_MAX - UINT_MAX + CHAR_BIT);
  free(malloc(n)), bytes = nullptr;
}
