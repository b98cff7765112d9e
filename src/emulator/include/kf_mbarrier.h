// Split barriers in a word of memory: arrivals still missing (bits 0 to 19), arrivals of a phase (20 to 39), bytes that copies still owe (40 to 60, signed,
// because a copy may come before what expects it), the phase (from 61; only the next one is ever asked for).
// Knows phases and who may go on; not the classes and instructions over it. Arriving hands over what came before, waiting takes it over.
#pragma once
#include "kf_atomic.h"

KF_INLINE constexpr uint64_t kf_mbar_start(uint64_t count) { return count << 20 | count; }
KF_INLINE constexpr uint64_t kf_mbar_phase(uint64_t word) { return word >> 61; }
KF_INLINE constexpr uint64_t kf_mbar_pending(uint64_t word) { return word & 0xfffffu; }
KF_INLINE constexpr int64_t kf_mbar_bytes(uint64_t word) { return static_cast<int64_t>(word << 3) >> 43; }
// The word after arrivals, drops and bytes. A phase ends when neither arrivals nor bytes are missing.
KF_INLINE constexpr uint64_t kf_mbar_next(uint64_t word, uint64_t arrivals, uint64_t dropped, int64_t bytes) {
  uint64_t expected = (word >> 20 & 0xfffffu) - dropped, pending = kf_mbar_pending(word) - arrivals, phase = kf_mbar_phase(word);
  int64_t owed = kf_mbar_bytes(word) + bytes;
  if (pending == 0 && owed == 0) pending = expected, ++phase;
  return phase << 61 | (static_cast<uint64_t>(owed) & 0x1fffffu) << 40 | (expected & 0xfffffu) << 20 | (pending & 0xfffffu);
}

// A plain store: whoever arrives without a barrier in between races with it.
KF_INLINE void kf_mbar_init(uint64_t *bar, uint64_t count) { *bar = kf_mbar_start(count); }

// `count` arrivals, as many fewer of later phases for each that drops out, and bytes that this phase expects. Gives the word before.
KF_INLINE uint64_t kf_mbar_arrive(uint64_t *bar, uint64_t count, uint64_t dropped = 0, int64_t bytes = 0, bool releases = true) {
  if (releases) kf_fence(0);
  return kf_rmw(bar, [=](uint64_t word) { return kf_mbar_next(word, count, dropped, bytes); });
}
// Expects bytes, or fewer because a copy has brought some.
KF_INLINE void kf_mbar_tx(uint64_t *bar, int64_t bytes) { kf_mbar_arrive(bar, 0, 0, bytes); }
// The copies that this thread has requested are done, which is an arrival if it is counted as one.
KF_INLINE void kf_mbar_copied(uint64_t *bar, bool counted) {
  kf_fence(0);
  kf_rmw(bar, [=](uint64_t word) { return counted ? kf_mbar_next(word, 1, 0, 0) : word; });
}
// Whether the phase, or the one of that parity, is over.
KF_INLINE bool kf_mbar_over(const uint64_t *bar, uint64_t phase, bool acquires = true) {
  bool over = kf_mbar_phase(kf_atomic_load(bar)) != phase;
  if (over && acquires) kf_fence(0);
  return over;
}
KF_INLINE bool kf_mbar_parity_over(const uint64_t *bar, bool parity, bool acquires = true) {
  bool over = (kf_mbar_phase(kf_atomic_load(bar)) & 1) != static_cast<uint64_t>(parity);
  if (over && acquires) kf_fence(0);
  return over;
}
// The same, and lets others run before it says no, because it is asked in loops.
KF_INLINE bool kf_mbar_try(const uint64_t *bar, uint64_t phase, bool acquires = true) {
  if (kf_mbar_over(bar, phase, acquires)) return true;
  kf_poll(0);
  return false;
}
KF_INLINE bool kf_mbar_try_parity(const uint64_t *bar, bool parity, bool acquires = true) {
  if (kf_mbar_parity_over(bar, parity, acquires)) return true;
  kf_poll(0);
  return false;
}
KF_INLINE void kf_mbar_wait(const uint64_t *bar, uint64_t phase) {
  while (!kf_mbar_over(bar, phase)) kf_poll(0);
}
KF_INLINE void kf_mbar_wait_parity(const uint64_t *bar, bool parity) {
  while (!kf_mbar_parity_over(bar, parity)) kf_poll(0);
}
