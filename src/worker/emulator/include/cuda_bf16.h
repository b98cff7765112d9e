// bfloat16 types: kf_bf16.h, and what is atomic on them. Includes the half types, as CUDA's header does.
#pragma once
#include "cuda_fp16.h"
#include "kf_bf16.h"
KF_ATOMIC_NARROW(__nv_bfloat16, __nv_bfloat162)
