// What the test programs share: a check that counts, a generator, and an oracle of rounding that works on values by
// arithmetic in the x87 format, not on bits, so that it has nothing in common with the headers under test.
#pragma once
#include <initializer_list>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
#define CHECK(condition, ...)                                                                                          \
  do {                                                                                                                 \
    if (!(condition) && ++failures <= 20) {                                                                            \
      printf("line %d: %s: ", __LINE__, #condition);                                                                   \
      printf(__VA_ARGS__);                                                                                             \
      printf("\n");                                                                                                    \
    }                                                                                                                  \
  } while (0)

// splitmix64, seeded alike in every run.
static uint64_t state = 42;
static inline uint64_t draw() {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
template <class To, class From> static inline To as(From v) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  memcpy(&to, &v, sizeof to);
  return to;
}

// A binary format: bits of exponent and fraction, and whether its top exponent is spent on infinity and NaN.
struct Format {
  int exponent, fraction;
  bool ieee;
  int bias() const { return (1 << (exponent - 1)) - 1; }
  unsigned sign() const { return 1u << (exponent + fraction); }
  unsigned largest() const { return ieee ? (((1u << exponent) - 1) << fraction) - 1 : sign() - 2; }
  bool nan(unsigned p) const { return (p & (sign() - 1)) > (ieee ? largest() + 1 : largest()); }
  // The value of a pattern, reading infinity's as the power of two that would follow.
  long double value(unsigned p) const {
    unsigned a = p & (sign() - 1), e = a >> fraction, f = a & ((1u << fraction) - 1);
    long double m = ldexpl(e ? (1u << fraction) + f : f, (e ? static_cast<int>(e) : 1) - bias() - fraction);
    return p & sign() ? -m : m;
  }
};
static const Format f16{5, 10, true}, bf16{8, 7, true}, e4m3{4, 3, false}, e5m2{5, 2, true};

// Whether pattern `r` is the nearest to an exact value v, ties to even; `side(m)` gives the sign of v - m. Infinity's
// pattern is right exactly if v reaches the midpoint between the largest value and the power of two after it.
template <class Side> static bool nearest(const Format& f, unsigned r, Side side) {
  unsigned a = r & (f.sign() - 1);
  long double s = r & f.sign() ? -1 : 1, here = f.value(a);
  long double below = a ? (here + f.value(a - 1)) / 2 : 0, above = (here + f.value(a + 1)) / 2;
  bool even = !(a & 1), infinite = a == f.largest() + 1; // in e4m3 that is the NaN that stands for overflow
  int low = side(s * below) * (s < 0 ? -1 : 1), high = side(s * above) * (s < 0 ? -1 : 1);
  bool above_low = a == 0 ? low >= 0 : low > 0 || (low == 0 && even);
  bool under_high = infinite || high < 0 || (high == 0 && even);
  return above_low && under_high;
}
static inline int sign_of(long double v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }
// The sign of a + b + c, each of few bits: the two greatest may cancel, and then do so exactly.
static inline int sign_of_sum(long double a, long double b, long double c) {
  if (fabsl(a) < fabsl(b)) { long double t = a; a = b; b = t; }
  if (fabsl(b) < fabsl(c)) { long double t = b; b = c; c = t; }
  if (fabsl(a) < fabsl(b)) { long double t = a; a = b; b = t; }
  return sign_of((a + b) + c);
}

// v rounded by mode 'n', 'z', 'u' or 'd' to `bits` significant bits, the least place being 2^least.
static inline long double round_to(long double v, int bits, int least, char mode) {
  if (v == 0 || !isfinite(v)) return v;
  int e;
  frexpl(v, &e);
  int place = e - bits > least ? e - bits : least;
  long double scaled = ldexpl(v, -place);
  scaled = mode == 'n'   ? nearbyintl(scaled)
           : mode == 'z' ? truncl(scaled)
           : mode == 'u' ? ceill(scaled)
                         : floorl(scaled);
  return ldexpl(scaled, place);
}
static inline int finish() {
  if (failures) printf("%d checks failed\n", failures);
  return failures != 0;
}
