// y[r, c] = gelu(b[c] + sum over i of x[r, i] * w[c, i]): one thread an element.
template <int BLOCK>
__global__ void linear_gelu(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ b, float *__restrict__ y, int inner,
                            int cols) {
  const int col = blockIdx.x * BLOCK + threadIdx.x;
  const int row = blockIdx.y;
  if (col >= cols) return;
  float sum = b[col];
  for (int i = 0; i < inner; i++) sum += x[(size_t)row * inner + i] * w[(size_t)col * inner + i];
  y[(size_t)row * cols + col] = 0.5f * sum * (1.0f + erff(sum * 0.70710678f));
}
