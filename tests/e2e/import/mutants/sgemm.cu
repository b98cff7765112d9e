#include <cublas_v2.h>

#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))

template <const int BM, const int BN, const int BK>
__global__ void sgemm_tiled(int M, int N, int K, const float *A, const float *B, float *C) {
  __shared__ float as[BM][BK];
  __shared__ float bs[BK][BN];
  int column = blockIdx.x * BN + threadIdx.x;
  int row = blockIdx.y * BM + threadIdx.y;
  float sum = 0.0f;
  for (int k0 = 0; k0 < K; k0 += BK) {
    as[threadIdx.y][threadIdx.x] = row < M && k0 + threadIdx.x < K ? A[row * K + k0 + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = k0 + threadIdx.y < K && column < N ? B[(k0 + threadIdx.y) * N + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < BK; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < M && column < N) C[row * N + column] = sum;
}

void run_sgemm_tiled(int M, int N, int K, float *A, float *B, float *C) {
  const int BM = 16, BN = 16, BK = 16;
  dim3 gridDim(CEIL_DIV(N, BN), CEIL_DIV(M, BM));
  dim3 blockDim(BN, BM);
  sgemm_tiled<BM, BN, BK><<<gridDim, blockDim>>>(M, N, K, A, B, C);
}
