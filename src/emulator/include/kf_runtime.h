// What a kernel asks of the emulator: the context of the running thread, the calls into the runtime, the trampolines of entries.
// Knows the binary interface with src/emulator/abi.rs; not CUDA's own names, which the headers above it define.
#pragma once
#include <kf_system.h>

// One per OS thread; `abi.rs` lays out the same. Never in the TLS segment of the binary, which kernels may overrun.
struct kf_ctx {
  uint32_t tid[3], linear;
  uint32_t bid[3], exited;
  uint32_t bdim[3], next;
  uint32_t gdim[3], count;
  const uint32_t *order;  // position to linear thread index; null for ascending
  const uint32_t *coords; // x, y, z of each linear thread index
  uint32_t *exited_lanes; // by warp
  uint64_t dynamic_shared;
  uint32_t polls, total_shared;
  const void *exit_pc;
  uint32_t carry; // CC.CF of inline PTX
};

// The generated stub of every binary defines these: each puts its return address into the sixth argument and jumps to the runtime.
#ifdef __clang__
// Calls that are alike are not made one, which would have no line.
#define KF_CALL extern "C" __attribute__((visibility("hidden"), nothrow, nomerge))
#else
#define KF_CALL extern "C" __attribute__((visibility("hidden"), nothrow))
#endif
// Constant, because threads of a block never change their OS thread; so one call serves a whole kernel.
KF_CALL __attribute__((const, assume_aligned(8))) kf_ctx *kf_self();
KF_CALL int kf_barrier(uint32_t kind, uint32_t site, int value);
KF_CALL uint64_t kf_warp(uint32_t kind, uint32_t mask, uint64_t value, uint32_t arg);
KF_CALL uint32_t kf_converge(uint32_t site);
KF_CALL void kf_fence(uint32_t scope);
KF_CALL void kf_poll(uint32_t unchanged);
KF_CALL void kf_print(const char *text, size_t size);
KF_CALL __attribute__((noreturn)) void kf_assert_failed(const char *text);
KF_CALL __attribute__((noreturn)) void kf_trap();
KF_CALL __attribute__((cold)) int kf_not_emulated(const char *what);
KF_CALL void kf_access(const void *address, size_t size, uint32_t kind);
KF_CALL void kf_grid_sync();
KF_CALL __attribute__((noreturn, cold)) void kf_bounds_exceeded(uint32_t most);
KF_CALL uint64_t kf_clock(uint32_t which);
KF_CALL uint32_t kf_cas4(void *address, uint32_t expected, uint32_t desired);
KF_CALL uint64_t kf_cas8(void *address, uint64_t expected, uint64_t desired);
KF_CALL uint8_t kf_cas1(void *address, uint8_t expected, uint8_t desired);
KF_CALL uint16_t kf_cas2(void *address, uint16_t expected, uint16_t desired);
KF_CALL uint64_t kf_peek(const void *address, size_t size);

enum : uint32_t { KF_READ = 0, KF_WRITE = 1, KF_VOLATILE = 2, KF_ATOMIC = 4, KF_UNALIGNED = 8, KF_EXCHANGE = 16, KF_RELAXED = 32, KF_READ_ONLY = 64, KF_SETTLES = 128, KF_WHOLE = 256, KF_COPY = 512 };

// A source cannot name these attributes (`compile.rs`), but our headers can, by this name.
#define KF_UNWATCHED __attribute__((no_sanitize("thread"), no_sanitize("bounds")))
#ifdef KF_CHECK
// Not watched themselves: what they touch is the emulator's.
#define KF_RAW inline __attribute__((no_sanitize("thread")))
// A read of the context that the compiler does not instrument.
#define KF_CTX(field)                                                                                                  \
  ({                                                                                                                   \
    uint32_t kf_value;                                                                                                 \
    __asm__("movl %1, %0" : "=r"(kf_value) : "m"(kf_self()->field));                                                   \
    kf_value;                                                                                                          \
  })
#define KF_WATCH(address, size, kind) kf_access(address, size, kind)
#define KF_RUN KF_RAW
#else
#define KF_RAW inline __attribute__((always_inline, no_sanitize("alignment")))
#define KF_CTX(field) (kf_self()->field)
#define KF_WATCH(address, size, kind) ((void)0)
// Checked like the kernel, because a compiler inlines no function into one with fewer checks.
#define KF_RUN inline __attribute__((always_inline))
#endif
#define KF_INLINE inline __attribute__((always_inline))
// A load that the compiler neither watches nor splits into elements, after KF_WATCH.
template <class T> KF_RAW T kf_get_raw(const T *p) { return *p; }
// A copy that the compiler does not watch, after KF_WATCH of both sides.
template <class T> KF_RAW void kf_copy_raw(T *to, const T *from) { *to = *from; }

// Takes the next thread of the block that has not started; a coroutine whose thread never waits goes on with the next one itself.
KF_RAW bool kf_next(kf_ctx *c) {
  uint32_t at = c->next;
  if (at >= c->count) return false;
  c->next = at + 1;
  __asm__ volatile("" : : : "memory");
  uint32_t t = c->order ? c->order[at] : at;
  c->linear = t;
  c->tid[0] = c->coords[3 * t];
  c->tid[1] = c->coords[3 * t + 1];
  c->tid[2] = c->coords[3 * t + 2];
  c->carry = 0;
  return true;
}
// The carry flag of inline PTX, which statements leave to each other.
KF_RAW bool kf_carried() { return kf_self()->carry != 0; }
KF_RAW void kf_carry_on(bool carry) { kf_self()->carry = carry; }
// One instruction each, in this order: a thread may be stopped between any two, and is past its end once its bit is set.
KF_RAW void kf_done(kf_ctx *c) {
  __asm__ volatile("orl %1, %0" : "+m"(c->exited_lanes[c->linear >> 5]) : "r"(1u << (c->linear & 31)) : "memory");
  __asm__ volatile("addl $1, %0" : "+m"(c->exited) : : "memory");
}

template <class... A, size_t... I>
KF_RUN void kf_run(kf_ctx *c, void **args, void (*kernel)(A...), std::index_sequence<I...>) {
  (void)args;
  while (kf_next(c)) {
    kernel(*static_cast<A *>(args[I])...);
    kf_done(c);
  }
}

struct kf_param {
  uint32_t size, align, kind; // kind: 0 a struct, 1 a pointer, 2 an integer, 3 a float, 4 a truth value
};
template <class T> constexpr kf_param kf_param_of() {
  return {sizeof(T), alignof(T),
          std::is_pointer<T>::value          ? 1u
          : std::is_same<T, bool>::value     ? 4u
          : std::is_floating_point<T>::value ? 3u
          : (std::is_integral<T>::value || std::is_enum<T>::value) ? 2u
                                                                   : 0u};
}
template <size_t N> struct kf_params {
  uint32_t count;
  kf_param of[N + 1];
};
template <class... A> constexpr kf_params<sizeof...(A)> kf_params_of(void (*)(A...)) {
  return {sizeof...(A), {kf_param_of<A>()..., kf_param{0, 0, 0}}};
}
template <class... A> constexpr std::index_sequence_for<A...> kf_indices_of(void (*)(A...)) { return {}; }

#ifdef KF_CHECK
#define KF_ENTRY_ATTRIBUTES __attribute__((visibility("default"), used, no_sanitize("thread")))
#else
#define KF_ENTRY_ATTRIBUTES __attribute__((visibility("default"), used))
#endif
// An entry by any C++ expression that names a kernel: `ops::rms_norm<256, 4>`.
#define KF_ENTRY(i, ...)                                                                                               \
  static constexpr auto kf_kernel_##i = &__VA_ARGS__;                                                                  \
  extern "C" {                                                                                                         \
  extern const decltype(kf_params_of(kf_kernel_##i)) kf_params_##i __attribute__((visibility("default"), used));       \
  const decltype(kf_params_of(kf_kernel_##i)) kf_params_##i = kf_params_of(kf_kernel_##i);                             \
  KF_ENTRY_ATTRIBUTES void kf_entry_##i(kf_ctx *c, void **args) {                                                      \
    kf_run(c, args, kf_kernel_##i, kf_indices_of(kf_kernel_##i));                                                      \
  }                                                                                                                    \
  }
// An entry of a source that does not compile here, for it names what is not emulated. Its parameters are unknown.
#define KF_UNKNOWN_ENTRY(i, what)                                                                                      \
  extern "C" {                                                                                                         \
  extern const kf_params<0> kf_params_##i __attribute__((visibility("default"), used));                                \
  const kf_params<0> kf_params_##i = {0xffffffffu, {{0, 0, 0}}};                                                       \
  KF_ENTRY_ATTRIBUTES void kf_entry_##i(kf_ctx *c, void **) {                                                          \
    while (kf_next(c)) {                                                                                               \
      kf_not_emulated(what);                                                                                           \
      kf_done(c);                                                                                                      \
    }                                                                                                                  \
  }                                                                                                                    \
  }
