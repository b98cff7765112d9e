// Eight-bit floats stand in kf_floats.h, with all narrow floats.
#pragma once
#include "kf_floats.h"
