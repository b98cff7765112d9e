// Half types: kf_half.h, and what is atomic on them.
#pragma once
#include "kf_atomic.h"
#include "kf_half.h"
KF_ATOMIC_NARROW(__half, __half2)
