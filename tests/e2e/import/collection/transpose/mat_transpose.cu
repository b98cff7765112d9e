#include <torch/extension.h>
#define TILE 16

__global__ void mat_transpose_f32_kernel(float *x, float *y, const int row, const int col) {
  __shared__ float tile[TILE][TILE + 1];
  int c = blockIdx.x * TILE + threadIdx.x;
  int r = blockIdx.y * TILE + threadIdx.y;
  if (r < row && c < col) tile[threadIdx.y][threadIdx.x] = x[r * col + c];
  __syncthreads();
  int tr = blockIdx.x * TILE + threadIdx.y;
  int tc = blockIdx.y * TILE + threadIdx.x;
  if (tr < col && tc < row) y[tr * row + tc] = tile[threadIdx.x][threadIdx.y];
}

void mat_transpose_f32(torch::Tensor x, torch::Tensor y) {
  const int M = x.size(0);
  const int N = x.size(1);
  dim3 block(TILE, TILE);
  dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
  mat_transpose_f32_kernel<<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), M, N);
}
