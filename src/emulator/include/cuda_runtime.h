// Everything of it that kernels use stands in kforge_cuda.h, which is in front of every source.
#pragma once
