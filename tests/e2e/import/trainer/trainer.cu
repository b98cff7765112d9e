#include <cublas_v2.h>
#include <stdio.h>
#include "common.h"

__global__ void softmax_forward_kernel1(float* out, const float* inp, int N, int C) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    const float* row = inp + i * C;
    float* res = out + i * C;
    float m = row[0];
    for (int j = 1; j < C; j++) m = fmaxf(m, row[j]);
    float s = 0.0f;
    for (int j = 0; j < C; j++) { res[j] = expf(row[j] - m); s += res[j]; }
    for (int j = 0; j < C; j++) res[j] /= s;
  }
}

__global__ void crossbreed_kernel(float* out, const float* inp, int T, float rate) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < T) out[i] = inp[i] * rate + inp[(i + 1) % T];
}

void softmax_forward1(float* out, const float* inp, int N, int C, const int block_size) {
  const int grid_size = ceil_div(N, block_size);
  softmax_forward_kernel1<<<grid_size, block_size>>>(out, inp, N, C);
  cudaCheck(cudaGetLastError());
}

void crossbreed(float* out, const float* inp, int B, int T, float rate) {
  crossbreed_kernel<<<ceil_div(B * T, 256), 256>>>(out, inp, B * T, rate);
}

int main(int argc, char** argv) {
  softmax_forward1(nullptr, nullptr, 8 * 1024, 4096, 256);
  printf("done\n");
  return 0;
}
