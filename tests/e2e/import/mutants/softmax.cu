#include <cuda_runtime.h>
#include "common.h"

__inline__ __device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, offset));
  return value;
}

__inline__ __device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffff, value, offset);
  return value;
}

__global__ void softmax_forward_kernel(float *out, const float *inp, int N, int C) {
  __shared__ float shared[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int warps = blockDim.x / 32;
  const float *x = inp + blockIdx.x * C;
  float *y = out + blockIdx.x * C;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < C; i += blockDim.x) most = fmaxf(most, x[i]);
  most = warp_max(most);
  if (lane == 0) shared[warp] = most;
  __syncthreads();
  most = shared[0];
  for (int i = 1; i < warps; i++) most = fmaxf(most, shared[i]);
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < C; i += blockDim.x) sum += expf(x[i] - most);
  sum = warp_sum(sum);
  if (lane == 0) shared[warp] = sum;
  __syncthreads();
  sum = shared[0];
  for (int i = 1; i < warps; i++) sum += shared[i];
  for (int i = threadIdx.x; i < C; i += blockDim.x) y[i] = expf(x[i] - most) / sum;
}

void softmax_forward(float *out, const float *inp, int N, int C) {
  const int block_size = 128;
  softmax_forward_kernel<<<N, block_size>>>(out, inp, N, C);
  cudaCheck(cudaGetLastError());
}
