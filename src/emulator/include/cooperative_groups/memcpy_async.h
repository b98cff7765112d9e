// Copies by a whole group: done at once, each thread its share, and complete after `wait`, which is a barrier of the group.
#pragma once
#include "../cooperative_groups.h"
#include "../kf_copy.h"

namespace cooperative_groups {
template <class Group, class T, class Size> KF_INLINE void memcpy_async(const Group &group, T *to, const T *from, Size bytes) {
  kf_copy_share(group, to, from, static_cast<size_t>(bytes));
}
// By elements of two layouts: as many as both have.
template <class Group, class T, class To, class From>
KF_INLINE void memcpy_async(const Group &group, T *to, To held, const T *from, From there) {
  size_t count = static_cast<size_t>(held) < static_cast<size_t>(there) ? static_cast<size_t>(held) : static_cast<size_t>(there);
  kf_copy_share(group, to, from, count * sizeof(T));
}
template <class Group> KF_INLINE void wait(const Group &group) { group.sync(); }
template <unsigned Stages, class Group> KF_INLINE void wait_prior(const Group &group) { group.sync(); }
} // namespace cooperative_groups
