// CUDA's atomic functions, over compare-and-swap of one, two, four or eight bytes.
// Knows what each computes. A thread that spins without changing anything lets others run.
#pragma once
#include "kf_runtime.h"
#include "kf_vector_types.h"

template <size_t> struct kf_word;
template <> struct kf_word<1> { typedef uint8_t type; };
template <> struct kf_word<2> { typedef uint16_t type; };
template <> struct kf_word<4> { typedef uint32_t type; };
template <> struct kf_word<8> { typedef uint64_t type; };

KF_INLINE uint8_t kf_cas(uint8_t *p, uint8_t e, uint8_t d) { return kf_cas1(p, e, d); }
KF_INLINE uint16_t kf_cas(uint16_t *p, uint16_t e, uint16_t d) { return kf_cas2(p, e, d); }
#ifdef KF_CHECK
// Through the stub: the thread sanitizer's pass would turn the compiler's own atomics into calls.
KF_INLINE uint32_t kf_cas(uint32_t *p, uint32_t e, uint32_t d) { return kf_cas4(p, e, d); }
KF_INLINE uint64_t kf_cas(uint64_t *p, uint64_t e, uint64_t d) { return kf_cas8(p, e, d); }
template <class W> KF_INLINE W kf_load(const W *p) { return static_cast<W>(kf_peek(p, sizeof(W))); }
#else
KF_INLINE uint32_t kf_cas(uint32_t *p, uint32_t e, uint32_t d) { return __sync_val_compare_and_swap(p, e, d); }
KF_INLINE uint64_t kf_cas(uint64_t *p, uint64_t e, uint64_t d) { return __sync_val_compare_and_swap(p, e, d); }
template <class W> KF_INLINE W kf_load(const W *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
#endif

// `unchanged` is 1 after an operation that was watched as a write and changed nothing.
KF_INLINE void kf_polled(uint32_t unchanged) {
#ifdef KF_CHECK
  kf_poll(unchanged);
#else
  kf_ctx *c = kf_self();
  (void)unchanged;
  if (__builtin_expect(--c->polls == 0, 0)) kf_poll(0);
#endif
}

// A load that does not race with atomic operations; threads that spin on it let others run.
template <class T> KF_INLINE T kf_atomic_load(const T *address) {
  typedef typename kf_word<sizeof(T)>::type W;
  KF_WATCH(address, sizeof(T), KF_ATOMIC);
  kf_polled(0);
  W bits = kf_load(reinterpret_cast<const W *>(address));
  T value;
  __builtin_memcpy(static_cast<void *>(&value), &bits, sizeof(T));
  return value;
}

template <class T, class F> KF_INLINE T kf_rmw(T *address, F f, uint32_t more = 0) {
  typedef typename kf_word<sizeof(T)>::type W;
  (void)more;
  KF_WATCH(address, sizeof(T), KF_WRITE | KF_ATOMIC | more);
  W *p = reinterpret_cast<W *>(address);
  W old = kf_load(p);
  for (;;) {
    T before, after;
    __builtin_memcpy(static_cast<void *>(&before), &old, sizeof(T));
    after = f(before);
    W want;
    __builtin_memcpy(&want, static_cast<const void *>(&after), sizeof(T));
    W was = want == old ? (kf_polled(1), kf_load(p)) : kf_cas(p, old, want);
    if (was == old) return before;
    old = was;
  }
}

// Marks a binary with operations that decide by themselves: only such a binary has looks to be remembered. A template, so that only what uses it holds it.
template <int N> struct kf_settles {
  __attribute__((visibility("hidden"))) static const char mark;
};
template <int N> const char kf_settles<N>::mark = N;

// Such an operation.
template <class T, class F> KF_INLINE T kf_settle(T *address, F f) {
#ifdef KF_CHECK
  asm volatile("" : : "m"(kf_settles<1>::mark));
#endif
  return kf_rmw(address, f, KF_SETTLES);
}

// Integers, where one instruction does it.
#ifdef KF_CHECK
#define KF_FETCH(builtin, p, v, expression, how) how(p, [=](auto kf_old) { return static_cast<decltype(kf_old)>(expression); })
#else
#define KF_FETCH(builtin, p, v, expression, how)                                                                       \
  ({                                                                                                                   \
    auto kf_old = builtin(p, v, __ATOMIC_RELAXED);                                                                     \
    if (__builtin_expect(static_cast<decltype(kf_old)>(expression) == kf_old, 0)) kf_polled(0);                        \
    kf_old;                                                                                                            \
  })
#endif

#define KF_ATOMIC_INTEGER(T)                                                                                           \
  KF_INLINE T atomicAdd(T *p, T v) { return KF_FETCH(__atomic_fetch_add, p, v, kf_old + v, kf_rmw); }                  \
  KF_INLINE T atomicSub(T *p, T v) { return KF_FETCH(__atomic_fetch_sub, p, v, kf_old - v, kf_rmw); }                  \
  KF_INLINE T atomicAnd(T *p, T v) { return KF_FETCH(__atomic_fetch_and, p, v, kf_old & v, kf_settle); }               \
  KF_INLINE T atomicOr(T *p, T v) { return KF_FETCH(__atomic_fetch_or, p, v, kf_old | v, kf_settle); }                 \
  KF_INLINE T atomicXor(T *p, T v) { return KF_FETCH(__atomic_fetch_xor, p, v, kf_old ^ v, kf_rmw); }                  \
  KF_INLINE T atomicMin(T *p, T v) { return kf_settle(p, [=](T o) { return v < o ? v : o; }); }                        \
  KF_INLINE T atomicMax(T *p, T v) { return kf_settle(p, [=](T o) { return o < v ? v : o; }); }                        \
  KF_INLINE T atomicExch(T *p, T v) { return kf_rmw(p, [=](T) { return v; }, KF_EXCHANGE); }                           \
  KF_INLINE T atomicCAS(T *p, T e, T v) { return kf_settle(p, [=](T o) { return o == e ? v : o; }); }

KF_ATOMIC_INTEGER(int)
KF_ATOMIC_INTEGER(unsigned int)
KF_ATOMIC_INTEGER(long)
KF_ATOMIC_INTEGER(unsigned long)
KF_ATOMIC_INTEGER(long long)
KF_ATOMIC_INTEGER(unsigned long long)
#undef KF_ATOMIC_INTEGER

KF_INLINE unsigned short atomicCAS(unsigned short *p, unsigned short e, unsigned short v) {
  return kf_settle(p, [=](unsigned short o) { return o == e ? v : o; });
}
KF_INLINE unsigned int atomicInc(unsigned int *p, unsigned int v) {
  return kf_rmw(p, [=](unsigned int o) { return o >= v ? 0u : o + 1; });
}
KF_INLINE unsigned int atomicDec(unsigned int *p, unsigned int v) {
  return kf_rmw(p, [=](unsigned int o) { return o == 0 || o > v ? v : o - 1; });
}
KF_INLINE float atomicAdd(float *p, float v) { return kf_rmw(p, [=](float o) { return o + v; }); }
KF_INLINE double atomicAdd(double *p, double v) { return kf_rmw(p, [=](double o) { return o + v; }); }
KF_INLINE float atomicExch(float *p, float v) { return kf_rmw(p, [=](float) { return v; }, KF_EXCHANGE); }
KF_INLINE double atomicExch(double *p, double v) { return kf_rmw(p, [=](double) { return v; }, KF_EXCHANGE); }

#define KF_ATOMIC_SCOPES(name)                                                                                         \
  template <class T, class... V> KF_INLINE T name##_block(T *p, V... v) { return name(p, static_cast<T>(v)...); }      \
  template <class T, class... V> KF_INLINE T name##_system(T *p, V... v) { return name(p, static_cast<T>(v)...); }

// A sum of a two-byte float; of the packed pairs each half by itself, as CUDA states.
#define KF_ATOMIC_NARROW(T, T2)                                                                                        \
  KF_INLINE T atomicAdd(T *p, T v) { return kf_rmw(p, [=](T o) { return __hadd(o, v); }); }                            \
  KF_INLINE T2 atomicAdd(T2 *p, T2 v) { return kf_rmw(p, [=](T2 o) { return __hadd2(o, v); }); }

// Vectors of floats: each element by itself.
KF_INLINE float2 atomicAdd(float2 *p, float2 v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)}; }
KF_INLINE float4 atomicAdd(float4 *p, float4 v) {
  return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w)};
}

KF_ATOMIC_SCOPES(atomicAdd)
KF_ATOMIC_SCOPES(atomicSub)
KF_ATOMIC_SCOPES(atomicAnd)
KF_ATOMIC_SCOPES(atomicOr)
KF_ATOMIC_SCOPES(atomicXor)
KF_ATOMIC_SCOPES(atomicMin)
KF_ATOMIC_SCOPES(atomicMax)
KF_ATOMIC_SCOPES(atomicExch)
KF_ATOMIC_SCOPES(atomicCAS)
KF_ATOMIC_SCOPES(atomicInc)
KF_ATOMIC_SCOPES(atomicDec)
#undef KF_ATOMIC_SCOPES
