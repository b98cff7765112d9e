// CUDA's warp matrix functions: fragments, loads, products, stores, for the shapes of compute capability 8.0.
// Knows which lane holds which element (its own choice, which CUDA leaves open); sums are exact enough to be rounded once.
#pragma once
#include "kf_floats.h"
#include "kf_warp.h"

namespace nvcuda {
namespace wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32 {};
struct kf_none {};
} // namespace precision

template <class T> struct kf_held { typedef T type; };
template <> struct kf_held<precision::tf32> { typedef float type; };

using ::__float_to_tf32;

template <class Use, int M, int N, int K> struct kf_extent;
template <int M, int N, int K> struct kf_extent<matrix_a, M, N, K> { enum { rows = M, cols = K }; };
template <int M, int N, int K> struct kf_extent<matrix_b, M, N, K> { enum { rows = K, cols = N }; };
template <int M, int N, int K> struct kf_extent<accumulator, M, N, K> { enum { rows = M, cols = N }; };

// Element e (row-major) of the matrix is held by lane e % 32 at position e / 32.
template <class Use, int M, int N, int K, class T, class Layout = void> class fragment {
  static_assert((M == 16 && N == 16 && (K == 16 || K == 8)) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16) ||
                    (M == 8 && N == 8 && K == 4 && std::is_same<T, double>::value),
                "this shape of fragment is not emulated");

public:
  enum { kf_rows = kf_extent<Use, M, N, K>::rows, kf_cols = kf_extent<Use, M, N, K>::cols, num_elements = kf_rows * kf_cols / 32 };
  static constexpr int num_storage_elements = num_elements;
  typedef T element_type;
  typedef typename kf_held<T>::type storage_element_type;
  storage_element_type x[num_elements];
};

template <class Use, int M, int N, int K, class T, class L, class V>
KF_INLINE void fill_fragment(fragment<Use, M, N, K, T, L> &f, const V &value) {
  for (int i = 0; i < f.num_elements; ++i) f.x[i] = static_cast<typename kf_held<T>::type>(value);
}

template <class F, class P> KF_INLINE void kf_load_fragment(F &f, const P *from, unsigned ld, bool by_rows) {
  for (int i = 0; i < f.num_elements; ++i) {
    unsigned e = static_cast<unsigned>(i) * 32 + kf_lane(), row = e / f.kf_cols, col = e % f.kf_cols;
    f.x[i] = from[by_rows ? row * ld + col : col * ld + row];
  }
}
template <class Use, int M, int N, int K, class T, class L, class P>
KF_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, L> &f, const P *from, unsigned ld) {
  __syncwarp();
  kf_load_fragment(f, from, ld, std::is_same<L, row_major>::value);
}
template <int M, int N, int K, class T, class P>
KF_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const P *from, unsigned ld, layout_t layout) {
  __syncwarp();
  kf_load_fragment(f, from, ld, layout == mem_row_major);
}
template <int M, int N, int K, class T, class P>
KF_INLINE void store_matrix_sync(P *to, const fragment<accumulator, M, N, K, T> &f, unsigned ld, layout_t layout) {
  for (int i = 0; i < f.num_elements; ++i) {
    unsigned e = static_cast<unsigned>(i) * 32 + kf_lane(), row = e / f.kf_cols, col = e % f.kf_cols;
    to[layout == mem_row_major ? row * ld + col : col * ld + row] = f.x[i];
  }
  __syncwarp();
}

template <class T> struct kf_sum { typedef double type; };
template <> struct kf_sum<int> { typedef long long type; };

// What each lane hands over: its parts of the four matrices.
template <class A, class B, class C, class D> struct kf_parts {
  const A *a;
  const B *b;
  const C *c;
  D *d;
};

template <int M, int N, int K, class FA, class FB, class FC, class FD, bool Tf32, bool Saturate>
#ifdef KF_CHECK
KF_UNWATCHED
#endif
void kf_multiply(uint64_t *values, uint32_t mask) {
  typedef kf_parts<FA, FB, FC, FD> parts;
  if (mask != 0xffffffffu) return;
  typedef decltype(kf_mma_wide(static_cast<const parts *>(nullptr)->a->x[0])) W;
  typedef typename kf_sum<typename FC::element_type>::type S;
  W a[M * K], b[K * N];
  for (int e = 0; e < M * K; ++e) a[e] = kf_mma_wide(reinterpret_cast<const parts *>(values[e % 32])->a->x[e / 32]);
  for (int e = 0; e < K * N; ++e) b[e] = kf_mma_wide(reinterpret_cast<const parts *>(values[e % 32])->b->x[e / 32]);
  if constexpr (Tf32) {
    for (W &v : a) v = kf_tf32_read(v);
    for (W &v : b) v = kf_tf32_read(v);
  }
  for (int e = 0; e < M * N; ++e) {
    const parts *p = reinterpret_cast<const parts *>(values[e % 32]);
    S sum = static_cast<S>(kf_mma_wide(p->c->x[e / 32]));
    for (int k = 0; k < K; ++k) sum += static_cast<S>(a[e / N * K + k]) * static_cast<S>(b[k * N + e % N]);
    if constexpr (std::is_same<S, long long>::value)
      p->d->x[e / 32] = Saturate ? kf_mma_saturated(sum) : static_cast<int>(static_cast<unsigned>(sum));
    else
      kf_mma_store(p->d->x[e / 32], sum);
  }
}

template <int M, int N, int K, class TA, class LA, class TB, class LB, class TC, class TD>
KF_INLINE void mma_sync(fragment<accumulator, M, N, K, TD> &d, const fragment<matrix_a, M, N, K, TA, LA> &a,
                        const fragment<matrix_b, M, N, K, TB, LB> &b, const fragment<accumulator, M, N, K, TC> &c,
                        bool saturate = false) {
  typedef fragment<matrix_a, M, N, K, TA, LA> FA;
  typedef fragment<matrix_b, M, N, K, TB, LB> FB;
  typedef fragment<accumulator, M, N, K, TC> FC;
  typedef fragment<accumulator, M, N, K, TD> FD;
  kf_parts<FA, FB, FC, FD> mine{&a, &b, &c, &d};
  constexpr bool tf32 = std::is_same<TA, precision::tf32>::value;
  kf_collect_lanes(0xffffffffu, saturate ? kf_multiply<M, N, K, FA, FB, FC, FD, tf32, true> : kf_multiply<M, N, K, FA, FB, FC, FD, tf32, false>, &mine);
}

} // namespace wmma
} // namespace nvcuda
