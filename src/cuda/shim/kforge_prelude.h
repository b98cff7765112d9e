// Comes before every source that NVRTC compiles: what nvcc's own prelude and the C library's headers give without being asked.
#ifndef KFORGE_PRELUDE_H
#define KFORGE_PRELUDE_H
#include <stdint.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#endif
