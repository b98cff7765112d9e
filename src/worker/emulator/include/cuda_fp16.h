// Half types stand in kf_half.h.
#pragma once
