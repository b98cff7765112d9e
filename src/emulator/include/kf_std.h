// `cuda::std`: the host's standard library by another name, and of C++20 what a C++17 library lacks. Knows names, not what they do.
#pragma once
#include "kf_runtime.h"
// The library spells an attribute of its own like CUDA's keyword.
#pragma push_macro("__noinline__")
#undef __noinline__
#include <algorithm>
#include <array>
#include <chrono>
#include <complex>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <ratio>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#if __cplusplus >= 202002L
#include <bit>
#include <concepts>
#include <numbers>
#include <ranges>
#include <span>
#endif
#pragma pop_macro("__noinline__")

namespace cuda {
namespace std {
using namespace ::std;
// Named again, for names of the standard library that the global namespace has too would be ambiguous.
using ::std::int8_t;
using ::std::int16_t;
using ::std::int32_t;
using ::std::int64_t;
using ::std::intptr_t;
using ::std::nullptr_t;
using ::std::ptrdiff_t;
using ::std::size_t;
using ::std::uint8_t;
using ::std::uint16_t;
using ::std::uint32_t;
using ::std::uint64_t;
using ::std::uintptr_t;

#if __cplusplus < 202002L
template <class T> struct remove_cvref { typedef typename ::std::remove_cv<typename ::std::remove_reference<T>::type>::type type; };
template <class T> using remove_cvref_t = typename remove_cvref<T>::type;
template <class T> struct type_identity { typedef T type; };
template <class T> using type_identity_t = T;
template <class To, class From> KF_INLINE constexpr To bit_cast(const From &from) { return __builtin_bit_cast(To, from); }
KF_INLINE constexpr bool is_constant_evaluated() { return __builtin_is_constant_evaluated(); }
template <class T> KF_INLINE constexpr int popcount(T v) { return __builtin_popcountll(static_cast<unsigned long long>(v)); }
template <class T> KF_INLINE constexpr int countl_zero(T v) {
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  return v == 0 ? bits : __builtin_clzll(static_cast<unsigned long long>(v)) - (64 - bits);
}
template <class T> KF_INLINE constexpr int countr_zero(T v) {
  return v == 0 ? 8 * static_cast<int>(sizeof(T)) : __builtin_ctzll(static_cast<unsigned long long>(v));
}
template <class T> KF_INLINE constexpr int countl_one(T v) { return countl_zero(static_cast<T>(~v)); }
template <class T> KF_INLINE constexpr int countr_one(T v) { return countr_zero(static_cast<T>(~v)); }
template <class T> KF_INLINE constexpr bool has_single_bit(T v) { return v != 0 && (v & (v - 1)) == 0; }
template <class T> KF_INLINE constexpr int bit_width(T v) { return 8 * static_cast<int>(sizeof(T)) - countl_zero(v); }
template <class T> KF_INLINE constexpr T bit_floor(T v) { return v == 0 ? T(0) : static_cast<T>(T(1) << (bit_width(v) - 1)); }
template <class T> KF_INLINE constexpr T bit_ceil(T v) { return v <= 1 ? T(1) : static_cast<T>(T(1) << bit_width(static_cast<T>(v - 1))); }
template <class T> KF_INLINE constexpr T rotl(T v, int by) {
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  int n = ((by % bits) + bits) % bits;
  return n == 0 ? v : static_cast<T>(v << n | v >> (bits - n));
}
template <class T> KF_INLINE constexpr T rotr(T v, int by) { return rotl(v, -by); }
template <class C> KF_INLINE constexpr ptrdiff_t ssize(const C &c) { return static_cast<ptrdiff_t>(c.size()); }
namespace numbers {
template <class T> constexpr T pi_v = static_cast<T>(3.14159265358979323846264338327950288L);
template <class T> constexpr T e_v = static_cast<T>(2.71828182845904523536028747135266250L);
template <class T> constexpr T log2e_v = static_cast<T>(1.44269504088896340735992468100189214L);
template <class T> constexpr T ln2_v = static_cast<T>(0.693147180559945309417232121458176568L);
template <class T> constexpr T sqrt2_v = static_cast<T>(1.41421356237309504880168872420969808L);
constexpr double pi = pi_v<double>, e = e_v<double>, log2e = log2e_v<double>, ln2 = ln2_v<double>, sqrt2 = sqrt2_v<double>;
} // namespace numbers

constexpr size_t dynamic_extent = static_cast<size_t>(-1);
template <class T, size_t Extent = dynamic_extent> class span {
  T *at_ = nullptr;
  size_t size_ = 0;

public:
  typedef T element_type;
  typedef typename ::std::remove_cv<T>::type value_type;
  typedef T *iterator;
  static constexpr size_t extent = Extent;
  constexpr span() = default;
  KF_INLINE constexpr span(T *at, size_t size) : at_(at), size_(size) {}
  template <size_t N> KF_INLINE constexpr span(T (&all)[N]) : at_(all), size_(N) {}
  template <class U, size_t N> KF_INLINE constexpr span(::std::array<U, N> &all) : at_(all.data()), size_(N) {}
  template <class U, size_t N> KF_INLINE constexpr span(const ::std::array<U, N> &all) : at_(all.data()), size_(N) {}
  template <class U, size_t E> KF_INLINE constexpr span(const span<U, E> &other) : at_(other.data()), size_(other.size()) {}
  KF_INLINE constexpr T *data() const { return at_; }
  KF_INLINE constexpr size_t size() const { return size_; }
  KF_INLINE constexpr size_t size_bytes() const { return size_ * sizeof(T); }
  KF_INLINE constexpr bool empty() const { return size_ == 0; }
  KF_INLINE constexpr T &operator[](size_t i) const { return at_[i]; }
  KF_INLINE constexpr T &front() const { return at_[0]; }
  KF_INLINE constexpr T &back() const { return at_[size_ - 1]; }
  KF_INLINE constexpr T *begin() const { return at_; }
  KF_INLINE constexpr T *end() const { return at_ + size_; }
  KF_INLINE constexpr span<T> first(size_t n) const { return {at_, n}; }
  KF_INLINE constexpr span<T> last(size_t n) const { return {at_ + (size_ - n), n}; }
  KF_INLINE constexpr span<T> subspan(size_t from, size_t n = dynamic_extent) const {
    return {at_ + from, n == dynamic_extent ? size_ - from : n};
  }
};
template <class T, size_t N> span(T (&)[N]) -> span<T, N>;
template <class T> span(T *, size_t) -> span<T>;
#endif
} // namespace std
} // namespace cuda

#include "cuda/atomic"
