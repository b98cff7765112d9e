// Residual addition and root mean square normalisation in one: one block a row. The sum is kept in shared memory between the passes, in f32: so each
// input is read once, and the norm is that of the exact sum and not of its rounding to f16.
#include <common/reduce.cuh>
#include <common/vec.cuh>

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    add_rms_norm(const __half *__restrict__ x, const __half *__restrict__ w, __half *__restrict__ residual, __half *__restrict__ y,
                 int cols, float eps) {
  extern __shared__ __align__(8) float kept[]; // cols values; each thread reads only those that it wrote
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  float squares = 0.0f;
  // Pairs need rows that start on four bytes; odd rows go one by one.
  const int paired = cols % 2 == 0 ? cols / 2 : 0;
  for (int i = threadIdx.x; i < paired; i += BLOCK) {
    const float2 a = __half22float2(reinterpret_cast<const __half2 *>(x + start)[i]);
    const float2 r = __half22float2(reinterpret_cast<const __half2 *>(residual + start)[i]);
    const float2 s = make_float2(a.x + r.x, a.y + r.y);
    reinterpret_cast<__half2 *>(residual + start)[i] = __float22half2_rn(s);
    reinterpret_cast<float2 *>(kept)[i] = s;
    squares += s.x * s.x + s.y * s.y;
  }
  for (int i = 2 * paired + threadIdx.x; i < cols; i += BLOCK) {
    const float s = __half2float(x[start + i]) + __half2float(residual[start + i]);
    residual[start + i] = __float2half_rn(s);
    kept[i] = s;
    squares += s * s;
  }
  const float scale = rsqrtf(common::block_reduce<BLOCK, common::Sum>(squares) / cols + eps);

  for (int i = threadIdx.x; i < paired; i += BLOCK) {
    const float2 s = reinterpret_cast<const float2 *>(kept)[i];
    const float2 g = __half22float2(reinterpret_cast<const __half2 *>(w)[i]);
    reinterpret_cast<__half2 *>(y + start)[i] = __float22half2_rn(make_float2(s.x * scale * g.x, s.y * scale * g.y));
  }
  for (int i = 2 * paired + threadIdx.x; i < cols; i += BLOCK) y[start + i] = __float2half_rn(kept[i] * scale * __half2float(w[i]));
}
