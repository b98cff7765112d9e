// <cmath> without the special functions of C++17 (beta, riemann_zeta, ...), which take long to parse and which no device code can call. The switch is
// libstdc++'s; elsewhere nothing is lost but time. Without the C library's functions of further types (`sinf32x`, `sinf128`) either, three quarters of its
// <math.h>, which C++ has no name for; that switch is glibc's. Comes before every other header of the standard library, of which some bring <cmath> in.
#pragma once
#if __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif
// First, for <math.h> of libstdc++ includes it.
#include <cstdlib>
#pragma push_macro("__USE_GNU")
#undef __USE_GNU
#include <math.h>
#pragma pop_macro("__USE_GNU")
#ifdef __GLIBC__
// Of what that leaves out, in this or an older release, CUDA has these too.
extern "C" double exp10(double) noexcept;
extern "C" float exp10f(float) noexcept;
extern "C" void sincos(double, double *, double *) noexcept;
extern "C" void sincosf(float, float *, float *) noexcept;
#endif
#include <cmath>
