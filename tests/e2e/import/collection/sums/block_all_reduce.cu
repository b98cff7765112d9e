#include <torch/extension.h>
#define WARP_SIZE 32

template <const int WIDTH = WARP_SIZE>
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int mask = WIDTH >> 1; mask >= 1; mask >>= 1) v += __shfl_xor_sync(0xffffffff, v, mask);
  return v;
}

template <const int NUM_THREADS = 256>
__global__ void block_all_reduce_sum_f32_kernel(float *a, float *y, int N) {
  int idx = blockIdx.x * NUM_THREADS + threadIdx.x;
  constexpr int WARPS = (NUM_THREADS + WARP_SIZE - 1) / WARP_SIZE;
  __shared__ float parts[WARPS];
  float sum = (idx < N) ? a[idx] : 0.0f;
  int warp = threadIdx.x / WARP_SIZE;
  int lane = threadIdx.x % WARP_SIZE;
  sum = warp_sum<WARP_SIZE>(sum);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  sum = (lane < WARPS) ? parts[lane] : 0.0f;
  if (warp == 0) sum = warp_sum<WARPS>(sum);
  if (threadIdx.x == 0) atomicAdd(y, sum);
}

template <const int NUM_THREADS = 256>
__global__ void dot_prod_f32_kernel(float *a, float *b, float *y, int N) {
  int idx = blockIdx.x * NUM_THREADS + threadIdx.x;
  float v = (idx < N) ? a[idx] * b[idx] : 0.0f;
  v = warp_sum<WARP_SIZE>(v);
  if (threadIdx.x % WARP_SIZE == 0) atomicAdd(y, v);
}

torch::Tensor block_all_reduce_sum_f32(torch::Tensor x) {
  auto total = torch::zeros({1}, x.options());
  const int N = x.numel();
  dim3 block(256);
  dim3 grid((N + 256 - 1) / 256);
  block_all_reduce_sum_f32_kernel<256><<<grid, block>>>(x.data_ptr<float>(), total.data_ptr<float>(), N);
  return total;
}

torch::Tensor dot_prod_f32(torch::Tensor x, torch::Tensor z) {
  auto total = torch::zeros({1}, x.options());
  const int N = x.numel();
  dot_prod_f32_kernel<<<(N + 255) / 256, 256>>>(x.data_ptr<float>(), z.data_ptr<float>(), total.data_ptr<float>(), N);
  return total;
}
