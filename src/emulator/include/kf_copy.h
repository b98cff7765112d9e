// Copies between global and shared memory by one thread or by each thread of a group its share; in words as wide as the addresses allow, so that every
// access is seen as the hardware would make it. Knows bytes, not when a copy may be relied on.
#pragma once
#include "kf_device.h"
#include "kf_runtime.h"
#include "kf_vector_types.h"

template <class W> KF_INLINE void kf_copy_as(void *to, const void *from, size_t bytes, size_t rank, size_t size) {
  // Words without a value may be members that nobody uses; in shared memory, a use of them shows.
  const uint32_t kind = __isShared(to) ? KF_COPY : KF_WHOLE | KF_COPY;
  (void)kind;
  for (size_t i = rank; i < bytes / sizeof(W); i += size) {
    W *there = static_cast<W *>(to) + i;
    const W *here = static_cast<const W *>(from) + i;
    KF_WATCH(here, sizeof(W), kind);
    KF_WATCH(there, sizeof(W), KF_WRITE | kind);
    kf_copy_raw(there, here);
  }
}
KF_INLINE void kf_copy_ranked(void *to, const void *from, size_t bytes, size_t rank, size_t size) {
  size_t all = reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from) | bytes;
  if (all % 16 == 0) kf_copy_as<uint4>(to, from, bytes, rank, size);
  else if (all % 8 == 0) kf_copy_as<uint2>(to, from, bytes, rank, size);
  else if (all % 4 == 0) kf_copy_as<uint32_t>(to, from, bytes, rank, size);
  else if (all % 2 == 0) kf_copy_as<uint16_t>(to, from, bytes, rank, size);
  else kf_copy_as<uint8_t>(to, from, bytes, rank, size);
}
KF_INLINE void kf_copy_bytes(void *to, const void *from, size_t bytes) { kf_copy_ranked(to, from, bytes, 0, 1); }
template <class Group> KF_INLINE void kf_copy_share(const Group &group, void *to, const void *from, size_t bytes) {
  kf_copy_ranked(to, from, bytes, group.thread_rank(), group.size());
}
// One of the bulk engine: 16 bytes at a time, so that every address is seen to be aligned to that.
KF_INLINE void kf_copy_bulk(void *to, const void *from, size_t bytes) {
  if (bytes % 16 != 0) {
    kf_not_emulated("a bulk copy of a size that is no multiple of 16");
    return;
  }
  kf_copy_as<uint4>(to, from, bytes, 0, 1);
}

#ifndef KF_CCCL
// A size with a promise of alignment, and a group of one.
namespace cuda {
template <size_t Bytes> struct aligned_size_t {
  static constexpr size_t align = Bytes;
  size_t value;
  KF_INLINE constexpr explicit aligned_size_t(size_t v) : value(v) {}
  KF_INLINE constexpr operator size_t() const { return value; }
};
} // namespace cuda
#endif
