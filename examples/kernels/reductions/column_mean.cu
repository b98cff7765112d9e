// Means of columns: a block is 32 columns wide, so that a warp reads neighbours, and ROWS deep. Each thread walks down its column; then the rows of the block meet
// in shared memory.
template <int ROWS>
__global__ void __launch_bounds__(32 * ROWS) column_mean(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
  __shared__ float partial[ROWS][32];
  const int col = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  if (col < cols) {
    for (int row = threadIdx.y; row < rows; row += ROWS) sum += x[static_cast<size_t>(row) * cols + col];
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int half = ROWS / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) partial[threadIdx.y][threadIdx.x] += partial[threadIdx.y + half][threadIdx.x];
    __syncthreads(); // outside the branch: every thread of the block comes here
  }
  if (threadIdx.y == 0 && col < cols) y[col] = partial[0][threadIdx.x] / rows;
}
