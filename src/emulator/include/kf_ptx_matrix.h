// Matrix instructions of a warp: ldmatrix, stmatrix, movmatrix, mma. Knows which lane holds which element (PTX ISA 9.0, 9.7.14).
// Each lane reads and writes the row of memory that it names, so that an access has its thread and its line. Products are summed in double and rounded once.
#pragma once
#include "kf_ptx_memory.h"

// Eight rows of eight 16-bit elements, in words of two.
struct kf_ptx_row { uint32_t word[4]; };
// What each lane hands over and gets: the row that it names, and its words of up to four matrices.
struct kf_ptx_tile {
  kf_ptx_row row;
  uint32_t words[4];
};
#ifdef KF_CHECK
#define KF_COLLECTOR static KF_UNWATCHED inline
#else
#define KF_COLLECTOR static inline
#endif
KF_COLLECTOR uint16_t kf_ptx_element(uint64_t *lanes, int matrix, int row, int column) {
  return static_cast<uint16_t>(reinterpret_cast<const kf_ptx_tile *>(lanes[8 * matrix + row])->row.word[column / 2] >> (16 * (column % 2)));
}
// Rows to words. Plain: lane l holds two elements of row l / 4. Transposed: of column l / 4.
template <int Count, bool Transposed> KF_COLLECTOR void kf_ptx_spread(uint64_t *lanes, uint32_t mask) {
  if (mask != 0xffffffffu) return;
  for (int m = 0; m < Count; ++m)
    for (int l = 0; l < 32; ++l) {
      int across = l / 4, along = l % 4 * 2;
      uint32_t lo = Transposed ? kf_ptx_element(lanes, m, along, across) : kf_ptx_element(lanes, m, across, along);
      uint32_t hi = Transposed ? kf_ptx_element(lanes, m, along + 1, across) : kf_ptx_element(lanes, m, across, along + 1);
      reinterpret_cast<kf_ptx_tile *>(lanes[l])->words[m] = lo | hi << 16;
    }
}
// Words to rows.
template <int Count, bool Transposed> KF_COLLECTOR void kf_ptx_gather(uint64_t *lanes, uint32_t mask) {
  if (mask != 0xffffffffu) return;
  for (int m = 0; m < Count; ++m)
    for (int r = 0; r < 8; ++r)
      for (int w = 0; w < 4; ++w) {
        uint32_t both = 0;
        for (int h = 0; h < 2; ++h) {
          int c = 2 * w + h, lane = Transposed ? c * 4 + r / 2 : r * 4 + c / 2, half = Transposed ? r % 2 : c % 2;
          both |= (reinterpret_cast<const kf_ptx_tile *>(lanes[lane])->words[m] >> (16 * half) & 0xffffu) << (16 * h);
        }
        reinterpret_cast<kf_ptx_tile *>(lanes[8 * m + r])->row.word[w] = both;
      }
}
template <int Count, bool Transposed> KF_FN void kf_ptx_ldmatrix(uint32_t *words, const char *address) {
  kf_ptx_tile mine{};
  if (kf_lane() < 8 * Count) {
    kf_ptx_vector<uint32_t, 4> row = kf_ptx_load<uint32_t, 4>(address);
    for (int i = 0; i < 4; ++i) mine.row.word[i] = row.v[i];
  }
  kf_collect_lanes(0xffffffffu, kf_ptx_spread<Count, Transposed>, &mine);
  for (int m = 0; m < Count; ++m) words[m] = mine.words[m];
}
template <int Count, bool Transposed> KF_FN void kf_ptx_stmatrix(char *address, const uint32_t *words) {
  kf_ptx_tile mine{};
  for (int m = 0; m < Count; ++m) mine.words[m] = words[m];
  kf_collect_lanes(0xffffffffu, kf_ptx_gather<Count, Transposed>, &mine);
  if (kf_lane() < 8 * Count) {
    kf_ptx_vector<uint32_t, 4> row;
    for (int i = 0; i < 4; ++i) row.v[i] = mine.row.word[i];
    kf_ptx_store<uint32_t, 4>(address, row);
  }
}
KF_COLLECTOR void kf_ptx_turn(uint64_t *lanes, uint32_t mask) {
  if (mask != 0xffffffffu) return;
  uint32_t turned[32];
  auto half = [&](int lane, int h) { return reinterpret_cast<const kf_ptx_tile *>(lanes[lane])->words[0] >> (16 * h) & 0xffffu; };
  for (int l = 0; l < 32; ++l) {
    int row = l / 4, column = l % 4 * 2;
    turned[l] = half(column * 4 + row / 2, row % 2) | half((column + 1) * 4 + row / 2, row % 2) << 16;
  }
  for (int l = 0; l < 32; ++l) reinterpret_cast<kf_ptx_tile *>(lanes[l])->words[0] = turned[l];
}
KF_FN uint32_t kf_ptx_movmatrix(uint32_t word) {
  kf_ptx_tile mine{};
  mine.words[0] = word;
  kf_collect_lanes(0xffffffffu, kf_ptx_turn, &mine);
  return mine.words[0];
}

// An element of a multiplicand or an accumulator: its bits within a register, and its value as products are summed.
template <class T> struct kf_ptx_held { enum { bits = 8 * sizeof(T) }; };
KF_FN double kf_ptx_factor(kf_t_f16 v) { return kf_f16_to(v.__x); }
KF_FN double kf_ptx_factor(kf_t_bf16 v) { return kf_bf16_to(v.__x); }
KF_FN double kf_ptx_factor(kf_t_tf32 v) { return kf_tf32_read(kf_bits<float>(v.bits)); }
KF_FN double kf_ptx_factor(kf_t_e4m3 v) { return kf_f16_to(kf_fp8_to(v.bits, __NV_E4M3)); }
KF_FN double kf_ptx_factor(kf_t_e5m2 v) { return kf_f16_to(kf_fp8_to(v.bits, __NV_E5M2)); }
KF_FN double kf_ptx_factor(float v) { return v; }
KF_FN double kf_ptx_factor(double v) { return v; }
KF_FN long long kf_ptx_factor(int8_t v) { return v; }
KF_FN long long kf_ptx_factor(uint8_t v) { return v; }
KF_FN long long kf_ptx_factor(int32_t v) { return v; }
template <class T, class R> KF_FN auto kf_ptx_held_at(const R *registers, int element) {
  constexpr int each = static_cast<int>(8 * sizeof(R)) / kf_ptx_held<T>::bits;
  return kf_ptx_factor(kf_ptx_get<T>(registers[element / each] >> (element % each * kf_ptx_held<T>::bits)));
}
template <class R> struct kf_ptx_fragments {
  const R *a, *b, *c;
  R *d;
};
// m16n8 or m8n8. Lane 4g + t: A holds rows g and g + 8, each register `each` columns from each * t on, further ones 4 * each beyond; B rows alike in column g;
// C and D rows g and g + 8, columns 2t and 2t + 1.
template <class TA, class TB, class TC, class R, int M, int K, bool Saturate> KF_COLLECTOR void kf_ptx_multiply(uint64_t *lanes, uint32_t mask) {
  if (mask != 0xffffffffu) return;
  typedef const kf_ptx_fragments<R> *Held;
  typedef decltype(kf_ptx_factor(TA())) S;
  constexpr int each = static_cast<int>(8 * sizeof(R)) / kf_ptx_held<TA>::bits, rows = M / 8;
  S a[M * K], b[K * 8];
  for (int l = 0; l < 32; ++l) {
    Held held = reinterpret_cast<Held>(lanes[l]);
    const int g = l / 4, t = l % 4;
    for (int e = 0; e < M * K / 32; ++e) {
      const int reg = e / each, row = g + 8 * (reg % rows), column = each * t + e % each + 4 * each * (reg / rows);
      a[row * K + column] = kf_ptx_held_at<TA>(held->a, e);
    }
    for (int e = 0; e < K * 8 / 32; ++e) b[(each * t + e % each + 4 * each * (e / each)) * 8 + g] = kf_ptx_held_at<TB>(held->b, e);
  }
  for (int l = 0; l < 32; ++l) {
    Held held = reinterpret_cast<Held>(lanes[l]);
    const int g = l / 4, t = l % 4;
    constexpr int in = static_cast<int>(8 * sizeof(R)) / kf_ptx_held<TC>::bits;
    R out[M * 8 / 32 / in] = {};
    for (int e = 0; e < M * 8 / 32; ++e) {
      const int row = g + 8 * (e / 2), column = 2 * t + e % 2;
      S sum = kf_ptx_held_at<TC>(held->c, e);
      for (int k = 0; k < K; ++k) sum += a[row * K + k] * b[k * 8 + column];
      R bits;
      if constexpr (std::is_integral<S>::value) {
        bits = static_cast<R>(static_cast<uint32_t>(Saturate ? kf_mma_saturated(sum) : static_cast<int>(static_cast<uint32_t>(sum))));
      } else {
        TC rounded{};
        if constexpr (std::is_same<TC, double>::value) rounded = sum;
        else if constexpr (std::is_same<TC, float>::value) rounded = kf_ptx_canonical(static_cast<float>(sum));
        else rounded = kf_make_half(kf_f16_from(sum));
        kf_ptx_put(bits, rounded);
      }
      out[e / in] |= static_cast<R>(bits << (e % in * (in == 1 ? 0 : 16)));
    }
    for (int i = 0; i < M * 8 / 32 / in; ++i) held->d[i] = out[i];
  }
}
template <class TA, class TB, class TC, int M, int K, bool Saturate, class R> KF_FN void kf_ptx_mma(R *d, const R *a, const R *b, const R *c) {
  kf_ptx_fragments<R> mine{a, b, c, d};
  kf_collect_lanes(0xffffffffu, kf_ptx_multiply<TA, TB, TC, R, M, K, Saturate>, &mine);
}
#undef KF_COLLECTOR
