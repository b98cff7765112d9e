// Integer and logical instructions of PTX, by value. Knows what PTX ISA 9.0 defines for each; rounding, memory and warps are elsewhere.
#pragma once
#include "kf_ptx_values.h"

template <class T> using kf_unsigned = typename std::make_unsigned<T>::type;
template <class T> KF_FN constexpr int kf_width() { return 8 * static_cast<int>(sizeof(T)); }
__extension__ typedef __int128 kf_s128;
__extension__ typedef unsigned __int128 kf_u128;

template <class T> KF_FN T kf_ptx_clamped(kf_s128 v) {
  constexpr kf_s128 least = std::is_signed<T>::value ? -(kf_s128(1) << (kf_width<T>() - 1)) : kf_s128(0);
  constexpr kf_s128 most = (kf_s128(1) << (kf_width<T>() - (std::is_signed<T>::value ? 1 : 0))) - 1;
  return static_cast<T>(v < least ? least : v > most ? most : v);
}
// Each half of a word by itself.
template <class H, class F> KF_FN uint32_t kf_ptx_halves(uint32_t a, uint32_t b, F f) {
  uint16_t lo = static_cast<uint16_t>(f(static_cast<H>(a), static_cast<H>(b)));
  uint16_t hi = static_cast<uint16_t>(f(static_cast<H>(a >> 16), static_cast<H>(b >> 16)));
  return lo | static_cast<uint32_t>(hi) << 16;
}

template <class T> KF_FN T kf_ptx_iadd(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
template <class T> KF_FN T kf_ptx_isub(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }
template <class T> KF_FN T kf_ptx_iadd_sat(T a, T b) { return kf_ptx_clamped<T>(static_cast<kf_s128>(a) + b); }
template <class T> KF_FN T kf_ptx_isub_sat(T a, T b) { return kf_ptx_clamped<T>(static_cast<kf_s128>(a) - b); }
template <class T> KF_FN T kf_ptx_mul_lo(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }
template <class T> KF_FN T kf_ptx_mul_hi(T a, T b) {
  if constexpr (std::is_signed<T>::value) return static_cast<T>(static_cast<kf_s128>(a) * b >> kf_width<T>());
  else return static_cast<T>(static_cast<kf_u128>(a) * b >> kf_width<T>());
}
template <class W, class T> KF_FN W kf_ptx_mul_wide(T a, T b) { return static_cast<W>(static_cast<W>(a) * static_cast<W>(b)); }
template <class T> KF_FN kf_s128 kf_ptx_low24(T a) {
  if constexpr (std::is_signed<T>::value) return static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8;
  else return a & 0xffffffu;
}
template <class T> KF_FN T kf_ptx_mul24_lo(T a, T b) { return static_cast<T>(kf_ptx_low24(a) * kf_ptx_low24(b)); }
template <class T> KF_FN T kf_ptx_mul24_hi(T a, T b) { return static_cast<T>(kf_ptx_low24(a) * kf_ptx_low24(b) >> 16); }
template <class T> KF_FN T kf_ptx_mad_sat(T hi, T c) { return kf_ptx_iadd_sat<T>(hi, c); }

// With the carry of the thread: sums carry out, differences borrow.
template <class T> KF_FN T kf_ptx_carry_add(T a, T b, bool in, bool &out) {
  kf_u128 sum = static_cast<kf_u128>(static_cast<kf_unsigned<T>>(a)) + static_cast<kf_unsigned<T>>(b) + (in ? 1 : 0);
  out = (sum >> kf_width<T>()) != 0;
  return static_cast<T>(sum);
}
template <class T> KF_FN T kf_ptx_carry_sub(T a, T b, bool in, bool &out) {
  kf_s128 less = static_cast<kf_s128>(static_cast<kf_unsigned<T>>(a)) - static_cast<kf_unsigned<T>>(b) - (in ? 1 : 0);
  out = less < 0;
  return static_cast<T>(less);
}

// What division by zero gives is undefined; no device stops there.
template <class T> KF_FN T kf_ptx_idiv(T a, T b) {
  if (b == 0) return static_cast<T>(~uint64_t(0));
  if constexpr (std::is_signed<T>::value)
    if (b == -1) return static_cast<T>(uint64_t(0) - static_cast<uint64_t>(a));
  return static_cast<T>(a / b);
}
template <class T> KF_FN T kf_ptx_irem(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed<T>::value)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}
template <class T> KF_FN T kf_ptx_imin(T a, T b) { return b < a ? b : a; }
template <class T> KF_FN T kf_ptx_imax(T a, T b) { return a < b ? b : a; }
template <class T> KF_FN T kf_ptx_iabs(T a) { return a < 0 ? static_cast<T>(uint64_t(0) - static_cast<uint64_t>(a)) : a; }
template <class T> KF_FN T kf_ptx_ineg(T a) { return static_cast<T>(uint64_t(0) - static_cast<uint64_t>(a)); }
template <class T> KF_FN T kf_ptx_sad(T a, T b, T c) {
  kf_unsigned<T> far = a < b ? static_cast<kf_unsigned<T>>(static_cast<uint64_t>(b) - static_cast<uint64_t>(a))
                             : static_cast<kf_unsigned<T>>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  return static_cast<T>(static_cast<uint64_t>(c) + far);
}

template <class T> KF_FN T kf_ptx_and(T a, T b) { return static_cast<T>(a & b); }
template <class T> KF_FN T kf_ptx_or(T a, T b) { return static_cast<T>(a | b); }
template <class T> KF_FN T kf_ptx_xor(T a, T b) { return static_cast<T>(a ^ b); }
template <class T> KF_FN T kf_ptx_not(T a) {
  if constexpr (std::is_same<T, bool>::value) return !a;
  else return static_cast<T>(~a);
}
template <class T> KF_FN T kf_ptx_cnot(T a) { return a == 0; }
// Amounts beyond the width shift everything out.
template <class T> KF_FN T kf_ptx_shl(T a, uint32_t n) {
  return n >= static_cast<uint32_t>(kf_width<T>()) ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << n);
}
template <class T> KF_FN T kf_ptx_shr(T a, uint32_t n) {
  const uint32_t most = static_cast<uint32_t>(kf_width<T>()) - 1;
  if (n > most) return std::is_signed<T>::value ? static_cast<T>(a >> most) : T(0);
  return static_cast<T>(a >> n);
}
KF_FN uint32_t kf_ptx_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t r = 0;
  for (uint32_t i = 0; i < 8; ++i)
    if (table >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}
template <bool Wrap> KF_FN uint32_t kf_ptx_shf_l(uint32_t a, uint32_t b, uint32_t n) { return Wrap ? __funnelshift_l(a, b, n) : __funnelshift_lc(a, b, n); }
template <bool Wrap> KF_FN uint32_t kf_ptx_shf_r(uint32_t a, uint32_t b, uint32_t n) { return Wrap ? __funnelshift_r(a, b, n) : __funnelshift_rc(a, b, n); }

template <class T> KF_BIG T kf_ptx_bfe(T a, uint32_t from, uint32_t length) {
  typedef kf_unsigned<T> U;
  const uint32_t most = static_cast<uint32_t>(kf_width<T>()) - 1, at = from & 0xff, n = length & 0xff;
  const U bits = static_cast<U>(a);
  const uint32_t last = at + n - 1 < most ? at + n - 1 : most;
  const bool sign = std::is_signed<T>::value && n != 0 && (bits >> last & 1);
  U r = 0;
  for (uint32_t i = 0; i <= most; ++i) r |= static_cast<U>(i < n && at + i <= most ? bits >> (at + i) & 1 : U(sign)) << i;
  return static_cast<T>(r);
}
template <class T> KF_BIG T kf_ptx_bfi(T field, T into, uint32_t from, uint32_t length) {
  const uint32_t most = static_cast<uint32_t>(kf_width<T>()) - 1, at = from & 0xff, n = length & 0xff;
  for (uint32_t i = 0; i < n && at + i <= most; ++i)
    into = static_cast<T>((into & ~(T(1) << (at + i))) | (field >> i & 1) << (at + i));
  return into;
}
template <class T, bool Shift> KF_FN uint32_t kf_ptx_bfind(T a) {
  uint64_t bits = static_cast<uint64_t>(static_cast<kf_unsigned<T>>(std::is_signed<T>::value && a < 0 ? static_cast<T>(~a) : a));
  if (bits == 0) return 0xffffffffu;
  uint32_t at = 63u - static_cast<uint32_t>(__builtin_clzll(bits));
  return Shift ? static_cast<uint32_t>(kf_width<T>()) - 1 - at : at;
}
// `width` bits from bit `from` on: none from beyond the end, and all to the end if there are fewer.
template <bool Clamps> KF_FN uint32_t kf_ptx_bmsk(uint32_t from, uint32_t width) {
  uint32_t first = ~0u << (from & 31), end = (from & 31) + (width & 31);
  if (Clamps && from >= 32) first = 0;
  bool all = end >= 32 || (Clamps && (from >= 32 || width >= 32));
  return first & ~(all ? 0u : ~0u << (end & 31));
}
template <class T> KF_FN T kf_ptx_brev(T a) {
  if constexpr (sizeof(T) == 8) return __brevll(a);
  else return __brev(a);
}
template <class T> KF_FN uint32_t kf_ptx_clz(T a) {
  const uint32_t width = static_cast<uint32_t>(kf_width<T>());
  return a == 0 ? width : static_cast<uint32_t>(__builtin_clzll(a)) - (64u - width);
}
template <class T> KF_FN uint32_t kf_ptx_popc(T a) { return static_cast<uint32_t>(__builtin_popcountll(a)); }
KF_FN uint32_t kf_ptx_fns(uint32_t mask, uint32_t base, int32_t offset) { return __fns(mask, base, offset); }

// Bytes of b:a. By selectors of four bits, whose highest asks for the byte's sign; or by a mode, whose two low bits place it.
enum kf_perm { kf_perm_any, kf_perm_f4e, kf_perm_b4e, kf_perm_rc8, kf_perm_ecl, kf_perm_ecr, kf_perm_rc16 };
template <kf_perm Mode> KF_BIG uint32_t kf_ptx_prmt(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  const uint32_t at = selector & 3;
  uint32_t r = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t pick = Mode == kf_perm_any    ? selector >> (4 * i) & 15
                    : Mode == kf_perm_f4e  ? at + i
                    : Mode == kf_perm_b4e  ? (at - i) & 7
                    : Mode == kf_perm_rc8  ? at
                    : Mode == kf_perm_ecl  ? (i > at ? i : at)
                    : Mode == kf_perm_ecr  ? (i < at ? i : at)
                                           : (at & 1) * 2 + (i & 1);
    uint32_t byte = static_cast<uint32_t>(bytes >> ((pick & 7) * 8)) & 0xff;
    if (Mode == kf_perm_any && (pick & 8)) byte = byte & 0x80 ? 0xff : 0;
    r |= byte << (8 * i);
  }
  return r;
}
// Sums of products of bytes (A with B), and of two halves with two bytes from `first` on.
template <class A, class B, class C> KF_FN C kf_ptx_dp4a(uint32_t a, uint32_t b, C c) {
  for (int i = 0; i < 4; ++i) {
    const int product = static_cast<int>(static_cast<A>(a >> (8 * i))) * static_cast<int>(static_cast<B>(b >> (8 * i)));
    c = static_cast<C>(static_cast<uint32_t>(c) + static_cast<uint32_t>(product));
  }
  return c;
}
template <class A, class B, class C> KF_FN C kf_ptx_dp2a(uint32_t a, uint32_t b, C c, int first) {
  for (int i = 0; i < 2; ++i) {
    const uint32_t factor = static_cast<uint32_t>(static_cast<int>(static_cast<B>(b >> (8 * (first + i)))));
    c = static_cast<C>(static_cast<uint32_t>(c) + static_cast<uint32_t>(static_cast<A>(a >> (16 * i))) * factor);
  }
  return c;
}

// Comparisons: of NaN, the plain ones are false and the ones with `u` true.
enum kf_cmp {
  kf_cmp_eq, kf_cmp_ne, kf_cmp_lt, kf_cmp_le, kf_cmp_gt, kf_cmp_ge, kf_cmp_equ, kf_cmp_neu, kf_cmp_ltu, kf_cmp_leu, kf_cmp_gtu, kf_cmp_geu, kf_cmp_num, kf_cmp_nan
};
template <kf_cmp C, class T> KF_FN bool kf_ptx_compare(T a, T b) {
  const bool nan = a != a || b != b;
  switch (C) {
    case kf_cmp_eq: return a == b;
    case kf_cmp_ne: return !nan && a != b;
    case kf_cmp_lt: return a < b;
    case kf_cmp_le: return a <= b;
    case kf_cmp_gt: return a > b;
    case kf_cmp_ge: return a >= b;
    case kf_cmp_equ: return nan || a == b;
    case kf_cmp_neu: return nan || a != b;
    case kf_cmp_ltu: return nan || a < b;
    case kf_cmp_leu: return nan || a <= b;
    case kf_cmp_gtu: return nan || a > b;
    case kf_cmp_geu: return nan || a >= b;
    case kf_cmp_num: return !nan;
    case kf_cmp_nan: return nan;
  }
  return false;
}
template <class T> KF_FN T kf_ptx_select(T a, T b, bool c) { return c ? a : b; }
