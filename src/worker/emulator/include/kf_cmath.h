// <cmath> without the special functions of C++17 (beta, riemann_zeta, ...), which take long to parse and which no device code can call. The switch is
// libstdc++'s; elsewhere nothing is lost but time. Comes before every other header of the standard library, of which some bring <cmath> in.
#pragma once
#if __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif
#include <cmath>
