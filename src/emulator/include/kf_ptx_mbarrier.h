// `mbarrier` and bulk copies of translated inline PTX, over the words of kf_mbarrier.h.
// Knows how instructions count and what they order; addresses are checked where they are accessed.
#pragma once
#include "kf_copy.h"
#include "kf_mbarrier.h"
#include "kf_ptx_memory.h"

KF_FN uint64_t *kf_ptx_mbar(char *p) { return reinterpret_cast<uint64_t *>(p); }
KF_FN void kf_ptx_mbar_init(char *p, uint32_t count) { kf_mbar_init(kf_ptx_mbar(p), count); }
// The memory may be used otherwise from now on.
KF_FN void kf_ptx_mbar_inval(char *p) { *kf_ptx_mbar(p) = 0; }
template <bool Drops, bool Relaxed> KF_FN uint64_t kf_ptx_mbar_arrive(char *p, uint32_t arrivals, uint32_t bytes) {
  return kf_mbar_arrive(kf_ptx_mbar(p), arrivals, Drops ? arrivals : 0, bytes, !Relaxed);
}
template <bool Relaxed> KF_FN bool kf_ptx_mbar_wait_state(char *p, uint64_t state) { return kf_mbar_try(kf_ptx_mbar(p), kf_mbar_phase(state), !Relaxed); }
template <bool Relaxed> KF_FN bool kf_ptx_mbar_wait_parity(char *p, uint32_t parity) { return kf_mbar_try_parity(kf_ptx_mbar(p), (parity & 1) != 0, !Relaxed); }
KF_FN void kf_ptx_bulk(char *to, const char *from, uint32_t size) { kf_copy_bulk(to, from, size); }
