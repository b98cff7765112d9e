// Split barriers in a word of memory: arrivals still missing (bits 0 to 19), arrivals of a phase (20 to 39), the phase (from 40).
// Knows phases and who may go on; not the classes over it. Arriving hands over what came before, waiting takes it over.
#pragma once
#include "kf_atomic.h"

KF_INLINE constexpr uint64_t kf_mbar_start(uint64_t count) { return count << 20 | count; }
KF_INLINE constexpr uint64_t kf_mbar_phase(uint64_t word) { return word >> 40; }
KF_INLINE constexpr uint64_t kf_mbar_pending(uint64_t word) { return word & 0xfffffu; }

// A plain store: whoever arrives without a barrier in between races with it.
KF_INLINE void kf_mbar_init(uint64_t *bar, uint64_t count) { *bar = kf_mbar_start(count); }

// `count` arrivals, and as many fewer of later phases for each that drops out. Gives the word before.
KF_INLINE uint64_t kf_mbar_arrive(uint64_t *bar, uint64_t count, uint64_t dropped = 0) {
  kf_fence(0);
  return kf_rmw(bar, [=](uint64_t word) {
    uint64_t expected = (word >> 20 & 0xfffffu) - dropped, pending = kf_mbar_pending(word) - count, phase = kf_mbar_phase(word);
    if (pending == 0) pending = expected, ++phase;
    return phase << 40 | expected << 20 | pending;
  });
}
// Whether the phase, or the one of that parity, is over.
KF_INLINE bool kf_mbar_over(const uint64_t *bar, uint64_t phase) {
  bool over = kf_mbar_phase(kf_atomic_load(bar)) != phase;
  if (over) kf_fence(0);
  return over;
}
KF_INLINE bool kf_mbar_parity_over(const uint64_t *bar, bool parity) {
  bool over = (kf_mbar_phase(kf_atomic_load(bar)) & 1) != static_cast<uint64_t>(parity);
  if (over) kf_fence(0);
  return over;
}
KF_INLINE void kf_mbar_wait(const uint64_t *bar, uint64_t phase) {
  while (!kf_mbar_over(bar, phase)) kf_poll();
}
KF_INLINE void kf_mbar_wait_parity(const uint64_t *bar, bool parity) {
  while (!kf_mbar_parity_over(bar, parity)) kf_poll();
}
