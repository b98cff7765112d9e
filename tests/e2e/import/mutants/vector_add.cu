#include <torch/extension.h>

#define FLOAT4(value) (reinterpret_cast<float4 *>(&(value))[0])

__global__ void vector_add_kernel(const float *a, const float *b, float *out, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) {
    float4 x = *reinterpret_cast<const float4 *>(a + i);
    float4 y = *reinterpret_cast<const float4 *>(b + i);
    float4 z;
    z.x = x.x + y.x;
    z.y = x.y + y.y;
    z.z = x.z + y.z;
    z.w = x.w + y.w;
    FLOAT4(out[i]) = z;
  } else {
    for (; i < n; i++) out[i] = a[i] + b[i];
  }
}

torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  auto out = torch::empty_like(a);
  int n = a.numel();
  const int threads = 128;
  dim3 block(threads);
  dim3 grid((n + threads * 4 - 1) / (threads * 4));
  vector_add_kernel<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
