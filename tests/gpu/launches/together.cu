#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void together(const float *x, float *parts, float *y, int rows, int cols) {
  __shared__ float partial[128];
  for (int task = blockIdx.x; task < rows * 8; task += gridDim.x) {
    const float *row = x + (size_t)(task / 8) * cols;
    float sum = 0;
    for (int i = task % 8 * blockDim.x + threadIdx.x; i < cols; i += 8 * blockDim.x) sum += row[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
      if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) parts[task] = partial[0];
    __syncthreads();
  }
  cg::this_grid().sync();
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x) {
    float sum = 0;
    for (int i = 0; i < 8; ++i) sum += parts[row * 8 + i];
    y[row] = sum;
  }
}
