// Bias and exact GELU in one pass over memory. WIDE: sixteen bytes an access, where columns are whole accesses; else one element at a time.
#include <common/vec.cuh>

__device__ __forceinline__ float gelu(float x) {
  // x * Phi(x) with Phi by erfc: 1 + erf(x / sqrt 2) would lose all digits left of -3.
  return 0.5f * x * erfcf(x * -0.70710678118654752f);
}

template <class T, int BLOCK, bool WIDE>
__global__ void __launch_bounds__(BLOCK)
    bias_gelu(const T *__restrict__ x, const T *__restrict__ bias, T *__restrict__ y, long long n, int cols) {
  constexpr int N = WIDE ? common::kWidest<T> : 1;
  const long long first = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  const long long threads = static_cast<long long>(gridDim.x) * BLOCK;
  if (cols % N == 0) {
    // An access never crosses a row's end, so its biases are neighbours too, and both start on sixteen bytes.
    for (long long i = first * N; i < n; i += threads * N) {
      const auto v = common::load<N>(x + i);
      const auto b = common::load<N>(bias + i % cols);
      common::Vec<T, N> r;
#pragma unroll
      for (int j = 0; j < N; j++) r.at[j] = common::from_float<T>(gelu(common::to_float(v.at[j]) + common::to_float(b.at[j])));
      common::store<N>(y + i, r);
    }
  } else {
    for (long long i = first; i < n; i += threads) {
      y[i] = common::from_float<T>(gelu(common::to_float(x[i]) + common::to_float(bias[i % cols])));
    }
  }
}
