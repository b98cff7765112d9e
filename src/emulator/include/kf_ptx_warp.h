// Operations of a warp by PTX's names. Knows lanes and what each instruction returns; the runtime decides when every lane has come.
#pragma once
#include "kf_ptx_values.h"

enum kf_shfl { kf_shfl_up, kf_shfl_down, kf_shfl_bfly, kf_shfl_idx };
// `limits`: the highest lane of a segment in bits 0 to 4, the bits of a lane that name its segment in bits 8 to 12.
template <kf_shfl Mode> KF_FN uint32_t kf_ptx_shfl(uint32_t a, uint32_t b, uint32_t limits, uint32_t mask, bool &found) {
  const int lane = static_cast<int>(kf_lane()), by = static_cast<int>(b & 31);
  const int clamp = static_cast<int>(limits & 31), segment = static_cast<int>(limits >> 8 & 31);
  const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  const int from = Mode == kf_shfl_up     ? lane - by
                   : Mode == kf_shfl_down ? lane + by
                   : Mode == kf_shfl_bfly ? lane ^ by
                                          : (first | (by & ~segment));
  found = Mode == kf_shfl_up ? from >= last : from <= last;
  return static_cast<uint32_t>(kf_warp(KF_SHFL, mask, a, static_cast<uint32_t>(found ? from : lane)));
}
// The lowest lane of the mask is elected.
KF_FN uint32_t kf_ptx_elect(uint32_t mask, bool &leader) {
  kf_warp(KF_SYNC, mask, 0, 0);
  const uint32_t first = mask ? static_cast<uint32_t>(__builtin_ctz(mask)) : 0;
  leader = kf_lane() == first;
  return first;
}
KF_FN bool kf_ptx_vote(uint32_t kind, bool predicate, uint32_t mask) { return kf_warp(kind, mask, predicate, 0) != 0; }
KF_FN uint32_t kf_ptx_ballot(bool predicate, uint32_t mask) { return static_cast<uint32_t>(kf_warp(KF_BALLOT, mask, predicate, 0)); }
template <class T> KF_FN uint32_t kf_ptx_match_any(T v, uint32_t mask) { return static_cast<uint32_t>(kf_warp(KF_MATCH_ANY, mask, v, 0)); }
template <class T> KF_FN uint32_t kf_ptx_match_all(T v, uint32_t mask, bool &same) {
  const uint32_t lanes = static_cast<uint32_t>(kf_warp(KF_MATCH_ALL, mask, v, 0));
  same = lanes != 0;
  return lanes;
}
KF_FN uint32_t kf_ptx_redux(uint32_t kind, uint32_t v, uint32_t mask) { return static_cast<uint32_t>(kf_warp(kind, mask, v, 0)); }
