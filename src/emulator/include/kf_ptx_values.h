// Registers of translated inline PTX: unsigned integers that hold bits. An instruction reads and writes them as values of its type.
// Knows PTX's types, how operands of an asm statement enter and leave registers, and special registers; not instructions.
#pragma once
#include "kf_atomic.h"
#include "kf_device.h"
#include "kf_floats.h"
#include "kf_intrinsics.h"
#include "kf_runtime.h"
#include "kf_warp.h"

typedef uint8_t kf_t_b8, kf_t_u8;
typedef int8_t kf_t_s8;
typedef uint16_t kf_t_b16, kf_t_u16;
typedef int16_t kf_t_s16;
typedef uint32_t kf_t_b32, kf_t_u32;
typedef int32_t kf_t_s32;
typedef uint64_t kf_t_b64, kf_t_u64;
typedef int64_t kf_t_s64;
typedef __half kf_t_f16;
typedef __half2 kf_t_f16x2;
typedef __nv_bfloat16 kf_t_bf16;
typedef __nv_bfloat162 kf_t_bf16x2;
typedef float kf_t_f32;
typedef double kf_t_f64;
typedef bool kf_t_pred;
// A float whose upper 19 bits matrix instructions read.
struct kf_t_tf32 { uint32_t bits; };
struct kf_t_e4m3 { uint8_t bits; };
struct kf_t_e5m2 { uint8_t bits; };

// The value of type T in a register: its low bits.
template <class T, class R> KF_FN T kf_ptx_get(R r) {
  typedef typename kf_word<sizeof(T)>::type W;
  return kf_bits<T>(static_cast<W>(r));
}
// A constant operand as a value of type T.
template <class T> KF_FN T kf_ptx_constant(long long v) { return static_cast<T>(v); }
// Writes a value into a register, which may be wider: integers are extended by their sign.
template <class R, class T> KF_FN void kf_ptx_put(R &r, T v) {
  if constexpr (std::is_integral<T>::value) {
    r = static_cast<R>(v);
  } else {
    r = static_cast<R>(kf_bits<typename kf_word<sizeof(T)>::type>(v));
  }
}

// An input of an asm statement as the bits of its register.
template <class R, class E> KF_FN R kf_ptx_in(E e) {
  if constexpr (std::is_pointer<E>::value) {
    return static_cast<R>(reinterpret_cast<uintptr_t>(e));
  } else if constexpr (std::is_integral<E>::value || std::is_enum<E>::value) {
    return static_cast<R>(e);
  } else if constexpr (std::is_floating_point<E>::value && sizeof(R) == 4) {
    return kf_bits<uint32_t>(static_cast<float>(e));
  } else if constexpr (std::is_floating_point<E>::value && sizeof(R) == 8) {
    return kf_bits<uint64_t>(static_cast<double>(e));
  } else {
    static_assert(sizeof(E) == sizeof(R), "an operand of an asm statement has the size that its constraint names");
    R r;
    __builtin_memcpy(&r, &e, sizeof r);
    return r;
  }
}
// A floating-point input that may be given as an integer.
template <class R, class F, class E> KF_FN R kf_ptx_in_float(E e) { return kf_ptx_in<R>(static_cast<F>(e)); }
// An output of an asm statement takes the bits of its register.
template <class E, class R> KF_FN void kf_ptx_out(E &e, R r) {
  if constexpr (std::is_integral<E>::value) {
    e = static_cast<E>(r);
  } else if constexpr (std::is_pointer<E>::value) {
    e = reinterpret_cast<E>(static_cast<uintptr_t>(r));
  } else if constexpr (std::is_floating_point<E>::value) {
    e = kf_bits<typename std::remove_cv<E>::type>(r);
  } else {
    static_assert(sizeof(E) == sizeof(R), "an operand of an asm statement has the size that its constraint names");
    __builtin_memcpy(static_cast<void *>(&e), &r, sizeof r);
  }
}

// Special registers.
KF_FN uint32_t kf_ptx_tid(int axis) { return axis == 0 ? KF_CTX(tid[0]) : axis == 1 ? KF_CTX(tid[1]) : KF_CTX(tid[2]); }
KF_FN uint32_t kf_ptx_ntid(int axis) { return axis == 0 ? KF_CTX(bdim[0]) : axis == 1 ? KF_CTX(bdim[1]) : KF_CTX(bdim[2]); }
KF_FN uint32_t kf_ptx_ctaid(int axis) { return axis == 0 ? KF_CTX(bid[0]) : axis == 1 ? KF_CTX(bid[1]) : KF_CTX(bid[2]); }
KF_FN uint32_t kf_ptx_nctaid(int axis) { return axis == 0 ? KF_CTX(gdim[0]) : axis == 1 ? KF_CTX(gdim[1]) : KF_CTX(gdim[2]); }
KF_FN uint32_t kf_ptx_laneid() { return kf_lane(); }
KF_FN uint32_t kf_ptx_warpid() { return KF_CTX(linear) >> 5; }
KF_FN uint32_t kf_ptx_nwarpid() { return 64; }
// The emulated device has eight multiprocessors; blocks take them in turn.
KF_FN uint32_t kf_ptx_nsmid() { return 8; }
KF_FN uint32_t kf_ptx_smid() { return (KF_CTX(bid[0]) + KF_CTX(gdim[0]) * (KF_CTX(bid[1]) + KF_CTX(gdim[1]) * KF_CTX(bid[2]))) % 8; }
KF_FN uint64_t kf_ptx_clock() { return kf_clock(0); }
KF_FN uint64_t kf_ptx_globaltimer() { return kf_clock(1); }
KF_FN uint32_t kf_ptx_lanemask_eq() { return 1u << kf_lane(); }
KF_FN uint32_t kf_ptx_lanemask_lt() { return (1u << kf_lane()) - 1; }
KF_FN uint32_t kf_ptx_lanemask_le() { return (2u << kf_lane()) - 1; }
KF_FN uint32_t kf_ptx_lanemask_gt() { return ~kf_ptx_lanemask_le(); }
KF_FN uint32_t kf_ptx_lanemask_ge() { return ~kf_ptx_lanemask_lt(); }
#ifdef KF_CHECK
// The low half in two words, because the context is read without the hooks of the check build.
KF_FN uint32_t kf_ptx_dynamic_shared() {
  uint32_t low;
  __asm__("movl %1, %0" : "=r"(low) : "m"(*reinterpret_cast<const uint32_t *>(&kf_self()->dynamic_shared)));
  return low;
}
#else
KF_FN uint32_t kf_ptx_dynamic_shared() { return static_cast<uint32_t>(kf_self()->dynamic_shared); }
#endif
