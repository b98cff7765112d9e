// The headers of the C++ standard library that stand in front of every source, as little of them as CUDA C++ can do with: each compilation parses all of this.
// Named in angle brackets, so that `#include_next` goes on behind this folder: a package's own `math.h`, which its include paths find first, is not taken.
#pragma once
#pragma GCC system_header
// <cmath> comes before every other header, because some include it. Without the special functions of C++17 (beta, riemann_zeta, ...), which no device code
// can call: that switch is libstdc++'s.
#if __has_include(<bits/c++config.h>)
#include_next <bits/c++config.h>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif
// First, because <cmath> includes the C library's <stdlib.h>, and nothing of that is left out.
#include_next <cstdlib>
// Without its functions of further types (`sinf32x`, `sinf128`), most of the C library's <math.h>; CUDA has none of them. That switch is glibc's.
#if __has_include(<bits/floatn.h>)
#include_next <bits/floatn.h>
#pragma push_macro("__HAVE_FLOAT16")
#pragma push_macro("__HAVE_FLOAT32")
#pragma push_macro("__HAVE_FLOAT64")
#pragma push_macro("__HAVE_FLOAT128")
#pragma push_macro("__HAVE_FLOAT32X")
#pragma push_macro("__HAVE_FLOAT64X")
#pragma push_macro("__HAVE_DISTINCT_FLOAT128")
#undef __HAVE_FLOAT16
#undef __HAVE_FLOAT32
#undef __HAVE_FLOAT64
#undef __HAVE_FLOAT128
#undef __HAVE_FLOAT32X
#undef __HAVE_FLOAT64X
#undef __HAVE_DISTINCT_FLOAT128
#define __HAVE_FLOAT16 0
#define __HAVE_FLOAT32 0
#define __HAVE_FLOAT64 0
#define __HAVE_FLOAT128 0
#define __HAVE_FLOAT32X 0
#define __HAVE_FLOAT64X 0
#define __HAVE_DISTINCT_FLOAT128 0
#endif
#include_next <cmath>
#if __has_include(<bits/floatn.h>)
#pragma pop_macro("__HAVE_FLOAT16")
#pragma pop_macro("__HAVE_FLOAT32")
#pragma pop_macro("__HAVE_FLOAT64")
#pragma pop_macro("__HAVE_FLOAT128")
#pragma pop_macro("__HAVE_FLOAT32X")
#pragma pop_macro("__HAVE_FLOAT64X")
#pragma pop_macro("__HAVE_DISTINCT_FLOAT128")
#endif
// Into the global namespace, where CUDA has them, in every width. As <math.h> does, which would take a package's own <cmath>.
using std::abs; using std::acos; using std::acosh; using std::asin; using std::asinh; using std::atan; using std::atan2; using std::atanh; using std::cbrt;
using std::ceil; using std::copysign; using std::cos; using std::cosh; using std::erf; using std::erfc; using std::exp; using std::exp2; using std::expm1;
using std::fabs; using std::fdim; using std::floor; using std::fma; using std::fmax; using std::fmin; using std::fmod; using std::fpclassify;
using std::frexp; using std::hypot; using std::ilogb; using std::isfinite; using std::isgreater; using std::isgreaterequal; using std::isinf;
using std::isless; using std::islessequal; using std::islessgreater; using std::isnan; using std::isnormal; using std::isunordered; using std::ldexp;
using std::lgamma; using std::llrint; using std::llround; using std::log; using std::log10; using std::log1p; using std::log2; using std::logb;
using std::lrint; using std::lround; using std::modf; using std::nearbyint; using std::nextafter; using std::nexttoward; using std::pow; using std::remainder;
using std::remquo; using std::rint; using std::round; using std::scalbln; using std::scalbn; using std::signbit; using std::sin; using std::sinh;
using std::sqrt; using std::tan; using std::tanh; using std::tgamma; using std::trunc;
#ifdef __GLIBCXX__
// That is all libstdc++'s <math.h> would do, where a source includes it behind macros of its own: `#define round 3`.
#ifndef _GLIBCXX_MATH_H
#define _GLIBCXX_MATH_H 1
#endif
#endif

#ifndef KF_WITHOUT_STD
#include_next <algorithm>
#include_next <array>
#include_next <limits>
#endif
#include_next <cfloat>
#include_next <climits>
#include_next <cstdarg>
#include_next <cstddef>
#include_next <cstdint>
#include_next <cstdio>
#include_next <cstring>
#include_next <ctime>
#include_next <initializer_list>
#include_next <new>
#include_next <type_traits>
#include_next <utility>
