// Loads, stores, atomics and asynchronous copies of PTX. Every access is watched as one of C++ is. What caches do is not emulated: a load is a load.
#pragma once
#include "kf_ptx_float.h"

KF_FN char *kf_ptx_shared(uint64_t address) { return static_cast<char *>(__cvta_shared_to_generic(address)); }
KF_FN uint64_t kf_ptx_to_shared(uint64_t generic) { return __cvta_generic_to_shared(reinterpret_cast<const void *>(generic)); }
KF_FN char *kf_ptx_generic(uint64_t address) { return reinterpret_cast<char *>(address); }
KF_FN uint64_t kf_ptx_address(const void *p) { return reinterpret_cast<uintptr_t>(p); }
KF_FN bool kf_ptx_is_shared(uint64_t address) { return __isShared(reinterpret_cast<const void *>(address)); }

template <class T, int N> struct __attribute__((aligned(sizeof(T) * N))) kf_ptx_vector {
  T v[N];
};
// One access, which the compiler does not split: which of its elements are used is not known.
template <class T, int N> KF_FN kf_ptx_vector<T, N> kf_ptx_load(const char *p) {
  KF_WATCH(p, sizeof(kf_ptx_vector<T, N>), KF_READ);
#ifdef KF_CHECK
  return kf_get_raw(reinterpret_cast<const kf_ptx_vector<T, N> *>(p));
#else
  return *reinterpret_cast<const kf_ptx_vector<T, N> *>(p);
#endif
}
template <class T, int N> KF_FN void kf_ptx_store(char *p, kf_ptx_vector<T, N> value) { *reinterpret_cast<kf_ptx_vector<T, N> *>(p) = value; }
template <class T, int N> KF_FN kf_ptx_vector<T, N> kf_ptx_load_nc(const char *p) {
  return kf_load_read_only(reinterpret_cast<const kf_ptx_vector<T, N> *>(p));
}
template <class T> KF_FN T kf_ptx_load_one(const char *p) { return *reinterpret_cast<const T *>(p); }
template <class T> KF_FN void kf_ptx_store_one(char *p, T v) { *reinterpret_cast<T *>(p) = v; }
// Volatile accesses of PTX are relaxed in every space, each element by itself. Those of C++ are so in global memory only, so these are told apart.
template <class W> KF_FN W kf_ptx_volatile_word(const W *p) {
#ifdef KF_CHECK
  KF_WATCH(p, sizeof(W), KF_VOLATILE | KF_RELAXED);
  return kf_load(p);
#else
  return *static_cast<const volatile W *>(p);
#endif
}
template <class W> KF_RAW void kf_ptx_set_raw(volatile W *p, W v) { *p = v; }
template <class W> KF_FN void kf_ptx_set_volatile_word(W *p, W v) {
#ifdef KF_CHECK
  KF_WATCH(p, sizeof(W), KF_WRITE | KF_VOLATILE | KF_RELAXED);
  kf_ptx_set_raw(p, v);
#else
  *static_cast<volatile W *>(p) = v;
#endif
}
template <class T, int N> KF_FN kf_ptx_vector<T, N> kf_ptx_load_volatile(const char *p) {
  kf_ptx_vector<T, N> r;
  typedef typename kf_word<sizeof(T)>::type W;
  for (int i = 0; i < N; ++i) r.v[i] = kf_bits<T>(kf_ptx_volatile_word(reinterpret_cast<const W *>(p) + i));
  return r;
}
template <class T, int N> KF_FN void kf_ptx_store_volatile(char *p, kf_ptx_vector<T, N> value) {
  typedef typename kf_word<sizeof(T)>::type W;
  for (int i = 0; i < N; ++i) kf_ptx_set_volatile_word(reinterpret_cast<W *>(p) + i, kf_bits<W>(value.v[i]));
}

// Strong accesses, told to the runtime as atomic ones with a fence beside those that synchronise. What one acquires is not handed over to other blocks by that alone.
template <class T> KF_FN T kf_ptx_load_strong(const char *p, bool acquire) {
  T value = kf_atomic_load(reinterpret_cast<const T *>(p));
  if (acquire) kf_fence(0);
  return value;
}
template <class T> KF_FN void kf_ptx_store_strong(char *p, T value, bool release) {
  if (release) kf_fence(1);
  kf_rmw(reinterpret_cast<T *>(p), [=](T) { return value; }, KF_EXCHANGE);
}
template <bool Release, bool Acquire, uint32_t More, class T, class F> KF_FN T kf_ptx_atom(char *p, F f) {
  if (Release) kf_fence(1);
  T old = kf_rmw(reinterpret_cast<T *>(p), f, More);
  if (Acquire) kf_fence(0);
  return old;
}
template <class T> KF_FN T kf_ptx_inc(T o, T v) { return o >= v ? T(0) : static_cast<T>(o + 1); }
template <class T> KF_FN T kf_ptx_dec(T o, T v) { return o == 0 || o > v ? v : static_cast<T>(o - 1); }

// A copy from global to shared memory, done at once: `given` bytes, then zeros.
template <int Size> KF_FN void kf_ptx_copy(char *to, const char *from, uint64_t given) {
  typedef kf_ptx_vector<uint32_t, Size / 4> whole;
  if (given >= Size) {
    *reinterpret_cast<whole *>(to) = *reinterpret_cast<const whole *>(from);
    return;
  }
  whole part{};
  for (uint64_t i = 0; i < given; ++i) reinterpret_cast<unsigned char *>(&part)[i] = static_cast<unsigned char>(from[i]);
  *reinterpret_cast<whole *>(to) = part;
}
KF_FN void kf_ptx_copy(char *to, const char *from, uint64_t size, uint64_t given) {
  if (size == 16) kf_ptx_copy<16>(to, from, given);
  else if (size == 8) kf_ptx_copy<8>(to, from, given);
  else kf_ptx_copy<4>(to, from, given);
}
