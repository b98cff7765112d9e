// Reductions and scans over a group's lanes. Knows operators and orders of evaluation; the groups are in cooperative_groups.h.
#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {
template <class T> struct plus { KF_INLINE T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { KF_INLINE T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { KF_INLINE T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { KF_INLINE T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { KF_INLINE T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { KF_INLINE T operator()(T a, T b) const { return a ^ b; } };

// A butterfly over ranks; where the group is no power of two, the rest is folded in first and told at the end.
template <class Group, class T, class Op> KF_INLINE T reduce(const Group &group, T value, Op op) {
  unsigned size = group.size(), rank = group.thread_rank(), whole = 1;
  while (whole * 2 <= size) whole *= 2;
  if (whole != size) {
    T above = group.shfl_down(value, whole);
    if (rank + whole < size) value = op(value, above);
  }
  for (unsigned step = whole / 2; step; step /= 2) {
    unsigned with = rank < whole ? step : 0;
    T other = group.shfl_xor(value, with);
    if (rank < whole) value = op(value, other);
  }
  return whole == size ? value : group.shfl(value, 0);
}

template <class Group, class T, class Op> KF_INLINE T inclusive_scan(const Group &group, T value, Op op) {
  unsigned rank = group.thread_rank();
  for (unsigned step = 1; step < group.size(); step *= 2) {
    T below = group.shfl_up(value, step);
    if (rank >= step) value = op(below, value);
  }
  return value;
}
template <class Group, class T> KF_INLINE T inclusive_scan(const Group &group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
template <class Group, class T, class Op> KF_INLINE T exclusive_scan(const Group &group, T value, Op op) {
  T all = inclusive_scan(group, value, op);
  T below = group.shfl_up(all, 1);
  return group.thread_rank() == 0 ? T() : below;
}
template <class Group, class T> KF_INLINE T exclusive_scan(const Group &group, T value) {
  return exclusive_scan(group, value, plus<T>());
}
} // namespace cooperative_groups
