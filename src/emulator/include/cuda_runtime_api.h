// See cuda_runtime.h.
#pragma once
