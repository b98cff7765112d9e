// Built-in variables, cached loads and stores, clocks, printf and traps by CUDA's names.
// Knows the thread's context; not warps, atomics or arithmetic.
#pragma once
#include "kf_runtime.h"

KF_INLINE uint3 kf_thread_index() { return {KF_CTX(tid[0]), KF_CTX(tid[1]), KF_CTX(tid[2])}; }
KF_INLINE uint3 kf_block_index() { return {KF_CTX(bid[0]), KF_CTX(bid[1]), KF_CTX(bid[2])}; }
KF_INLINE dim3 kf_block_extent() { return dim3(KF_CTX(bdim[0]), KF_CTX(bdim[1]), KF_CTX(bdim[2])); }
KF_INLINE dim3 kf_grid_extent() { return dim3(KF_CTX(gdim[0]), KF_CTX(gdim[1]), KF_CTX(gdim[2])); }

// At the start of a body whose function has launch bounds: further arguments of the bounds only concern registers.
template <class... A> KF_INLINE void kf_bounded(unsigned most, A...) {
  if (__builtin_expect(KF_CTX(count) > most, 0)) kf_bounds_exceeded(most);
}

// `alignas` takes a number or a type.
template <class T> constexpr size_t kf_align_of() { return alignof(T); }
template <size_t N> constexpr size_t kf_align_of() { return N; }

// What the caches do is not emulated: a load is a load.
#define KF_LOAD(name)                                                                                                  \
  template <class T> KF_INLINE T name(const T *p) { return *p; }
KF_LOAD(__ldca)
KF_LOAD(__ldcg)
KF_LOAD(__ldcs)
KF_LOAD(__ldlu)
KF_LOAD(__ldcv)
#undef KF_LOAD
// What the launch has written may not be read through the read-only cache.
template <class T> KF_INLINE T kf_load_read_only(const T *p) {
#ifdef KF_CHECK
  KF_WATCH(p, sizeof(T), KF_READ | KF_READ_ONLY);
  return kf_get_raw(p);
#else
  return *p;
#endif
}
template <class T> KF_INLINE T __ldg(const T *p) { return kf_load_read_only(p); }
#define KF_STORE(name)                                                                                                 \
  template <class T> KF_INLINE void name(T *p, typename std::common_type<T>::type v) { *p = v; }
KF_STORE(__stwb)
KF_STORE(__stcg)
KF_STORE(__stcs)
KF_STORE(__stwt)
#undef KF_STORE

KF_INLINE long long clock64() { return static_cast<long long>(kf_clock(0)); }
KF_INLINE clock_t kf_clock32() { return static_cast<clock_t>(kf_clock(0)); }
#define clock() kf_clock32()
KF_INLINE unsigned long long __globaltimer() { return kf_clock(1); }
KF_INLINE void __nanosleep(unsigned) { kf_poll(0); }
KF_INLINE void __trap() { kf_trap(); }
KF_INLINE void __brkpt() {}
KF_INLINE void __prof_trigger(int) {}
KF_INLINE void __assume(bool) {}
KF_INLINE unsigned kf_lane_below() { return (1u << kf_lane()) - 1; }

// Emulated text is bounded: what does not fit a thousand bytes is cut.
__attribute__((noinline, format(printf, 1, 2))) static int kf_printf(const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  int size = vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (size > 0) kf_print(text, static_cast<size_t>(size) < sizeof text ? static_cast<size_t>(size) : sizeof text - 1);
  return size;
}
namespace std {
using ::kf_printf;
}

// In the stub of every binary: an address in this OS thread's shared memory.
extern "C" __attribute__((visibility("default"), nothrow, const)) void *kf_tls_anchor();
// Within the most that shared memory can lie apart; buffers are mapped further away.
KF_INLINE unsigned __isShared(const void *p) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(kf_tls_anchor());
  return reinterpret_cast<uintptr_t>(p) - base + 0x80000u < 0x100000u;
}
KF_INLINE unsigned __isGlobal(const void *p) { return !__isShared(p); }

// A shared address is the low 32 bits of the generic one plus this, so that arithmetic on it and its alignment are what they are on a device, and a generic
// address that was not converted points nowhere.
constexpr uint32_t KF_SHARED_FROM = 0x40000000;
KF_INLINE size_t __cvta_generic_to_shared(const void *p) { return static_cast<uint32_t>(reinterpret_cast<size_t>(p)) + KF_SHARED_FROM; }
KF_INLINE size_t __cvta_generic_to_global(const void *p) { return reinterpret_cast<size_t>(p); }
// The pointer near this thread's shared memory. An address may have lost its upper half on the way.
KF_INLINE void *__cvta_shared_to_generic(size_t p) {
  char *base = static_cast<char *>(kf_tls_anchor());
  uint32_t low = static_cast<uint32_t>(p) - KF_SHARED_FROM;
  return base + static_cast<int32_t>(low - static_cast<uint32_t>(reinterpret_cast<uintptr_t>(base)));
}
KF_INLINE void *__cvta_global_to_generic(size_t p) { return reinterpret_cast<void *>(p); }
