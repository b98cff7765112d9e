// Asynchronous copies of one thread: done at once, which is one of the orders CUDA allows. Both sides are watched like any access.
#pragma once
#include "kf_runtime.h"

KF_INLINE void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t zeroed = 0) {
  size_t copied = size - zeroed;
  if (size == 16 && zeroed == 0) {
    *static_cast<uint4 *>(to) = *static_cast<const uint4 *>(from);
  } else if (size == 8 && zeroed == 0) {
    *static_cast<uint2 *>(to) = *static_cast<const uint2 *>(from);
  } else if (size == 4 && zeroed == 0) {
    *static_cast<unsigned *>(to) = *static_cast<const unsigned *>(from);
  } else {
    for (size_t i = 0; i < size; ++i)
      static_cast<unsigned char *>(to)[i] = i < copied ? static_cast<const unsigned char *>(from)[i] : static_cast<unsigned char>(0);
  }
}
KF_INLINE void __pipeline_commit() {}
KF_INLINE void __pipeline_wait_prior(size_t) {}
