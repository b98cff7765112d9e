// y[r, c] = x[r, c] * w[c] / sqrt(mean over c of x[r, c]^2 + eps): one block of 128 threads a row.
extern "C" __global__ void rms_norm(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int cols, float eps) {
  __shared__ float partial[128];
  const float *row = x + (size_t)blockIdx.x * cols;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < cols; i += 128) squares += row[i] * row[i];
  partial[threadIdx.x] = squares;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  const float scale = 1.0f / sqrtf(partial[0] / cols + eps);
  for (int i = threadIdx.x; i < cols; i += 128) y[(size_t)blockIdx.x * cols + i] = row[i] * scale * w[i];
}
