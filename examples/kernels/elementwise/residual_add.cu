// Residual addition in place, by a grid-stride loop: as many blocks as fill the device once, each taking its share of any length. No `__restrict__` on `h`, which
// is read and written.
#include <common/vec.cuh>

template <class T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) residual_add(const T *__restrict__ x, T *h, long long n, float alpha) {
  constexpr int N = common::kWidest<T>;
  const long long first = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  const long long threads = static_cast<long long>(gridDim.x) * BLOCK;
  const long long whole = n / N;
  for (long long i = first; i < whole; i += threads) {
    const auto a = common::load<N>(x + i * N);
    auto r = common::load<N>(h + i * N);
#pragma unroll
    for (int j = 0; j < N; j++) r.at[j] = common::from_float<T>(common::to_float(r.at[j]) + alpha * common::to_float(a.at[j]));
    common::store<N>(h + i * N, r);
  }
  // The tail, less than one access.
  for (long long i = whole * N + first; i < n; i += threads) {
    h[i] = common::from_float<T>(common::to_float(h[i]) + alpha * common::to_float(x[i]));
  }
}
