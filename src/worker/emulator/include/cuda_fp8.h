// Eight-bit floats stand in kf_fp8.h.
#pragma once
