#include <float.h>
#include <torch/extension.h>
#include "../sums/steps.cuh"

// A block a row.
__global__ void safe_softmax_f32_kernel(const float *x, float *y, int rows, int cols) {
  __shared__ float best[256];
  const float *in = x + blockIdx.x * cols;
  float *out = y + blockIdx.x * cols;
  float m = -FLT_MAX;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, in[i]);
  m = all_threads(m, best, true);
  float s = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) s += expf(in[i] - m);
  s = all_threads(s, best, false);
  for (int i = threadIdx.x; i < cols; i += blockDim.x) out[i] = expf(in[i] - m) / s;
}

void softmax(torch::Tensor x, torch::Tensor y) {
  const int S = x.size(0);
  const int K = x.size(1);
  safe_softmax_f32_kernel<<<S, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), S, K);
}
