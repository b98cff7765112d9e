// Barriers, warp operations and fences by CUDA's names.
// Knows lanes, masks and what each function returns; the runtime decides when every lane has come.
#pragma once
#include "kf_runtime.h"

enum : uint32_t {
  KF_SYNC, KF_SHFL, KF_ALL, KF_ANY, KF_UNI, KF_BALLOT, KF_MATCH_ANY, KF_MATCH_ALL,
  KF_ADD, KF_MIN_S, KF_MIN_U, KF_MAX_S, KF_MAX_U, KF_AND, KF_OR, KF_XOR, KF_COLLECT
};

KF_INLINE uint32_t kf_lane() { return KF_CTX(linear) & 31u; }

template <class T> KF_INLINE uint64_t kf_to_bits(T value) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most eight bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T> KF_INLINE T kf_from_bits(uint64_t bits) {
  T value;
  __builtin_memcpy(static_cast<void *>(&value), &bits, sizeof(T));
  return value;
}

// A barrier is known by its site, not by its line: two may stand on one line.
#define __syncthreads() ((void)kf_barrier(0, __COUNTER__, 0))
#define __syncthreads_count(predicate) kf_barrier(1, __COUNTER__, (predicate) != 0)
#define __syncthreads_and(predicate) kf_barrier(2, __COUNTER__, (predicate) != 0)
#define __syncthreads_or(predicate) kf_barrier(3, __COUNTER__, (predicate) != 0)
#define __activemask() kf_converge(__COUNTER__)

KF_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { kf_warp(KF_SYNC, mask, 0, 0); }
KF_INLINE void __threadfence() { kf_fence(1); }
KF_INLINE void __threadfence_block() { kf_fence(0); }
KF_INLINE void __threadfence_system() { kf_fence(2); }

template <class T> KF_INLINE T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  uint32_t lane = kf_lane(), w = static_cast<uint32_t>(width);
  return kf_from_bits<T>(kf_warp(KF_SHFL, mask, kf_to_bits(value), (lane & ~(w - 1)) | (static_cast<uint32_t>(source) & (w - 1))));
}
template <class T> KF_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  uint32_t lane = kf_lane(), in = lane & (static_cast<uint32_t>(width) - 1);
  return kf_from_bits<T>(kf_warp(KF_SHFL, mask, kf_to_bits(value), delta > in ? lane : lane - delta));
}
template <class T> KF_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  uint32_t lane = kf_lane(), w = static_cast<uint32_t>(width), in = lane & (w - 1);
  return kf_from_bits<T>(kf_warp(KF_SHFL, mask, kf_to_bits(value), delta >= w - in ? lane : lane + delta));
}
template <class T> KF_INLINE T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  uint32_t lane = kf_lane(), w = static_cast<uint32_t>(width), to = lane ^ static_cast<uint32_t>(with);
  return kf_from_bits<T>(kf_warp(KF_SHFL, mask, kf_to_bits(value), to > (lane | (w - 1)) ? lane : to));
}

KF_INLINE int __all_sync(unsigned mask, int predicate) { return static_cast<int>(kf_warp(KF_ALL, mask, predicate != 0, 0)); }
KF_INLINE int __any_sync(unsigned mask, int predicate) { return static_cast<int>(kf_warp(KF_ANY, mask, predicate != 0, 0)); }
KF_INLINE int __uni_sync(unsigned mask, int predicate) { return static_cast<int>(kf_warp(KF_UNI, mask, predicate != 0, 0)); }
KF_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(kf_warp(KF_BALLOT, mask, predicate != 0, 0));
}
template <class T> KF_INLINE unsigned __match_any_sync(unsigned mask, T value) {
  return static_cast<unsigned>(kf_warp(KF_MATCH_ANY, mask, kf_to_bits(value), 0));
}
template <class T> KF_INLINE unsigned __match_all_sync(unsigned mask, T value, int *predicate) {
  unsigned same = static_cast<unsigned>(kf_warp(KF_MATCH_ALL, mask, kf_to_bits(value), 0));
  *predicate = same != 0;
  return same;
}
KF_INLINE unsigned __reduce_add_sync(unsigned mask, unsigned v) { return static_cast<unsigned>(kf_warp(KF_ADD, mask, v, 0)); }
KF_INLINE unsigned __reduce_min_sync(unsigned mask, unsigned v) { return static_cast<unsigned>(kf_warp(KF_MIN_U, mask, v, 0)); }
KF_INLINE unsigned __reduce_max_sync(unsigned mask, unsigned v) { return static_cast<unsigned>(kf_warp(KF_MAX_U, mask, v, 0)); }
KF_INLINE unsigned __reduce_and_sync(unsigned mask, unsigned v) { return static_cast<unsigned>(kf_warp(KF_AND, mask, v, 0)); }
KF_INLINE unsigned __reduce_or_sync(unsigned mask, unsigned v) { return static_cast<unsigned>(kf_warp(KF_OR, mask, v, 0)); }
KF_INLINE unsigned __reduce_xor_sync(unsigned mask, unsigned v) { return static_cast<unsigned>(kf_warp(KF_XOR, mask, v, 0)); }
KF_INLINE int kf_signed(uint64_t v) { return static_cast<int>(static_cast<uint32_t>(v)); }
KF_INLINE int __reduce_add_sync(unsigned mask, int v) { return kf_signed(kf_warp(KF_ADD, mask, static_cast<uint32_t>(v), 0)); }
KF_INLINE int __reduce_min_sync(unsigned mask, int v) { return kf_signed(kf_warp(KF_MIN_S, mask, static_cast<uint32_t>(v), 0)); }
KF_INLINE int __reduce_max_sync(unsigned mask, int v) { return kf_signed(kf_warp(KF_MAX_S, mask, static_cast<uint32_t>(v), 0)); }

// Every lane of the mask hands over one address, seen by all at once by the last to come, which runs `with(addresses, mask)` for all.
typedef void (*kf_collector)(uint64_t *values, uint32_t mask);
// Where a collector writes is each lane's own; the runtime passes it as a value beside the address.
struct kf_collect {
  kf_collector with;
  void *mine;
};
KF_INLINE void kf_collect_lanes(unsigned mask, kf_collector with, void *mine) {
  kf_collect request{with, mine};
  kf_warp(KF_COLLECT, mask, reinterpret_cast<uint64_t>(&request), 0);
}
