#include <cublas_v2.h>
#include <torch/extension.h>
#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))

__global__ void sgemm_naive_f32_kernel(float *a, float *b, float *c, int M, int N, int K) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  int m = blockIdx.y * blockDim.y + threadIdx.y;
  if (m < M && n < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += a[m * K + k] * b[k * N + n];
    c[m * N + n] = sum;
  }
}

// Serves whole tiles only.
template <const int BM = 32, const int BN = 32, const int BK = 32>
__global__ void sgemm_tiled_f32_kernel(float *a, float *b, float *c, int M, int N, int K) {
  __shared__ float as[BM][BK], bs[BK][BN];
  int m = blockIdx.y * BM + threadIdx.y;
  int n = blockIdx.x * BN + threadIdx.x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < K; k0 += BK) {
    as[threadIdx.y][threadIdx.x] = a[m * K + k0 + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k0 + threadIdx.y) * N + n];
    __syncthreads();
    for (int k = 0; k < BK; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  c[m * N + n] = sum;
}

void sgemm_naive_f32(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
  const int M = a.size(0), K = a.size(1), N = b.size(1);
  constexpr int BM = 32;
  constexpr int BN = 32;
  dim3 block(BN, BM);
  dim3 grid(CEIL_DIV(N, BN), CEIL_DIV(M, BM));
  sgemm_naive_f32_kernel<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), M, N, K);
}

void sgemm_tiled_f32(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
  const int M = a.size(0), K = a.size(1), N = b.size(1);
  dim3 block(32, 32);
  dim3 grid(CEIL_DIV(N, 32), CEIL_DIV(M, 32));
  sgemm_tiled_f32_kernel<32, 32><<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), M, N, K);
}
