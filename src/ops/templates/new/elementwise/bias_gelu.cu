// y = gelu(x + bias), VEC elements a thread.
//
// An elementwise kernel is bound by memory: few operations for each byte. So it is fast when it asks for memory in wide accesses (VEC = 4 is sixteen bytes, the widest
// there is) of neighbouring threads to neighbouring addresses.

__device__ float gelu(float x) {
  return 0.5f * x * erfcf(x * -0.70710678f); // x times the normal distribution's share below x
}

template <int BLOCK, int VEC>
__global__ void bias_gelu(const float *__restrict__ x, const float *__restrict__ bias, float *__restrict__ y, int n, int cols) {
  const int first = (blockIdx.x * BLOCK + threadIdx.x) * VEC;
  // A float4 must lie on sixteen bytes, and must not cross the end of a row, where the bias starts anew: both hold if rows are multiples of four.
  if (VEC == 4 && cols % 4 == 0) {
    if (first < n) {
      const float4 v = *reinterpret_cast<const float4 *>(x + first);
      const float4 b = *reinterpret_cast<const float4 *>(bias + first % cols);
      *reinterpret_cast<float4 *>(y + first) = make_float4(gelu(v.x + b.x), gelu(v.y + b.y), gelu(v.z + b.z), gelu(v.w + b.w));
    }
  } else {
    // The grid has threads to spare at the end: leave out `i < n` and see how the build tells you.
    for (int i = first; i < first + VEC && i < n; i++) y[i] = gelu(x[i] + bias[i % cols]);
  }
}
