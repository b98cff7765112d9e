#include <cooperative_groups.h>
#include "common.h"

__global__ void layernorm_forward_kernel(float *out, const float *inp, const float *weight, const float *bias, int N, int C) {
  int warps = blockDim.x / 32;
  int lane = threadIdx.x % 32;
  int row = blockIdx.x * warps + threadIdx.x / 32;
  if (row >= N) return;
  const float *x = inp + row * C;
  float sum = 0.0f;
  for (int i = lane; i < C; i += 32) sum += x[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  float mean = sum / C;
  float squares = 0.0f;
  for (int i = lane; i < C; i += 32) squares += (x[i] - mean) * (x[i] - mean);
  for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(0xffffffff, squares, offset);
  float factor = rsqrtf(squares / C + 1e-5f);
  for (int i = lane; i < C; i += 32) out[row * C + i] = (x[i] - mean) * factor * weight[i] + bias[i];
}

void layernorm_forward(float *out, const float *inp, const float *weight, const float *bias, int B, int T, int C, int block_size) {
  const int N = B * T;
  const int grid_size = CEIL_DIV(N * 32, block_size);
  layernorm_forward_kernel<<<grid_size, block_size>>>(out, inp, weight, bias, N, C);
}
