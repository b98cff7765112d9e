// Eight-bit floats: kf_fp8.h. Includes the 16-bit types, as CUDA's header does.
#pragma once
#include "cuda_bf16.h"
#include "kf_fp8.h"
