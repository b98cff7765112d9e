// Split barriers by the names of CUDA's primitives. What they do stands in kf_mbarrier.h.
#pragma once
#include "kf_mbarrier.h"

typedef uint64_t __mbarrier_t;
typedef uint64_t __mbarrier_token_t;
KF_INLINE uint32_t __mbarrier_maximum_count() { return (1u << 20) - 1; }
KF_INLINE void __mbarrier_init(__mbarrier_t *bar, uint32_t count) { kf_mbar_init(bar, count); }
KF_INLINE void __mbarrier_inval(__mbarrier_t *) {}
KF_INLINE __mbarrier_token_t __mbarrier_arrive(__mbarrier_t *bar) { return kf_mbar_arrive(bar, 1); }
KF_INLINE __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t *bar) { return kf_mbar_arrive(bar, 1, 1); }
KF_INLINE uint32_t __mbarrier_token_pending_count(__mbarrier_token_t token) { return static_cast<uint32_t>(kf_mbar_pending(token)); }
KF_INLINE bool __mbarrier_test_wait(__mbarrier_t *bar, __mbarrier_token_t token) {
  return kf_mbar_try(bar, kf_mbar_phase(token));
}
KF_INLINE bool __mbarrier_test_wait_parity(__mbarrier_t *bar, bool parity) {
  return kf_mbar_try_parity(bar, parity);
}
KF_INLINE bool __mbarrier_try_wait(__mbarrier_t *bar, __mbarrier_token_t token, uint32_t) { return __mbarrier_test_wait(bar, token); }
KF_INLINE bool __mbarrier_try_wait_parity(__mbarrier_t *bar, bool parity, uint32_t) { return __mbarrier_test_wait_parity(bar, parity); }
