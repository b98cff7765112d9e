// Copies by a whole group: done at once, each thread its share, and complete after `wait`, which is a barrier of the group.
#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {
template <class Group, class T, class Size> KF_INLINE void memcpy_async(const Group &group, T *to, const T *from, Size bytes) {
  size_t count = static_cast<size_t>(bytes) / sizeof(T);
  for (size_t i = group.thread_rank(); i < count; i += group.size()) to[i] = from[i];
}
template <class Group> KF_INLINE void wait(const Group &group) { group.sync(); }
template <unsigned Stages, class Group> KF_INLINE void wait_prior(const Group &group) { group.sync(); }
} // namespace cooperative_groups
