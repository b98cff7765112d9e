// CUDA's cooperative groups: blocks, tiles, coalesced and labelled groups, the grid.
// Knows which threads a group is and how they meet; of clusters only the names.
#pragma once
#include "kf_unsupported.h"
#include "kf_warp.h"

namespace cooperative_groups {

// What a value of any size takes to go from lane to lane: eight bytes at a time.
template <class T, class F> KF_INLINE T kf_by_words(const T &value, F one) {
  constexpr size_t words = (sizeof(T) + 7) / 8;
  uint64_t bits[words] = {};
  __builtin_memcpy(bits, static_cast<const void *>(&value), sizeof(T));
  for (size_t i = 0; i < words; ++i) bits[i] = one(bits[i]);
  T result;
  __builtin_memcpy(static_cast<void *>(&result), bits, sizeof(T));
  return result;
}

KF_INLINE unsigned kf_block_rank() { return KF_CTX(linear); }
KF_INLINE unsigned kf_block_size() { return KF_CTX(count); }

class thread_block {
public:
  KF_INLINE void sync_at(uint32_t site) const { kf_barrier(0, site, 0); }
  KF_INLINE unsigned thread_rank() const { return kf_block_rank(); }
  KF_INLINE unsigned size() const { return kf_block_size(); }
  KF_INLINE unsigned num_threads() const { return kf_block_size(); }
  KF_INLINE dim3 group_index() const { return dim3(KF_CTX(bid[0]), KF_CTX(bid[1]), KF_CTX(bid[2])); }
  KF_INLINE dim3 thread_index() const { return dim3(KF_CTX(tid[0]), KF_CTX(tid[1]), KF_CTX(tid[2])); }
  KF_INLINE dim3 group_dim() const { return dim3(KF_CTX(bdim[0]), KF_CTX(bdim[1]), KF_CTX(bdim[2])); }
  KF_INLINE dim3 dim_threads() const { return group_dim(); }
  // In two steps: all of it happens at the second, which is more order than CUDA promises.
  struct arrival_token {};
  KF_INLINE arrival_token barrier_arrive() const { return {}; }
  KF_INLINE void barrier_wait(arrival_token &&) const { sync(); }
  // All threads of a block meet at one place, whatever the source line: groups do not tell their sites apart.
  KF_INLINE void sync() const { kf_barrier(0, 0x80000000u, 0); }
  KF_INLINE static constexpr bool is_valid() { return true; }
};
KF_INLINE thread_block this_thread_block() { return {}; }

class grid_group {
public:
  KF_INLINE bool is_valid() const { return true; }
  struct arrival_token {};
  KF_INLINE arrival_token barrier_arrive() const { return {}; }
  KF_INLINE void barrier_wait(arrival_token &&) const { sync(); }
  KF_INLINE void sync() const { kf_grid_sync(); }
  KF_INLINE unsigned long long num_blocks() const {
    return static_cast<unsigned long long>(KF_CTX(gdim[0])) * KF_CTX(gdim[1]) * KF_CTX(gdim[2]);
  }
  KF_INLINE unsigned long long block_rank() const {
    return (static_cast<unsigned long long>(KF_CTX(bid[2])) * KF_CTX(gdim[1]) + KF_CTX(bid[1])) * KF_CTX(gdim[0]) + KF_CTX(bid[0]);
  }
  KF_INLINE unsigned long long size() const { return num_blocks() * kf_block_size(); }
  KF_INLINE unsigned long long num_threads() const { return size(); }
  KF_INLINE unsigned long long thread_rank() const { return block_rank() * kf_block_size() + kf_block_rank(); }
  KF_INLINE dim3 group_dim() const { return dim3(KF_CTX(gdim[0]), KF_CTX(gdim[1]), KF_CTX(gdim[2])); }
  KF_INLINE dim3 dim_blocks() const { return group_dim(); }
  KF_INLINE dim3 block_index() const { return dim3(KF_CTX(bid[0]), KF_CTX(bid[1]), KF_CTX(bid[2])); }
};
KF_INLINE grid_group this_grid() { return {}; }

// Blocks that share their memory: sources that name them compile, and say so when they get there.
class cluster_group {
public:
  struct arrival_token {};
#define KF_CLUSTER(name)                                                                                               \
  template <class... A> KF_INLINE static kf_any name(A &&...) { return kf_none("cluster_group::" #name); }
  KF_CLUSTER(sync)
  KF_CLUSTER(barrier_arrive)
  KF_CLUSTER(barrier_wait)
  KF_CLUSTER(query_shared_rank)
#undef KF_CLUSTER
#define KF_CLUSTER(T, name)                                                                                            \
  KF_INLINE static T name() { return kf_none("cluster_group::" #name); }
  KF_CLUSTER(dim3, block_index)
  KF_CLUSTER(unsigned, block_rank)
  KF_CLUSTER(dim3, thread_index)
  KF_CLUSTER(unsigned, thread_rank)
  KF_CLUSTER(dim3, dim_blocks)
  KF_CLUSTER(unsigned, num_blocks)
  KF_CLUSTER(dim3, dim_threads)
  KF_CLUSTER(unsigned, num_threads)
  KF_CLUSTER(unsigned, size)
#undef KF_CLUSTER
  template <class T> KF_INLINE static T *map_shared_rank(T *, int) { return kf_none("cluster_group::map_shared_rank"); }
};
KF_INLINE cluster_group this_cluster() { return {}; }

// Lanes of a warp by mask: what tiles, coalesced and labelled groups have in common. Ranks count the set bits below.
class kf_lanes {
protected:
  unsigned mask_;
  KF_INLINE explicit kf_lanes(unsigned mask) : mask_(mask) {}
  KF_INLINE unsigned lane_of(unsigned rank) const {
    unsigned rest = mask_;
    for (unsigned i = 0; i < rank; ++i) rest &= rest - 1;
    return rest ? static_cast<unsigned>(__builtin_ctz(rest)) : 0u;
  }
  KF_INLINE unsigned packed(unsigned lanes) const {
    unsigned out = 0, at = 0;
    for (unsigned rest = mask_; rest; rest &= rest - 1, ++at)
      if (lanes & (rest & (0u - rest))) out |= 1u << at;
    return out;
  }

public:
  KF_INLINE unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  KF_INLINE unsigned num_threads() const { return size(); }
  KF_INLINE unsigned thread_rank() const { return static_cast<unsigned>(__builtin_popcount(mask_ & ((1u << kf_lane()) - 1))); }
  KF_INLINE unsigned kf_mask() const { return mask_; }
  KF_INLINE void sync() const { __syncwarp(mask_); }
  template <class T> KF_INLINE T shfl(T value, unsigned rank) const {
    unsigned from = lane_of(rank % size());
    return kf_by_words(value, [=](uint64_t w) { return kf_warp(KF_SHFL, mask_, w, from); });
  }
  template <class T> KF_INLINE T shfl_up(T value, unsigned delta) const {
    unsigned rank = thread_rank(), from = lane_of(delta > rank ? rank : rank - delta);
    return kf_by_words(value, [=](uint64_t w) { return kf_warp(KF_SHFL, mask_, w, from); });
  }
  template <class T> KF_INLINE T shfl_down(T value, unsigned delta) const {
    unsigned rank = thread_rank(), from = lane_of(delta >= size() - rank ? rank : rank + delta);
    return kf_by_words(value, [=](uint64_t w) { return kf_warp(KF_SHFL, mask_, w, from); });
  }
  template <class T> KF_INLINE T shfl_xor(T value, unsigned with) const {
    unsigned rank = thread_rank(), to = rank ^ with, from = lane_of(to >= size() ? rank : to);
    return kf_by_words(value, [=](uint64_t w) { return kf_warp(KF_SHFL, mask_, w, from); });
  }
  KF_INLINE int any(int predicate) const { return __any_sync(mask_, predicate); }
  KF_INLINE int all(int predicate) const { return __all_sync(mask_, predicate); }
  KF_INLINE unsigned ballot(int predicate) const { return packed(__ballot_sync(mask_, predicate)); }
  template <class T> KF_INLINE unsigned match_any(T value) const { return packed(__match_any_sync(mask_, value)); }
  template <class T> KF_INLINE unsigned match_all(T value, int &predicate) const {
    return packed(__match_all_sync(mask_, value, &predicate));
  }
};

class coalesced_group : public kf_lanes {
public:
  KF_INLINE explicit coalesced_group(unsigned mask) : kf_lanes(mask) {}
  unsigned kf_meta_rank = 0, kf_meta_size = 1;
  KF_INLINE unsigned meta_group_rank() const { return kf_meta_rank; }
  KF_INLINE unsigned meta_group_size() const { return kf_meta_size; }
};
KF_INLINE coalesced_group kf_coalesced_at(uint32_t site) { return coalesced_group(kf_converge(site)); }
#define coalesced_threads() kf_coalesced_at(__COUNTER__)

KF_INLINE unsigned kf_tile_mask(unsigned size) {
  return (size >= 32 ? 0xffffffffu : (1u << size) - 1) << (kf_lane() & ~(size - 1));
}

template <unsigned Size, class Parent = void> class thread_block_tile : public kf_lanes {
  static_assert(Size >= 1 && (Size & (Size - 1)) == 0 && Size <= 32, "tiles of more than a warp are not emulated");

public:
  KF_INLINE thread_block_tile() : kf_lanes(kf_tile_mask(Size)) {}
  template <class Other> KF_INLINE thread_block_tile(const thread_block_tile<Size, Other> &) : kf_lanes(kf_tile_mask(Size)) {}
  // A tile's size is its own, threads that do not exist included.
  KF_INLINE static constexpr unsigned size() { return Size; }
  KF_INLINE static constexpr unsigned num_threads() { return Size; }
  KF_INLINE unsigned thread_rank() const { return kf_lane() & (Size - 1); }
  KF_INLINE unsigned meta_group_rank() const { return kf_block_rank() / Size; }
  KF_INLINE unsigned meta_group_size() const { return (kf_block_size() + Size - 1) / Size; }
  template <class T> KF_INLINE T shfl(T value, int rank) const {
    unsigned from = (kf_lane() & ~(Size - 1)) | (static_cast<unsigned>(rank) & (Size - 1));
    return kf_by_words(value, [=](uint64_t w) { return kf_warp(KF_SHFL, mask_, w, from); });
  }
  template <class T> KF_INLINE T shfl_up(T value, unsigned delta) const {
    unsigned lane = kf_lane(), from = delta > (lane & (Size - 1)) ? lane : lane - delta;
    return kf_by_words(value, [=](uint64_t w) { return kf_warp(KF_SHFL, mask_, w, from); });
  }
  template <class T> KF_INLINE T shfl_down(T value, unsigned delta) const {
    unsigned lane = kf_lane(), from = delta >= Size - (lane & (Size - 1)) ? lane : lane + delta;
    return kf_by_words(value, [=](uint64_t w) { return kf_warp(KF_SHFL, mask_, w, from); });
  }
  template <class T> KF_INLINE T shfl_xor(T value, unsigned with) const {
    unsigned lane = kf_lane(), from = with >= Size ? lane : lane ^ with;
    return kf_by_words(value, [=](uint64_t w) { return kf_warp(KF_SHFL, mask_, w, from); });
  }
};

template <unsigned Size, class Parent> KF_INLINE thread_block_tile<Size, Parent> tiled_partition(const Parent &) { return {}; }
KF_INLINE coalesced_group tiled_partition(const thread_block &, unsigned size) { return coalesced_group(kf_tile_mask(size)); }
KF_INLINE coalesced_group tiled_partition(const coalesced_group &parent, unsigned size) {
  unsigned rank = parent.thread_rank() / size * size, mask = 0, at = 0;
  for (unsigned rest = parent.kf_mask(); rest; rest &= rest - 1, ++at)
    if (at >= rank && at < rank + size) mask |= rest & (0u - rest);
  coalesced_group group(mask);
  group.kf_meta_rank = rank / size;
  group.kf_meta_size = (parent.size() + size - 1) / size;
  return group;
}
template <class Group, class Label> KF_INLINE coalesced_group labeled_partition(const Group &parent, Label label) {
  return coalesced_group(__match_any_sync(parent.kf_mask(), label));
}
template <class Group> KF_INLINE coalesced_group binary_partition(const Group &parent, bool predicate) {
  unsigned yes = __ballot_sync(parent.kf_mask(), predicate);
  return coalesced_group(predicate ? yes : parent.kf_mask() & ~yes);
}

// One thread of the group does it: the first.
template <class Group, class F, class... A> KF_INLINE auto invoke_one(const Group &group, F &&f, A &&...args) -> decltype(f(args...)) {
  if (group.thread_rank() == 0) return f(args...);
  return decltype(f(args...))();
}

template <class Group> KF_INLINE void sync(const Group &group) { group.sync(); }
template <class Group> KF_INLINE auto thread_rank(const Group &group) { return group.thread_rank(); }
template <class Group> KF_INLINE auto group_size(const Group &group) { return group.size(); }

struct thread_scope_block_tag {};
using thread_group = coalesced_group;

} // namespace cooperative_groups
