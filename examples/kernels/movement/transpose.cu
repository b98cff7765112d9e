// Transposition through a 32 x 32 tile in shared memory, so that both reading and writing go along rows. PAD: columns added to the tile; without, the lanes
// that read a column of it would all want the same bank.
template <int ROWS, int PAD>
__global__ void __launch_bounds__(32 * ROWS) transpose(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
  __shared__ float tile[32][32 + PAD];
  const int col = blockIdx.x * 32 + threadIdx.x;
#pragma unroll
  for (int i = threadIdx.y; i < 32; i += ROWS) {
    const int row = blockIdx.y * 32 + i;
    if (row < rows && col < cols) tile[i][threadIdx.x] = x[static_cast<size_t>(row) * cols + col];
  }
  __syncthreads();
  const int row = blockIdx.y * 32 + threadIdx.x; // of x, and column of y
#pragma unroll
  for (int i = threadIdx.y; i < 32; i += ROWS) {
    const int line = blockIdx.x * 32 + i;
    if (line < cols && row < rows) y[static_cast<size_t>(line) * rows + row] = tile[threadIdx.x][i];
  }
}
