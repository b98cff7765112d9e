// Root mean square normalisation in f32, f16 or bf16 storage and f32 arithmetic: one block a row, two passes over it.
// BLOCK: threads a block. WIDE: sixteen bytes an access where rows allow it.
#include <common/reduce.cuh>
#include <common/vec.cuh>

template <class T, int BLOCK, bool WIDE>
__global__ void __launch_bounds__(BLOCK)
    rms_norm(const T *__restrict__ x, const T *__restrict__ w, T *__restrict__ y, int cols, float eps) {
  constexpr int N = WIDE ? common::kWidest<T> : 1;
  const T *row = x + static_cast<size_t>(blockIdx.x) * cols;
  T *out = y + static_cast<size_t>(blockIdx.x) * cols;
  // A row starts on sixteen bytes only if every row before it is whole accesses long; else all of it is read one by one.
  const int wide = cols % N == 0 ? cols : 0;

  float squares = 0.0f;
  for (int i = threadIdx.x * N; i < wide; i += BLOCK * N) {
    const auto v = common::load<N>(row + i);
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float f = common::to_float(v.at[j]);
      squares += f * f;
    }
  }
  for (int i = wide + threadIdx.x; i < cols; i += BLOCK) {
    const float f = common::to_float(row[i]);
    squares += f * f;
  }
  const float scale = rsqrtf(common::block_reduce<BLOCK, common::Sum>(squares) / cols + eps);

  for (int i = threadIdx.x * N; i < wide; i += BLOCK * N) {
    const auto v = common::load<N>(row + i);
    const auto g = common::load<N>(w + i);
    common::Vec<T, N> r;
#pragma unroll
    for (int j = 0; j < N; j++) {
      // Rounded once, at the end.
      r.at[j] = common::from_float<T>(common::to_float(v.at[j]) * scale * common::to_float(g.at[j]));
    }
    common::store<N>(out + i, r);
  }
  for (int i = wide + threadIdx.x; i < cols; i += BLOCK) {
    out[i] = common::from_float<T>(common::to_float(row[i]) * scale * common::to_float(w[i]));
  }
}
