// All floats narrower than CUDA's own: 16 and 8 bits, tf32, with what is atomic on them.
#pragma once
#include "kf_atomic.h"
#include "kf_mma_values.h"

KF_ATOMIC_NARROW(__half, __half2)
KF_ATOMIC_NARROW(__nv_bfloat16, __nv_bfloat162)
