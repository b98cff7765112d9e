// bfloat16 types stand in kf_bf16.h.
#pragma once
