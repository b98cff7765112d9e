// CUDA's constants of single and double precision stand in kf_math.h.
#pragma once
#include "kf_math.h"
